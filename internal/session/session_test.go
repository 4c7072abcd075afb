package session

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/manner"
	"reverie/internal/memory"
	"reverie/internal/profile"
	"reverie/internal/prompt"
	"reverie/internal/prompt/section"
	"reverie/internal/recall"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/task"
	"reverie/internal/test/expect"
	"reverie/internal/tool"
	"reverie/internal/tool/workspace"
	"reverie/internal/trust"
	"reverie/internal/usage"
	"reverie/internal/window"
)

// room is a transport that stores messages like a homeserver: sending the same ID again changes the message.
type room struct {
	mu      sync.Mutex
	order   []string
	final   map[string]chat.Outgoing
	drafts  map[string]int // by room
	gone    map[string]bool
	removed []string
	handled chan string
	onSay   func(chat.Outgoing)
	db      *store.DB
}

// stubRooms is a chat.Rooms with a test's answers; others are as without a connection.
type stubRooms struct {
	chat.Rooms
	self       string
	allowed    func(user string) bool
	people     func(ctx context.Context, room string) (int, error)
	directWith func(ctx context.Context, room string) (person string, err error)
	directChat func(ctx context.Context, person string) (room string, err error)
	left       func(ctx context.Context, room string) (bool, error)
}

func (r *stubRooms) UserID() string { return r.self }

func (r *stubRooms) Allowed(user string) bool { return r.allowed == nil || r.allowed(user) }

func (r *stubRooms) People(ctx context.Context, room string) (int, error) {
	if r.people == nil {
		return r.Rooms.People(ctx, room)
	}
	return r.people(ctx, room)
}

func (r *stubRooms) DirectWith(ctx context.Context, room string) (string, error) {
	if r.directWith == nil {
		return r.Rooms.DirectWith(ctx, room)
	}
	return r.directWith(ctx, room)
}

func (r *stubRooms) DirectChat(ctx context.Context, person string) (string, error) {
	if r.directChat == nil {
		return "", nil
	}
	return r.directChat(ctx, person)
}

func (r *stubRooms) Left(ctx context.Context, room string) (bool, error) {
	if r.left == nil {
		return false, nil
	}
	return r.left(ctx, room)
}

// holding locks mu until the returned function is called.
func holding(mu *sync.Mutex) (unlock func()) {
	mu.Lock()
	return mu.Unlock
}

func newRoom() *room {
	return &room{final: map[string]chat.Outgoing{}, drafts: map[string]int{}, handled: make(chan string, 100)}
}

func (r *room) Send(_ context.Context, in string, m chat.Outgoing) error {
	if r.onSay != nil {
		r.onSay(m)
	}
	defer holding(&r.mu)()
	if m.Draft {
		r.drafts[in]++
		return nil
	}
	if m.Closed {
		if old := r.final[m.ID]; len(old.Options) > 0 { // an open poll
			r.final[m.ID] = m
		}
		return nil
	}
	if _, known := r.final[m.ID]; !known {
		r.order = append(r.order, m.ID)
	}
	r.final[m.ID] = m
	return nil
}

func (r *room) SendFinal(ctx context.Context, in string, m chat.Outgoing, _ []string, also func(context.Context, *sql.Tx) error) error {
	if err := store.InTx(ctx, r.db, func(tx *sql.Tx) error { return also(ctx, tx) }); err != nil {
		return err
	}
	return r.Send(ctx, in, m)
}

func (r *room) Redact(_ context.Context, _, id string) error {
	defer holding(&r.mu)()
	r.removed = append(r.removed, id)
	return nil
}

func (r *room) ShowTyping(context.Context, string, bool) {}

func (r *room) MessageCancelled(_ context.Context, id string) (bool, error) {
	defer holding(&r.mu)()
	return r.gone[id], nil
}

func (r *room) Ack(_ context.Context, id string) error { r.handled <- id; return nil }

// said returns the text of the answer to the message id, and read that of the message id.
func (r *room) said(id string) chat.Outgoing { return r.read("re:" + id) }

func (r *room) read(id string) chat.Outgoing {
	defer holding(&r.mu)()
	return r.final[id]
}

func (r *room) count() int {
	defer holding(&r.mu)()
	return len(r.order)
}

const owner = "@owner:example.org"

// chatWithLocal are the roles of a world with one model.
var chatWithLocal = map[string][]string{"chat": {"local"}}

