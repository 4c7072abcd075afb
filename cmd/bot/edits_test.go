package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	reverie "reverie"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// echoing is a model that answers with the words of the newest message that begin with
// a #. "slow" makes it begin, and then wait until it is let go or given up; "long" makes
// the answer one of two parts, and "huge" one of more than four; "keep" has it note the words first, "remind" make
// a task of them, "helper" give slow work on them to a sub-session, and "attach" send a file.
type echoing struct {
	mu       sync.Mutex
	requests []string // the bodies
	newest   []string // the newest message of each
	given    int      // answers that were given up by who asked
	release  chan struct{}
}

var hashed = regexp.MustCompile(`#\w+`)

func (e *echoing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var req struct {
		Messages []struct {
			Role, Content string
		}
	}
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") || json.Unmarshal(body, &req) != nil {
		http.NotFound(w, r)
		return
	}
	newest, acted := "", false
	for _, m := range req.Messages {
		switch m.Role {
		case "user":
			newest, acted = m.Content, false
		case "tool":
			acted = true
		}
	}
	work := strings.Contains(newest, "slow work on")
	newest, _, _ = strings.Cut(newest, "\n\n") // what the prompt added
	e.mu.Lock()
	e.requests, e.newest = append(e.requests, string(body)), append(e.newest, newest)
	n := len(e.requests)
	e.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta map[string]any, finish any) {
		b, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		fmt.Fprintf(w, "data: %s\n\n", b)
		w.(http.Flusher).Flush()
	}
	words := strings.Join(hashed.FindAllString(newest, -1), " ")
	var calls []any
	for _, a := range []struct {
		word, tool string
		args       map[string]any
	}{
		{"keep", "append_memory", map[string]any{"entry": "The word to keep is " + words + "."}},
		{"remind", "task", map[string]any{"action": "add", "content": "call " + words}},
		{"helper", "spawn_sub_session", map[string]any{"objective": "slow work on " + words}},
		{"attach", "send_file", map[string]any{"path": "data/BASE_PROMPT.txt", "caption": "see " + words}},
	} {
		if args, _ := json.Marshal(a.args); strings.Contains(newest, a.word) && !acted {
			calls = append(calls, map[string]any{"index": len(calls), "id": fmt.Sprint("call_", n, a.word), "type": "function", "function": map[string]any{"name": a.tool, "arguments": string(args)}})
		}
	}
	if calls != nil {
		send(map[string]any{"role": "assistant", "tool_calls": calls}, nil)
		send(map[string]any{}, "tool_calls")
		fmt.Fprint(w, "data: [DONE]\n\n")
		return
	}
	text := fmt.Sprintf("answer %d to %s", n, words)
	send(map[string]any{"role": "assistant", "content": text + strings.Repeat(" and on", 20)}, nil)
	if strings.Contains(newest, "slow") || work {
		select {
		case <-r.Context().Done():
			e.mu.Lock()
			e.given++
			e.mu.Unlock()
			return
		case <-e.release:
		}
	}
	if strings.Contains(newest, "long") {
		send(map[string]any{"content": strings.Repeat("\n\nOne more paragraph of the long answer, about "+words+".", 450)}, nil)
	}
	if strings.Contains(newest, "huge") {
		send(map[string]any{"content": strings.Repeat("\n\nOne more paragraph of the long answer, about "+words+".", 2000)}, nil)
	}
	send(map[string]any{}, "stop")
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (e *echoing) calls() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.requests)
}

// made waits for a number of requests.
func (e *echoing) made(t *testing.T, want int) {
	t.Helper()
	expect.Equal(t, e.calls(), want, "requests")
}

// assertSent checks that the newest request contains words, assertNotSent that it has none of them.
func (e *echoing) assertSent(t *testing.T, words ...string) {
	t.Helper()
	for _, word := range words {
		if body, _ := e.last(); !strings.Contains(body, word) {
			t.Errorf("the model is not told of %s: %.3000s", word, body)
		}
	}
}

func (e *echoing) assertNotSent(t *testing.T, words ...string) {
	t.Helper()
	for _, word := range words {
		if body, _ := e.last(); strings.Contains(body, word) {
			t.Errorf("the model is told of %s: %.3000s", word, body)
		}
	}
}

func (e *echoing) last() (body, newest string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.requests) == 0 {
		return "", ""
	}
	return e.requests[len(e.requests)-1], e.newest[len(e.newest)-1]
}

func (e *echoing) givenUp() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.given
}

// withEditing is a homeserver, a bot of you and friend, and a model that echoes.
func withEditing(t *testing.T) (*running, *echoing) {
	t.Helper()
	m := &echoing{release: make(chan struct{})}
	return withModel(t, m), m
}

// withModel is a homeserver, and a bot of you and friend with a model.
func withModel(t *testing.T, model http.Handler) *running {
	t.Helper()
	r := withHomeserver(t)
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	r.configure(`"rehearsal:", model: rehearsal`, `"`+server.URL+`/v1", model: m, window: 16000`)
	r.configure("llm:", "harvest: {enabled: false}\nllm:")
	return r
}

