package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"reverie/cmd/bot/config"
	"reverie/internal/chat"
	dreamt "reverie/internal/dream/report"
	"reverie/internal/llm"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/memory"
	"reverie/internal/questions"
	"reverie/internal/settings"
	"reverie/internal/task"
	"reverie/internal/test/expect"
)

var quotedMemory = regexp.MustCompile(`<memory [a-z0-9]+>(.*?)</memory [a-z0-9]+>`)

// numberedMessage is a line of a request to harvest.
var numberedMessage = regexp.MustCompile(`(?m)^\[(\d+)\] \S+ \S+ \S+: (.*)$`)

// lastAsked is the newest message of a request to a model.
func lastAsked(body []byte) (text string, stream bool) {
	var request struct {
		Stream   bool
		Messages []struct{ Content string }
	}
	if json.Unmarshal(body, &request) != nil || len(request.Messages) == 0 {
		return "", false
	}
	return request.Messages[len(request.Messages)-1].Content, request.Stream
}

// reply is the whole answer of a model.
func reply(w http.ResponseWriter, stream bool, text string) {
	content, _ := json.Marshal(text)
	if !stream {
		fmt.Fprintf(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}]}`, content)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", content)
}

// judge is a model that knows who moved and who plays an instrument, and extracts every sentence
// about Jana as a fact.
func judge(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	prompt, stream := lastAsked(body)
	if prompt == "" {
		http.NotFound(w, r)
		return
	}
	reply(w, stream, judgement(prompt))
}

func judgement(prompt string) string {
	var said []string
	for _, m := range numberedMessage.FindAllStringSubmatch(prompt, -1) {
		for _, fact := range regexp.MustCompile(`Jana [^.]+`).FindAllString(m[2], -1) {
			said = append(said, fmt.Sprintf(`{"message": %s, "quote": %q, "fact": %q, "subject": "Jana", "kind": "fact"}`, m[1], fact, fact))
		}
	}
	texts := quotedMemory.FindAllStringSubmatch(prompt, -1)
	texts = texts[len(texts)%2:]
	for i := 0; i+1 < len(texts); i += 2 {
		a, b, verdict := texts[i][1], texts[i+1][1], "neither"
		switch {
		case strings.Contains(a, "lives in") && strings.Contains(b, "moved to") && a[:3] == b[:3]:
			verdict = "keep_second"
		case strings.Contains(a, "tennis") && strings.Contains(b, "tennis"):
			verdict = "merge"
		}
		said = append(said, fmt.Sprintf(`{"pair": %d, "verdict": %q}`, i/2+1, verdict))
	}
	return "[" + strings.Join(said, ",") + "]"
}

// TestDreaming runs the binary beside that model.
func TestDreaming(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(judge))
	t.Cleanup(server.Close)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "dreaming"), RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("JUDGE", server.URL+"/v1")
			return nil
		},
	})
}

// TestHarvestBeforeDream: a message ten minutes before a dream is read by it and supersedes the
// older fact; the owner is told. !dream also reads messages just sent.
func TestHarvestBeforeDream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDayWith(t, http.HandlerFunc(judge), smallModel, func(c *config.Config) {
			c.LLM.Models = []config.Model{{ModelConfig: llm.ModelConfig{Name: "judge", BaseURL: "http://model.test/v1", Model: "judge"}}}
			c.Harvest.Calls = 500
			c.Dreaming = config.Dreaming{Notice: true, When: task.Schedule{Type: "cron", Expression: "30 3 * * *"}}
		})
		began := time.Now()
		ann := d.person("ann")
		room := d.room(ann, peer.Room{Name: "Ann", Direct: true, Encrypted: true, Invite: []string{d.bot}})
		say := func(after time.Duration, text string) {
			sleepUntil(t.Context(), began.Add(after))
			expect.Must(ann.Say(t.Context(), room, text))(d.t)
		}
		known := func(states ...memory.State) string {
			t.Helper()
			all := expect.Must(d.parts.memory.List(t.Context(), memory.Access{All: true}, memory.Filter{States: states}))(d.t)
			var texts []string
			for _, e := range all {
				texts = append(texts, e.Text)
			}
			return strings.Join(texts, ", ")
		}
		say(at(1, 0), "Jana lives in Berlin. Jana likes green tea. Jana plays tennis.")
		say(at(3, 20), "Jana moved to Hamburg.")
		sleepUntil(t.Context(), began.Add(at(3, 29)))
		if got := known(memory.Active); strings.Contains(got, "Hamburg") || !strings.Contains(got, "Berlin") {
			t.Fatalf("known before the dream: %s", got)
		}
		sleepUntil(t.Context(), began.Add(at(3, 34))) // a minute before it would be read by itself
		if got := known(memory.Active); !strings.Contains(got, "Jana moved to Hamburg") || strings.Contains(got, "Berlin") {
			t.Errorf("known in the morning: %s", got)
		}
		expect.Equal(t, known(memory.Superseded), "Jana lives in Berlin", "superseded")
		say(at(5, 0), "Jana plays chess.")
		say(at(5, 1), "!dream")
		sleepUntil(t.Context(), began.Add(at(5, 5)))
		if got := known(memory.Active); !strings.Contains(got, "chess") {
			t.Errorf("known after !dream: %s", got)
		}
		if !ann.told("New in my memory:\n- Jana lives in Berlin") || !ann.told("- Jana moved to Hamburg") || !ann.told("1 superseded") {
			t.Errorf("the owner heard %q", ann.notices)
		}
	})
}

// telling is a bot with the chats of its owner and guests, and its sent messages.
type telling struct {
	*service
	t      *testing.T
	out    *board
	events []chat.Event
	direct map[string]string // person → direct chat
	rooms  []string          // with others
	left   []string
	barred []string
}

func newTelling(t *testing.T, config string) *telling {
	t.Helper()
	b := openTest(t, small+config)
	w := &telling{t: t, out: &board{said: map[string]string{}, db: b.db}, direct: map[string]string{}}
	w.open(b)
	return w
}

// open connects b, as it is configured now.
func (w *telling) open(b *bot) {
	w.service = b.connect(connection{transport: w.out, rooms: tellingRooms{w: w},
		activeRooms: func(context.Context) ([]string, error) { return w.rooms, nil }})
}

// tellingRooms are the rooms of a telling.
type tellingRooms struct {
	chat.OneRoom
	w *telling
}

func (r tellingRooms) Left(_ context.Context, room string) (bool, error) {
	return slices.Contains(r.w.left, room), nil
}

func (r tellingRooms) DirectChat(_ context.Context, person string) (string, error) {
	return r.w.direct[person], nil
}

func (r tellingRooms) Allowed(user string) bool { return !slices.Contains(r.w.barred, user) }

// deliver records a notice.
func (w *telling) deliver(_ context.Context, in chat.Inbound) error {
	w.events = append(w.events, in.(chat.Event)) //nolint:forcetypeassert // nothing else is asked
	return nil
}

// doubt stores a question about two memories.
func (w *telling) doubt(scope memory.Scope, what string) {
	w.t.Helper()
	q := questions.Question{Run: "dream_1", Scope: scope, Why: "both are from the same time"}
	for i, e := range []*memory.Entry{&q.First, &q.Second} {
		var err error
		if *e, _, err = w.memory.Add(w.t.Context(), memory.Entry{Scope: scope, Text: fmt.Sprint(what, " ", i), Source: memory.UserExplicit}, w.cfg.Owner()); err != nil {
			w.t.Fatal(err)
		}
	}
	expect.Must(questions.Store{DB: w.db}.Add(w.t.Context(), q))(w.t)
}

// asked returns the questions since the last call, by room. With say, wanted ones are marked as sent.
func (w *telling) asked(say bool) map[string]string {
	w.t.Helper()
	expect.OK(w.t, w.asker.Ask(w.t.Context(), w.deliver))
	out := map[string]string{}
	for _, in := range w.events {
		if !in.Verbatim || in.Kind != chat.MemoryQuestion {
			w.t.Errorf("%+v", in)
		}
		wanted := expect.Must(w.asker.Wanted(w.t.Context(), in.ID))(w.t)
		if wanted {
			out[in.Room] += in.Text
		}
		if said := map[bool]string{true: in.Text}[wanted]; say {
			expect.OK(w.t, w.asker.Done(w.t.Context(), in.ID, said, nil))
		}
	}
	w.events = nil
	return out
}

const guestOfTest = "@guest:example.org"

// TestReportDream: the digest goes to the owner's latest direct chat only, without the facts of
// others, and only if configured.
func TestReportDream(t *testing.T) {
	w := newTelling(t, "dreaming: {notice: true}\n")
	owner := w.cfg.Owner()
	change := func(scope memory.Scope, text string) dreamt.Change {
		return dreamt.Change{Line: dreamt.Line{Scope: scope, ID: "mem_1", Text: text}, ByText: text + " now"}
	}
	r := dreamt.Report{Run: "dream_1", State: dreamt.Applied, Questions: []dreamt.Question{{Scope: memory.Private(owner)}},
		Superseded: []dreamt.Change{change(memory.Private(owner), "tea"), change(memory.Private(guestOfTest), "gin"), change(memory.Shared, "bread")}}
	tell := w.reportDream
	if tell(t.Context(), r); len(w.out.said) != 0 {
		t.Errorf("told nobody knows whom: %q", w.out.all())
	}
	w.direct = map[string]string{owner: "!own", guestOfTest: "!guest"}
	tell(t.Context(), r)
	got := strings.Join(w.out.all(), "\n")
	if len(w.out.said) != 1 || !strings.HasPrefix(got, "!own: ") || !strings.Contains(got, "tea now") || !strings.Contains(got, "bread now") || strings.Contains(got, "gin") || strings.Contains(got, "question") {
		t.Errorf("%q", w.out.all())
	}
	if tell(t.Context(), dreamt.Report{Run: "dream_2", State: dreamt.Nothing}); len(w.out.said) != 1 {
		t.Errorf("told of nothing: %q", w.out.all())
	}
	w.cfg.Dreaming.Questions = 0
	r.Run = "dream_3"
	if tell(t.Context(), r); !strings.Contains(w.out.said["dream_3"], "I have 1 question for you") {
		t.Errorf("%q", w.out.said["dream_3"])
	}
	w.cfg.Dreaming.Notice = false
	r.Run = "dream_4"
	if tell(t.Context(), r); w.out.said["dream_4"] != "" {
		t.Error("told though it is not wanted")
	}
}

// TestQuestionsReachPeople: people get questions on their own memory in their chat and language, a
// limited number per night, once. A room's are asked in the room, shared ones of the owner.
func TestQuestionsReachPeople(t *testing.T) {
	w := newTelling(t, "")
	owner := w.cfg.Owner()
	w.direct = map[string]string{owner: "!own", guestOfTest: "!guest", "@barred:example.org": "!barred"}
	w.rooms, w.left, w.barred = []string{"!group", "!gone"}, []string{"!gone"}, []string{"@barred:example.org"}
	expect.Must(w.db.Exec(`INSERT INTO room (id) VALUES ('!guest')`))(t)
	expect.OK(t, (settings.Store{DB: w.db}).Put(t.Context(), "!guest", settings.Language, "de", guestOfTest, time.Now()))
	for _, n := range []string{"gin", "rum", "ale", "rye"} {
		w.doubt(memory.Private(guestOfTest), n)
	}
	for scope, what := range map[memory.Scope]string{memory.Private(owner): "tea", memory.Shared: "bread", memory.Room("!group"): "soup", memory.Room("!gone"): "salt",
		memory.Private("@barred:example.org"): "oil", memory.Private("@nobody:example.org"): "fog", memory.Room("!unknown"): "ice"} {
		w.doubt(scope, what)
	}
	words := []string{"gin", "rum", "ale", "rye", "tea", "bread", "soup", "salt", "oil", "fog", "ice"}
	check := func(got map[string]string, want map[string][]string) {
		t.Helper()
		for room, text := range got {
			for _, word := range words {
				expect.Equal(t, strings.Contains(text, word+" "), slices.Contains(want[room], word), "%s: %s in %q", room, word, text)
			}
			if strings.Contains(text, "@") {
				t.Errorf("somebody is named in %q", text)
			}
		}
		expect.Equal(t, len(got), len(want), "rooms asked in: %q", got)
	}
	all := map[string][]string{"!guest": {"gin", "rum", "ale"}, "!own": {"tea", "bread"}, "!group": {"soup"}}
	first := w.asked(false)
	check(first, all)
	if !strings.Contains(first["!guest"], "Frage 1") || !strings.Contains(first["!guest"], "`!memory keep 1a`") || !strings.Contains(first["!own"], "Question ") {
		t.Errorf("%q", first)
	}
	delete(w.direct, owner) // others have come in before it was said
	check(w.asked(true), map[string][]string{"!guest": all["!guest"], "!group": all["!group"]})
	w.direct[owner] = "!own"
	check(w.asked(true), map[string][]string{"!own": all["!own"]})
	check(w.asked(true), nil)
	expect.Must(w.db.Exec(`UPDATE memory_question SET asked = asked - ? WHERE asked > 0`, questions.MinInterval.Milliseconds()+1))(t)
	check(w.asked(false), map[string][]string{"!guest": {"rye"}})
	w.direct[guestOfTest] = "!new" // where that was to be said is left
	check(w.asked(true), nil)
	check(w.asked(true), map[string][]string{"!new": {"rye"}})
	check(w.asked(true), nil)
	w.cfg.Dreaming.Questions = 0
	w.open(w.bot)
	w.doubt(memory.Private(owner), "cake")
	if got := w.asked(true); len(got) != 0 {
		t.Errorf("asked though nobody is to be: %q", got)
	}
}

// doubting is a model that cannot decide between two memories, and otherwise echoes.
type doubting struct{ *echoing }

func (d doubting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if prompt, stream := lastAsked(body); strings.Contains(prompt, "<memory ") {
		var said []string
		for i := range 10 {
			said = append(said, fmt.Sprintf(`{"pair": %d, "verdict": "unsure"}`, i+1))
		}
		reply(w, stream, "["+strings.Join(said, ",")+"]")
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	d.echoing.ServeHTTP(w, r)
}

var keepNumber = regexp.MustCompile(`!memory keep ([0-9]+)a`)

// TestQuestionsOfADream: two people have contradicting memories. A dream finds them and each person
// is asked once in their own chat, also over a restart. The model knows the question, and an answer
// by number decides it.
func TestQuestionsOfADream(t *testing.T) {
	m := &echoing{release: make(chan struct{})}
	r := withModel(t, doubting{m})
	stop := r.start()
	rooms, names, places := map[string]string{}, map[string]string{you: "Anna", friend: "Ben"}, map[string]string{you: "Berlin Hamburg", friend: "Rome Oslo"}
	for _, who := range []string{you, friend} {
		room := r.s.Room(who, matrixtest.NewRoom{Direct: true, Invite: []string{itself}})
		r.until("the bot does not come", func() bool { return r.s.Membership(room, itself) == "join" })
		rooms[who] = room
		towns := strings.Fields(places[who])
		for i, fact := range []string{" lives in " + towns[0] + ".", " lives in " + towns[1] + ".", " plays the cello.", " works as a nurse.", " has two cats."} {
			r.s.Say(who, room, "!remember "+names[who]+fact)
			r.until("not remembered", func() bool { return len(r.shown(room)) == i+1 })
		}
	}
	r.s.Say(you, rooms[you], "!dream")
	number := map[string]string{}
	for _, who := range []string{you, friend} {
		var asked string
		r.until("nobody is asked", func() bool {
			for _, raw := range r.s.Events(rooms[who]) {
				var e roomEvent
				if json.Unmarshal(raw, &e) == nil && e.Sender == itself && strings.HasSuffix(e.Type, ".poll.start") {
					asked = string(raw)
				}
			}
			return asked != ""
		})
		for other, towns := range places {
			if got := strings.Contains(asked, strings.Fields(towns)[0]) && strings.Contains(asked, strings.Fields(towns)[1]); got != (other == who) || strings.Contains(asked, names[other]) != (other == who) {
				t.Errorf("%s is asked %q", who, asked)
			}
		}
		expect.Has(t, asked, "!memory keep")
		number[who] = keepNumber.FindStringSubmatch(asked)[1]
	}
	r.until("not done with", func() bool { return r.count(`SELECT count(*) FROM memory_question WHERE asked > 0`) == 2 })
	r.settled()
	was := len(r.shown(rooms[you])) + len(r.shown(rooms[friend]))
	stop()
	r.start()
	r.s.Say(you, rooms[you], "!memory keep "+number[friend]+"a")
	r.until("no answer", func() bool { return len(r.shown(rooms[you]))+len(r.shown(rooms[friend])) == was+1 })
	if all := r.shown(rooms[you]); !strings.Contains(all[len(all)-1].body, "no such question") {
		t.Errorf("%q", all[len(all)-1])
	}
	r.s.Say(friend, rooms[friend], "!memory keep "+number[friend]+"a")
	r.until("not settled", func() bool {
		return r.count(`SELECT count(*) FROM memory WHERE text = 'Ben lives in Oslo.' AND state = 'superseded'`) == 1
	})
	expect.Equal(t, r.count(`SELECT count(*) FROM memory WHERE state = 'superseded'`), 1, "superseded")
	r.s.Say(you, rooms[you], "tell me of #apple")
	r.until("no answer", func() bool {
		all := r.shown(rooms[you])
		return strings.Contains(all[len(all)-1].body, "to #apple")
	})
	m.assertSent(t, "!memory keep "+number[you]+"a")
	m.assertNotSent(t, "Rome")
	r.settled()
	r.s.Say(friend, rooms[friend], "!forget Ben lives in Rome.")
	r.until("not forgotten", func() bool { return r.count(`SELECT count(*) FROM memory WHERE text LIKE 'Ben lives%'`) == 0 })
	r.settled()
	if n := r.count(`SELECT (SELECT count(*) FROM message WHERE text LIKE '%) 20%Ben lives%') + (SELECT count(*) FROM outbox WHERE text || poll LIKE '%) 20%Ben lives%')`); n != 0 {
		t.Errorf("what was forgotten is still asked in %d places", n)
	}
}