// modelsOf are models without second attempts.
func modelsOf(t *testing.T, roles map[string][]string, all ...llm.ModelConfig) *llm.Models {
	t.Helper()
	return llm.New(llm.Config{Models: all, Roles: roles, Retry: llm.Retry{Attempts: 1}})
}

// served is a model behind a handler.
func served(t *testing.T, name string, window int, h http.HandlerFunc) llm.ModelConfig {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return llm.ModelConfig{Name: name, BaseURL: server.URL + "/v1", Model: "m", MaxOutput: 500, Window: window}
}

// notice checks that a notice has parts; answers checks an answer of the model.
func notice(t expect.T, got chat.Outgoing, parts ...string) {
	t.Helper()
	expect.False(t, !got.Notice, "no notice: %+v", got)
	expect.Has(t, got.Text, parts...)
}

func answers(t expect.T, got chat.Outgoing, text string) {
	t.Helper()
	expect.False(t, got.Notice || got.Text != text, "got %+v, want the answer %q", got, text)
}

// world is a manager with a fake transport and model; the rest is real.
type world struct {
	*Manager
	room   *room
	who    *stubRooms
	script *script
	dir    string
	stop   func()
	n      int // messages without a name of their own
}

func newWorld(t *testing.T, dir string, answers ...string) *world {
	t.Helper()
	return newWorldOf(t, dir, "flat_file", 16_000, answers...)
}