// direct starts the bot and returns its direct chat with you.
func (r *running) direct() (room string) {
	r.start()
	return r.meetDirect()
}

// shownEvent is a message of the bot as a client shows it.
type shownEvent struct{ id, body string }

// roomEvent is an event as tests look at it.
type roomEvent struct {
	ID           string `json:"event_id"`
	Type, Sender string
	Content      struct {
		Body, MsgType string
		New           *struct{ Body string } `json:"m.new_content"`
		Relates       struct {
			Type  string `json:"rel_type"`
			Event string `json:"event_id"`
		} `json:"m.relates_to"`
	}
}

// own lists the messages of the bot in a room that were not taken back, edits among them.
func (r *running) own(room string) (all []roomEvent) {
	for _, raw := range r.s.Events(room) {
		var e roomEvent
		if json.Unmarshal(raw, &e) == nil && e.Sender == itself && e.Type == "m.room.message" && e.Content.Body != "" {
			all = append(all, e)
		}
	}
	return all
}

// shown lists the bot's messages in a room as clients show them.
func (r *running) shown(room string) (all []shownEvent) {
	for _, e := range r.own(room) {
		if e.Content.New == nil {
			all = append(all, shownEvent{e.ID, e.Content.Body})
		} else if i := slices.IndexFunc(all, func(s shownEvent) bool { return s.id == e.Content.Relates.Event }); i >= 0 {
			all[i].body = e.Content.New.Body
		}
	}
	return all
}

// showing waits until the bot shows as many messages in room as there are texts, and
// that each begins like its text.
func (r *running) showing(room string, texts ...string) []shownEvent {
	r.t.Helper()
	var last []shownEvent
	defer func() {
		if r.t.Failed() {
			r.t.Logf("shown: %.200q", last)
		}
	}()
	r.until(fmt.Sprintf("not shown: %q", texts), func() bool {
		last = r.shown(room)
		if len(last) != len(texts) {
			return false
		}
		for i, text := range texts {
			if !strings.Contains(last[i].body, text) {
				return false
			}
		}
		return true
	})
	return last
}

// settles is showing, and then waits for empty queues.
func (r *running) settles(room string, texts ...string) []shownEvent {
	r.t.Helper()
	shown := r.showing(room, texts...)
	r.settled()
	return shown
}

func (r *running) edit(user, room, event, text string) string {
	return r.s.Post(user, room, "m.room.message", map[string]any{"msgtype": "m.text", "body": "* " + text,
		"m.new_content": map[string]any{"msgtype": "m.text", "body": text, "m.mentions": map[string]any{}},
		"m.relates_to":  map[string]any{"rel_type": "m.replace", "event_id": event}})
}

func (r *running) react(user, room, event, key string) {
	r.s.Post(user, room, "m.reaction", map[string]any{"m.relates_to": map[string]any{"rel_type": "m.annotation", "event_id": event, "key": key}})
}

func (r *running) redact(user, room, event string) {
	r.s.Post(user, room, "m.room.redaction", map[string]any{"redacts": event})
}

// count runs a query for a number on the bot's database.
func (r *running) count(query string, args ...any) (n int) {
	r.t.Helper()
	db := expect.Must(store.Open(r.t.Context(), filepath.Join(r.dir, "data", "bot.db"), reverie.Migrations))(r.t)
	defer db.Close()
	expect.OK(r.t, db.QueryRowContext(r.t.Context(), query, args...).Scan(&n))
	return n
}

// until waits until something holds that the homeserver need not hear of.
func (r *running) until(what string, holds func() bool) {
	r.t.Helper()
	until(r.t, what, holds)
}

// settled waits for empty queues.
func (r *running) settled() {
	r.t.Helper()
	r.until("something is left to be done", func() bool {
		return r.count(`SELECT (SELECT count(*) FROM inbox WHERE state = 'new') + (SELECT count(*) FROM outbox WHERE state IN ('pending', 'draft')) + (SELECT count(*) FROM pending_redaction) + (SELECT count(*) FROM redacted_message)`) == 0
	})
}

// takenIn waits until the session has received an event.
func (r *running) takenIn(room, event string) {
	r.t.Helper()
	r.until("not taken in", func() bool { return r.s.Read(room, itself) == event })
}

// forgot checks that words occur nowhere.
func (r *running) forgot(words ...string) {
	r.t.Helper()
	for _, word := range words {
		expect.Equal(r.t, r.traces(word), 0, "places where %s stands", word)
	}
}

// traces counts the places where a model or a search can read a word.
func (r *running) traces(word string) int {
	like := "%" + word + "%"
	return r.count(`SELECT (SELECT count(*) FROM message WHERE text LIKE ?1 OR tail LIKE ?1 OR short LIKE ?1) + (SELECT count(*) FROM message WHERE calls LIKE ?1)
		+ (SELECT count(*) FROM past_message WHERE text LIKE ?1) + (SELECT count(*) FROM memory WHERE text LIKE ?1 OR quote LIKE ?1)
		+ (SELECT count(*) FROM inbox WHERE text LIKE ?1) + (SELECT count(*) FROM outbox WHERE text LIKE ?1)`, like)
}

