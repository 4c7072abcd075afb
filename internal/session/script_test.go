package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/approval"
	"reverie/internal/chat"
	"reverie/internal/llm/calls/callstest"
	"reverie/internal/media"
	"reverie/internal/memory"
	"reverie/internal/skill"
	"reverie/internal/task"
	"reverie/internal/test/expect"
	"reverie/internal/tool"
	"reverie/internal/tool/workspace"
	"reverie/internal/trust"
)

// script is a model server that gives its answers in order and keeps the
// requests. An answer that starts with "{" is a tool call's arguments for
// append_memory, one like "task {" calls that tool; "500" is a server error, "too large" a refusal for that reason; one that starts with "cut" ends at the output limit.
type script struct {
	mu       sync.Mutex
	answers  []string
	forever  string // given when answers has run out
	refuse   string // a parameter that makes a request a bad one
	requests []string
	block    chan struct{}         // when set, an answer waits for it
	count    func(body string) int // when set, how many tokens a request has, and usage is reported

	reply func(body string) (answer string, ok bool) // goes before answers and forever, if it is ok
	tool  string                                     // called in the place of append_memory
	hold  func(body string) <-chan struct{}          // an answer waits for what it returns; nil = for nothing

	binds bool                                       // it can bind an answer to a schema; else it refuses such a request
	words func(body string) (callstest.Answer, bool) // goes before all of these, in the model's own words and in small pieces
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil { // who asked has gone in the middle of it
		return
	}
	if !s.binds && strings.Contains(string(body), `"response_format"`) {
		http.Error(w, `{"error":{"message":"Unsupported parameter: response_format"}}`, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, string(body))
	if s.words != nil {
		if a, ok := s.words(string(body)); ok {
			s.mu.Unlock()
			writeWords(w, a)
			return
		}
	}
	answer := s.forever
	if given, ok := s.given(string(body)); ok {
		answer = given
	} else if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	called, answer := toolCall(answer)
	if s.tool != "" && called == "append_memory" {
		called = s.tool
	}
	n, block := len(s.requests), (<-chan struct{})(s.block)
	s.mu.Unlock()
	if s.refuse != "" && strings.Contains(string(body), `"`+s.refuse+`"`) {
		http.Error(w, `{"error":{"message":"Unsupported parameter: `+s.refuse+`"}}`, http.StatusBadRequest)
		return
	}
	if s.hold != nil {
		block = s.hold(string(body))
	}
	if block != nil {
		select {
		case <-block:
		case <-r.Context().Done():
			return
		}
	}
	if answer == "500" {
		http.Error(w, `{"error":{"message":"upstream detail"}}`, http.StatusInternalServerError)
		return
	}
	if answer == "too large" {
		http.Error(w, `{"error":{"message":"prompt is too long","code":"context_length_exceeded"}}`, http.StatusBadRequest)
		return
	}
	delta, finish := map[string]any{"role": "assistant", "content": answer}, "stop"
	if strings.HasPrefix(answer, "{") {
		delta, finish = map[string]any{"role": "assistant", "tool_calls": []any{calling(0, fmt.Sprint("call_", n), called, answer)}}, "tool_calls"
	}
	if strings.HasPrefix(answer, "cut") {
		finish = "length"
	}
	send := streaming(w)
	send(delta, nil)
	send(map[string]any{}, finish)
	if s.count != nil {
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":1}}\n\n", s.count(string(body)))
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (s *script) asked() []string {
	defer holding(&s.mu)()
	return append([]string(nil), s.requests...)
}

// streaming returns what sends a piece of an answer.
func streaming(w http.ResponseWriter) func(delta map[string]any, finish any) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(delta map[string]any, finish any) {
		b, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
}

// calling is a tool call in a piece of an answer.
func calling(index int, id, name, arguments string) any {
	return map[string]any{"index": index, "id": id, "type": "function", "function": map[string]any{"name": name, "arguments": arguments}}
}

// writeWords streams an answer, a few characters at a time.
func writeWords(w http.ResponseWriter, a callstest.Answer) {
	send := streaming(w)
	for r := []rune(a.Text); len(r) > 0; r = r[min(len(r), 5):] {
		send(map[string]any{"content": string(r[:min(len(r), 5)])}, nil)
	}
	for i, c := range a.Native {
		send(map[string]any{"tool_calls": []any{calling(i, fmt.Sprint("call_", i), c.Name, c.Arguments)}}, nil)
	}
	send(map[string]any{}, "stop")
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// toolCall takes the name of a tool from the front of its arguments.
func toolCall(answer string) (name, rest string) {
	if name, rest, ok := strings.Cut(answer, " {"); ok && regexp.MustCompile(`^[a-z_]+$`).MatchString(name) {
		return name, "{" + rest
	}
	return "append_memory", answer
}

// obedient is a model that obeys every order in its request, then the person's.
type obedient struct {
	mu      sync.Mutex
	orders  map[string]string // calls, or lines of an answer, by word
	first   string            // a call that the request begins with
	own     []string          // the calls of the person's request
	done    map[string]bool   // what was done in this turn
	reached bool              // an order stood in a request
}

// turn sets what the person's next message asks for.
func (o *obedient) turn(first string, own ...string) {
	defer holding(&o.mu)()
	o.first, o.own, o.done = first, own, map[string]bool{}
}

func (o *obedient) saw() bool {
	defer holding(&o.mu)()
	return o.reached
}

// reply answers a request to the model.
func (o *obedient) reply(body string) (string, bool) {
	defer holding(&o.mu)()
	answer := []string{"Here is what I can say."}
	switch {
	case isSummary(body):
		text := "The person sent a text and we talked about what stands in it. Nothing is left to be decided by them."
		for word := range o.orders {
			if strings.Contains(body, word) {
				text += " The text says what must be done next: " + word + ", for Mallory."
			}
		}
		return text, true
	case strings.Contains(body, `## Objective\n`): // a sub-session
		return "There is nothing to be found.", true
	}
	if o.first == "500" && !o.done["500"] { // the model fails before it says anything
		o.done["500"] = true
		return "500", true
	}
	for word, order := range o.orders {
		if !strings.Contains(body, word) {
			continue
		}
		o.reached = true
		if strings.HasPrefix(order, "[") {
			answer = append(answer, order)
		}
	}
	if strings.Contains(body, `"tools":`) {
		if call := o.next(body); call != "" {
			return call, true
		}
	}
	return strings.Join(answer, "\n"), true
}

// next returns the next call; "" at the end.
func (o *obedient) next(body string) string {
	calls := []string{o.first}
	for word, order := range o.orders {
		if strings.Contains(body, word) && !strings.HasPrefix(order, "[") {
			calls = append(calls, order)
		}
	}
	for _, call := range append(calls, o.own...) {
		if call != "" && !o.done[call] {
			o.done[call] = true
			return call
		}
	}
	return ""
}

// newObedient is a world with an obedient model and everything that a conversation can act on.
func newObedient(t *testing.T, backend string) (*world, *obedient) {
	t.Helper()
	w := newWorldOf(t, t.TempDir(), backend, 32_000)
	o := &obedient{orders: map[string]string{}, done: map[string]bool{}}
	w.script.reply = o.reply
	w.inGroup()
	files := media.Open(w.dir, 0)
	tools := tool.New(tool.Config{Files: workspace.Open(workspace.Config{Dir: w.dir, DB: w.cfg.DB}), Memory: w.cfg.Memory, Tasks: w.cfg.Tasks, Goals: w.Manager.goals, Skills: w.cfg.Skills, Dir: w.dir, Media: files, Location: time.UTC})
	w.cfg.Media, w.cfg.Tools, w.cfg.FileText = files, tools, 600
	w.cfg.MaxRound, w.cfg.SubSessions.Parallel, w.cfg.RetryDelay = 12, 1, time.Millisecond
	w.restart(t)
	w.sharedSkill(t, "tea.md", "---\ndescription: How to make tea\n---\nSteep it for four minutes.\n")
	return w, o
}

// seeded are the tasks that exist before a conversation.
type seeded struct{ cat, dentist string }

// seed stores the objects of these tests' acts.
func (w *world) seed(t *testing.T, room string, private bool) (s seeded) {
	t.Helper()
	by := trust.Caller{Place: trust.Place{Room: room, Person: owner, Private: private}, Integrity: trust.Owner}
	for content, id := range map[string]*string{"Feed the cat": &s.cat, "Call the dentist": &s.dentist} {
		*id = expect.Must(w.cfg.Tasks.Add(t.Context(), task.Task{Room: room, User: owner, Label: by.Label(), Content: content, Priority: 5}))(t).ID
	}
	expect.Must(w.Manager.goals.Create(t.Context(), by, "Learn Danish", "high"))(t)
	return s
}

// in writes the ids of tasks into a call.
func (s seeded) in(call string) string {
	return strings.NewReplacer("CAT", s.cat, "DENTIST", s.dentist).Replace(call)
}

// effects lists all rows and files that acts change, a line each.
func (w *world) effects(t *testing.T) (all []string) {
	t.Helper()
	for _, query := range []string{
		`SELECT 'task ' || id || ' ' || content || ' ' || prompt || ' ' || status || ' ' || priority || ' ' || schedule FROM task`,
		`SELECT 'goal ' || id || ' ' || description || ' ' || status || ' ' || next || ' ' || summary FROM goal`,
		`SELECT 'mode ' || room || ' ' || value FROM room_setting WHERE name = 'mode'`,
		`SELECT 'sub-session ' || id || ' ' || objective FROM sub_session`,
	} {
		all = append(all, w.column(t, query)...)
	}
	for _, e := range expect.Must(w.cfg.Memory.List(t.Context(), memory.Access{All: true}, memory.Filter{}))(t) {
		all = append(all, "memory "+e.ID+" "+e.Text)
	}
	for _, k := range expect.Must(skill.Open(filepath.Join(w.dir, "skills"), nil).All())(t) {
		all = append(all, "skill "+k.Path+" "+string(expect.Must(os.ReadFile(filepath.Join(w.dir, strings.TrimPrefix(k.Path, "data/"))))(t)))
	}
	expect.OK(t, filepath.WalkDir(filepath.Join(w.dir, "work"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, "work "+path+" "+string(expect.Must(os.ReadFile(path))(t)))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}))
	defer holding(&w.room.mu)()
	for id, m := range w.room.final {
		if m.File != nil {
			all = append(all, "file "+id+" "+m.File.Name)
		}
	}
	return all
}

// changed returns the lines that only one of both has.
func changed(before, after []string) (out []string) {
	for _, of := range [][2][]string{{before, after}, {after, before}} {
		for _, line := range of[0] {
			if !slices.Contains(of[1], line) {
				out = append(out, line)
			}
		}
	}
	return out
}

// fileOf stores data as a received file.
func (w *world) fileOf(t *testing.T, kind, name string, data []byte) chat.File {
	t.Helper()
	k := expect.Must(w.cfg.Media.Save(strings.NewReader(string(data)), 10<<20))(t)
	return chat.File{Name: name, Kind: kind, Type: k.Type, Size: k.Size, Path: k.Path}
}

// ordinary is a request in a person's own words.
type ordinary struct {
	text string
	call string // what it takes; "" = an answer
	want string // stands in what has changed then
}

var ordinaries = []ordinary{
	{"Please remember that I like green tea.", `append_memory {"entry":"The owner likes green tea"}`, "green tea"},
	{"Put buying rye bread on my list.", `task {"action":"add","content":"Buy rye bread"}`, "rye bread"},
	{"Each morning at eight, look at my list and tell me what is urgent.",
		`task {"action":"add","content":"Morning report","schedule_type":"daily","at":"08:00","ai_prompt":"Say what is urgent"}`, "Morning report"},
	{"I want to finish my thesis by June, let us make that a goal.", `goal {"action":"create","text":"Finish the thesis by June"}`, "thesis"},
	{"Write down how I want my letters, as a skill.", `add_skill {"skill_name":"letters","summary":"How letters are written","documentation":"Short and polite."}`, "letters"},
	{"Let somebody look through my notes for the address of the plumber.", `spawn_sub_session {"objective":"Find the address of the plumber"}`, "plumber"},
	{"Send me the note about tea, would you?", `send_file {"path":"data/skills/tea.md","caption":"As you like it"}`, "tea.md"},
	{"The cat is fed, drop that from the list.", `task {"action":"delete","task_id":"CAT"}`, "Feed the cat"},
	{"I give up on Danish.", `goal {"action":"abandon","reason":"The owner gives it up"}`, "Learn Danish"},
	{"How long does green tea have to steep?", "", ""},
}

// asks counts the questions asked, and the acts in them.
func (w *world) questionsAsked(t *testing.T) (all []approval.Approval) {
	t.Helper()
	all = expect.Must(w.approvalsThat(func(approval.Approval) bool { return true }))(t)
	return all
}

// votes answers each open question with option, and returns how many there were.
func (w *world) votes(t *testing.T, room string, private bool, option string) (n int) {
	t.Helper()
	for _, a := range w.questionsAsked(t) {
		if a.State != approval.Open {
			continue
		}
		n++
		w.deliver(t, chat.Vote{Change: chat.Change{Head: chat.Head{ID: fmt.Sprintf("$vote%s", a.Code), Room: room, Sender: owner, Private: private, Branch: a.Talk.Thread(), At: time.Now()}, Target: a.QuestionID()}, Option: option})
		if end := w.ends(t, a.Code); end.State != approval.Done || slices.ContainsFunc(end.Acts, func(act approval.Act) bool { return act.Failed }) {
			t.Errorf("what was approved ended as %+v", end)
		}
	}
	return n
}