func newWorldOf(t *testing.T, dir string, backend string, window int, answers ...string) *world {
	t.Helper()
	w := &world{room: newRoom(), script: &script{answers: answers, forever: "fine"}, dir: dir}
	models := modelsOf(t, chatWithLocal, served(t, "local", window, w.script.ServeHTTP))
	expect.OK(t, storetest.WriteDefaults(dir))
	db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	counts := &usage.Store{DB: db, Location: time.UTC, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	w.room.db, w.who = db, &stubRooms{Rooms: offlineRooms{db: db}}
	var mem *memory.Store
	mem = expect.Must(memory.Open(t.Context(), memory.Config{DB: db, Dir: dir, Owner: owner, Backend: backend,
		BeforeForget: func(ctx context.Context) error { return recall.IndexAll(ctx, history.NewStore(db), mem) }}))(t)
	tasks, skills, past := task.NewStore(db, task.Config{}), skill.Open(filepath.Join(dir, "skills"), nil), history.NewStore(db)
	tools := tool.New(tool.Config{Files: workspace.Open(workspace.Config{Dir: dir, DB: db}), Memory: mem, Tasks: tasks, Goals: goal.NewStore(db, time.Now), Skills: skills, Dir: dir, Location: time.UTC})
	profiles := profile.Store{Dir: dir, Location: time.UTC}
	assembler := expect.Must(prompt.New(prompt.Config{Layout: "stable", DB: db, History: past, Sources: &section.Sources{
		Dir: dir, Defaults: reverie.Data, Name: "Reverie", Profiles: profiles, SeedLanguage: "en",
		Memory: mem, Tasks: tasks, Skills: skills, Manner: manner.Store{DB: db}, KnownTools: tools.Names(), Warned: counts.WarnedBetween}}))(t)
	w.Manager = New(Config{
		Config: command.Config{Models: models, History: past, Memory: mem, Tasks: tasks, Skills: skills, Manner: manner.Store{DB: db}, Profiles: profiles, Usage: counts},
		DB:     db, Prompt: assembler, Tools: tools,
		Transport: w.room, Rooms: w.who, Owners: []string{owner}, Limits: Limits{MaxRound: 4}, Times: Times{Grace: 100 * time.Millisecond},
		WindowInputs: w.chatInputs})
	w.begin(t)
	return w
}

// chatInputs returns what the models know of the window of the first chat model.
func (w *world) chatInputs() window.Inputs { return window.InputsOf(w.cfg.Models.Limits("chat")[0]) }

// TaskRoom returns where a task may run.
func (w *world) TaskRoom(ctx context.Context, t task.Task) (string, error) {
	return TaskRooms{Rooms: w.who, Transport: w.cfg.Transport, Messages: w.cfg.Messages}.TaskRoom(ctx, t)
}

// begin runs the manager until stop.
func (w *world) begin(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	m := w.Manager
	go func() { defer close(done); _ = m.Run(ctx) }()
	w.stop = func() { cancel(); <-done }
	t.Cleanup(w.stop)
}

// exec changes the database.
func (w *world) exec(t expect.T, query string, args ...any) {
	t.Helper()
	expect.Must(w.cfg.DB.Exec(query, args...))(t)
}

// value returns the single value of a query.
func value[T any](t expect.T, w *world, query string, args ...any) (v T) {
	t.Helper()
	expect.OK(t, w.cfg.DB.QueryRow(query, args...).Scan(&v))
	return v
}

// column returns the only column of a query.
func (w *world) column(t expect.T, query string, args ...any) []string {
	t.Helper()
	return expect.Must(store.Column[string](context.Background(), w.cfg.DB, query, args...))(t)
}

// append stores messages of !dm, or of their room.
func (w *world) append(t expect.T, all ...history.Message) {
	t.Helper()
	for _, m := range all {
		m.Room, m.At = cmp.Or(m.Room, "!dm"), time.Now()
		expect.OK(t, w.cfg.History.Append(context.Background(), &m))
	}
}

// past returns the history of !dm.
func (w *world) past(t expect.T) []history.Message {
	t.Helper()
	return expect.Must(w.cfg.History.Load(context.Background(), "!dm"))(t)
}

// known stores a fact like !remember.
func (w *world) known(t expect.T, scope memory.Scope, text string) memory.Entry {
	t.Helper()
	e, _, err := w.cfg.Memory.Add(context.Background(), memory.Entry{Scope: scope, Text: text, Source: memory.UserExplicit}, owner)
	expect.OK(t, err)
	return e
}

// lastAsked returns the newest request to the model.
func (w *world) lastAsked() string {
	all := w.script.asked()
	return all[len(all)-1]
}

// say delivers one direct message of the owner and waits until it is handled.
func (w *world) say(t *testing.T, id, text string) chat.Outgoing {
	t.Helper()
	return w.deliver(t, chat.Message{Head: chat.Head{ID: id, Room: "!dm", Sender: owner, Private: true, At: time.Now()}, Text: text})
}

// tells is say, and checks that the reply has all parts.
func (w *world) tells(t *testing.T, text string, parts ...string) string {
	t.Helper()
	got := w.say(t, "", text).Text
	expect.Has(t, got, parts...)
	return got
}

func (w *world) deliver(t *testing.T, in chat.Inbound) chat.Outgoing {
	t.Helper()
	id := chat.HeadOf(in).ID
	if m, message := in.(chat.Message); message && id == "" {
		w.n++
		id = fmt.Sprint("$nr", w.n)
		m.ID = id
		in = m
	}
	expect.OK(t, w.Deliver(t.Context(), in))
	select {
	case got := <-w.room.handled:
		if got != id {
			t.Fatalf("handled %s, want %s", got, id)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("%s not handled", id)
	}
	return w.room.said(id)
}

// TestRedelivered: a redelivered message, or !retry, gets the same reply without a second model call.
func TestRedelivered(t *testing.T) {
	w := newWorld(t, t.TempDir(), "first", "second")
	w.say(t, "$1", "hello")
	expect.Equal(t, w.say(t, "$1", "hello").Text, "first")
	expect.Equal(t, w.room.count(), 1)
	for range 2 {
		expect.Equal(t, w.say(t, "$2", "!retry").Text, "second")
	}
	expect.Equal(t, len(w.script.asked()), 2)
}

// TestInterruptedInTool: after a crash in a tool call, the next start tells the model and does not run it again.
func TestInterruptedInTool(t *testing.T) {
	w := newWorld(t, t.TempDir(), "taken up")
	w.append(t, history.Message{Role: llm.User, EventID: "$1", Sender: owner, Text: "remember tea"},
		history.Message{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "c1", Name: "append_memory", Arguments: `{"entry":"tea"}`}}})
	expect.Equal(t, w.say(t, "$1", "remember tea").Text, "taken up")
	asked := w.script.asked()
	expect.False(t, len(asked) != 1 || !strings.Contains(asked[0], "interrupted while this ran") || strings.Count(asked[0], "remember tea") != 1,
		"requests = %v", asked)
	past, err := w.cfg.History.Load(t.Context(), "!dm")
	expect.False(t, err != nil || len(past) != 4 || !past[2].Failed, "the call counts as done: %+v, %v", past, err)
}