// An answered message edited ten times in a second gets one new answer to the last words, in the
// event of the first answer.
// Holds F34, M1.
func TestEditedAfterTheAnswer(t *testing.T) {
	r, m := withEditing(t)
	room := r.direct()
	asked := r.s.Say(you, room, "tell me of #apple")
	was := r.settles(room, "answer 1 to #apple")
	for i := range 9 {
		r.edit(you, room, asked, fmt.Sprintf("tell me of #pear%d", i))
	}
	r.edit(you, room, asked, "tell me of #plum")
	now := r.settles(room, "answer 2 to #plum")
	if was[0].id != now[0].id || m.calls() != 2 {
		t.Errorf("%s became %s, after %d requests", was[0].id, now[0].id, m.calls())
	}
	m.assertNotSent(t, "#apple", "#pear")
	r.forgot("#apple", "#pear")
	r.s.Say(you, room, "and of #fig")
	r.showing(room, "to #plum", "answer 3 to #fig")
	m.assertSent(t, "#plum")
	m.assertNotSent(t, "#apple", "answer 1")
}

// A message edited ten times during its answer: the request is cancelled and made once more, in the same message.
// Holds F34, M2.
func TestEditedWhileAnswering(t *testing.T) {
	r, m := withEditing(t)
	room := r.direct()
	asked := r.s.Say(you, room, "slow #apple")
	draft := r.showing(room, "answer 1 to #apple")
	for i := range 9 {
		r.edit(you, room, asked, fmt.Sprintf("slow #pear%d", i))
	}
	r.edit(you, room, asked, "quick #plum")
	r.until("the request is not given up", func() bool { return m.givenUp() == 1 })
	now := r.settles(room, "answer 2 to #plum")
	if now[0].id != draft[0].id || m.calls() != 2 {
		t.Errorf("%s became %s, after %d requests", draft[0].id, now[0].id, m.calls())
	}
	r.forgot("#apple", "#pear")
}

// A message edited between tools and answer: the tool's notes go with the old words, and the model
// is told that it acted.
// Holds F34, M2.
func TestEditedDuringTools(t *testing.T) {
	r, m := withEditing(t)
	room := r.direct()
	asked := r.s.Say(you, room, "keep slow #apple")
	r.until("no second round", func() bool { return m.calls() == 2 })
	r.edit(you, room, asked, "keep #plum")
	r.settles(room, "to #plum")
	if _, newest := m.last(); !strings.Contains(newest, "You answered this before and used append_memory") {
		t.Errorf("the model is told %q", newest)
	}
	expect.Equal(t, r.count(`SELECT count(*) FROM memory WHERE state = 'active' AND text LIKE '%#plum%'`), 1, "entries of the new words")
	expect.Equal(t, r.count(`SELECT count(*) FROM memory WHERE text LIKE '%#apple%' OR quote LIKE '%#apple%'`), 0, "entries of the old ones")
}

// An edit of an older message changes the history but not its answer.
// Holds M1.
func TestEditedBeforeTheNewest(t *testing.T) {
	r, m := withEditing(t)
	room := r.direct()
	first := r.s.Say(you, room, "tell me of #apple")
	r.settles(room, "answer 1 to #apple")
	r.s.Say(you, room, "and of #fig")
	was := r.settles(room, "answer 1", "answer 2 to #fig")
	r.edit(you, room, first, "tell me of #plum") // comes with the next message, and before it
	r.s.Say(you, room, "and then #kiwi")
	now := r.showing(room, "answer 1 to #apple", "answer 2 to #fig", "answer 3 to #kiwi")
	if was[0].id != now[0].id || was[0].body != now[0].body {
		t.Errorf("%v became %v", was, now)
	}
	m.assertSent(t, "tell me of #plum")
	m.assertNotSent(t, "tell me of #apple")
}

// Edits between commands and questions are answered in place.
func TestEditedCommands(t *testing.T) {
	r, m := withEditing(t)
	room := r.direct()
	asked := r.s.Say(you, room, "!remembr #apple is green")
	was := r.settles(room, "There is no command")
	r.edit(you, room, asked, "!remember #apple is green")
	r.settles(room, "Remembered")
	r.edit(you, room, asked, "do you know of #fig?")
	r.settles(room, "answer 1 to #fig")
	expect.Equal(t, r.count(`SELECT count(*) FROM memory WHERE state = 'active'`), 0, "entries are left of the words before")
	r.edit(you, room, asked, "!whoami")
	now := r.settles(room, "You are "+you)
	if was[0].id != now[0].id || m.calls() != 1 {
		t.Errorf("%v became %v after %d requests", was, now, m.calls())
	}
	r.s.Say(you, room, "hello #kiwi")
	r.showing(room, "You are", "to #kiwi")
	m.assertNotSent(t, "#fig")
}