// TestBurst: waiting messages of one person get one answer; other people's messages and commands get their own.
// Holds F15.
func TestBurst(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.script.block = make(chan struct{})
	other := "@friend:example.org"
	for _, in := range []chat.Message{
		{Head: chat.Head{ID: "$1", Sender: owner}, Text: "one"},
		{Head: chat.Head{ID: "$2", Sender: owner}, Text: "two"}, {Head: chat.Head{ID: "$3", Sender: owner}, Text: "three"},
		{Head: chat.Head{ID: "$4", Sender: owner}, Text: "!tasks"},
		{Head: chat.Head{ID: "$5", Sender: other}, Text: "four"},
		{Head: chat.Head{ID: "$6", Sender: owner}, Text: "five"},
	} {
		in.Room, in.At = "!group", time.Now()
		expect.OK(t, w.Deliver(t.Context(), in))
		for in.ID == "$1" && len(w.script.asked()) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	close(w.script.block)
	for i := range 6 {
		if got, want := <-w.room.handled, fmt.Sprintf("$%d", i+1); got != want {
			t.Fatalf("handled %s, want %s", got, want)
		}
	}
	expect.Equal(t, strings.Join(w.room.order, " "), "re:$1 re:$3 re:$4 re:$5 re:$6")
	if asked := w.script.asked(); len(asked) != 4 || !strings.Contains(asked[1], "two") || !strings.Contains(asked[1], "three") {
		t.Errorf("%d model calls; the second must hold the whole burst", len(asked))
	}
}

// TestRedactedWhileWaiting: a message redacted while it waited is acknowledged, and neither answered nor shown to the model.
func TestRedactedWhileWaiting(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.room.gone = map[string]bool{"$2": true, "$3": true}
	w.say(t, "$1", "one")
	w.say(t, "$2", "taken back")
	newSession(w.Manager, "!dm").handle(t.Context(), []chat.Inbound{
		chat.Message{Head: chat.Head{ID: "$3", Room: "!dm", Sender: owner, Private: true}, Text: "taken back"},
		chat.Message{Head: chat.Head{ID: "$4", Room: "!dm", Sender: owner, Private: true}, Text: "stays"},
	})
	expect.Equal(t, strings.Join(w.room.order, " "), "re:$1 re:$4")
	expect.Lacks(t, strings.Join(w.script.asked(), " "), "taken back")
	expect.Has(t, strings.Join(w.script.asked(), " "), "stays")
	expect.Equal(t, <-w.room.handled, "$3")
	expect.Equal(t, <-w.room.handled, "$4")
}

// TestBurstInPieces: a burst stored or answered before a crash has one reply, however it is redelivered.
func TestBurstInPieces(t *testing.T) {
	for _, answered := range []bool{false, true} {
		w := newWorld(t, t.TempDir(), "the answer", "to the new one")
		for _, id := range []string{"$1", "$2", "$3"} {
			w.append(t, history.Message{Role: llm.User, EventID: id, Sender: owner, Text: "text of " + id})
		}
		calls := 2
		if answered {
			calls = 1
			w.append(t, history.Message{Role: llm.Assistant, EventID: "re:$3", Text: "the answer"})
			w.script.answers = w.script.answers[1:]
		}
		s := newSession(w.Manager, "!dm")
		in := func(id string) chat.Inbound {
			return chat.Message{Head: chat.Head{ID: id, Room: "!dm", Sender: owner, Private: true, At: time.Now()}, Text: "text of " + id}
		}
		s.handle(t.Context(), []chat.Inbound{in("$1")})
		s.handle(t.Context(), []chat.Inbound{in("$2"), in("$3"), in("$4")})
		if got := strings.Join(w.room.order, " "); got != "re:$3 re:$4" || w.room.said("$3").Text != "the answer" || w.room.said("$4").Text != "to the new one" {
			t.Errorf("answered %v: replies %s: %v", answered, got, w.room.final)
		}
		n := len(w.script.asked())
		expect.False(t, n != calls, "answered %v: %d model calls, want %d", answered, n, calls)
	}
}

// TestParallel: many rooms ask at once; at most Parallel turns run, and all rooms get an answer.
// Holds F15.
func TestParallel(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.script.block = make(chan struct{})
	w.greet(t)
	waitUntil(t, "the model is asked", func() bool { return len(w.script.asked()) >= 4 })
	time.Sleep(50 * time.Millisecond) // long enough for a fifth to show, were it allowed
	expect.Equal(t, len(w.script.asked()), 4)
	close(w.script.block)
	for range greeted {
		<-w.room.handled
	}
}

// greeted is how many rooms greet writes to.
const greeted = 10

func (w *world) greet(t *testing.T) {
	t.Helper()
	for i := range greeted {
		in := chat.Message{Head: chat.Head{ID: fmt.Sprintf("$%d", i), Room: fmt.Sprintf("!r%d", i), Sender: owner, Private: true, At: time.Now()}, Text: "hello"}
		expect.OK(t, w.Deliver(t.Context(), in))
	}
}

// TestAllRoomsAreIndexed: rooms that fall silent at the same time are indexed one after the other, and none is
// left out.
func TestAllRoomsAreIndexed(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.cfg.IdleAfter = time.Millisecond
	w.greet(t)
	waitUntil(t, "all are indexed", func() bool {
		return expect.Must(store.Value[int](t.Context(), w.cfg.DB, `SELECT count(DISTINCT conversation) FROM past_message`))(t) == greeted
	})
}

// TestCutOff: an answer that hit the output limit says so.
func TestCutOff(t *testing.T) {
	got := newWorld(t, t.TempDir(), "cut").say(t, "$1", "hello")
	expect.False(t, !strings.HasPrefix(got.Text, "cut") || !strings.Contains(got.Text, "output limit"), "answer = %q", got.Text)
}

// Holds F46, M10.
func TestModelDownAndRetry(t *testing.T) {
	w := newWorld(t, t.TempDir(), "500", "back again")
	got := w.say(t, "$1", "are you there?")
	expect.False(t, !got.Notice || !strings.Contains(got.Text, "!retry") || strings.Contains(got.Text, "upstream"), "notice = %+v", got)
	answers(t, w.say(t, "$2", "!retry"), "back again")
	expect.Equal(t, strings.Count(w.lastAsked(), "are you there?"), 1)
}

// TestPanic: a panic costs one message, not the room.
// Holds F40.
func TestPanic(t *testing.T) {
	w := newWorld(t, t.TempDir())
	var once sync.Once
	w.room.onSay = func(m chat.Outgoing) {
		if !m.Notice && !m.Draft {
			once.Do(func() { panic("boom") })
		}
	}
	got := w.say(t, "$1", "hello")
	expect.False(t, !got.Notice || strings.Contains(got.Text, "boom"), "after a panic = %+v", got)
	expect.Equal(t, w.say(t, "$2", "hello again").Text, "fine")
}

// TestStop: a message interrupted by shutdown is not acknowledged, and no new message is accepted.
func TestStop(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.script.block = make(chan struct{})
	expect.OK(t, w.Deliver(t.Context(), chat.Message{Head: chat.Head{ID: "$1", Room: "!dm", Sender: owner, Private: true}, Text: "hello"}))
	waitUntil(t, "the model is asked", func() bool { return len(w.script.asked()) > 0 })
	w.stop()
	expect.Equal(t, w.Deliver(context.Background(), chat.Message{Head: chat.Head{ID: "$2", Room: "!dm"}}), chat.ErrStopping)
	expect.False(t, len(w.room.handled) != 0 || w.room.count() != 0, "an interrupted message was acknowledged or answered")
}

func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{"!help", "!new now", "! ", "!!", "!é", "!x\ny", "help"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, _, ok := command.Parse(s)
		expect.False(t, ok && (name == "" || strings.ContainsAny(name, " \n!")), "command.Parse(%q) = %q", s, name)
	})
}

// inDM is the direct chat of the owner, who asks.
var inDM = trust.Caller{Place: trust.Place{Room: "!dm", Person: owner, Private: true}, Integrity: trust.User}

// inGroup is a room among several people, where the owner asks.
func inGroup(room string) trust.Caller {
	return trust.Caller{Place: trust.Place{Room: room, Person: owner}, Integrity: trust.User}
}

// callerIn is inDM for that room, and inGroup for others.
func callerIn(room string) trust.Caller {
	if room == inDM.Room {
		return inDM
	}
	return inGroup(room)
}
