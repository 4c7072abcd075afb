package harvest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/llm/answer"
	"reverie/internal/memory"
	"reverie/internal/profile"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

const (
	owner = "@me:example.org"
	anna  = "@anna:example.org"
)

// rig is a harvester on a real database with a scripted model.
type rig struct {
	*Harvester
	t       *testing.T
	db      *store.DB
	store   *memory.Store
	history *history.Store
	clock   time.Time

	mu      sync.Mutex
	prompts []string
	answer  func(prompt string) (string, error)
	files   fstest.MapFS // templates
	window  int
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	return openRig(t, t.TempDir(), change)
}

func openRig(t *testing.T, dir string, change func(*Config)) *rig {
	t.Helper()
	db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	mem, err := memory.Open(t.Context(), memory.Config{DB: db, Dir: dir, Owner: anna})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, db: db, store: mem, history: history.NewStore(db), clock: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), window: 8192,
		files: fstest.MapFS{}, answer: func(string) (string, error) { return "[]", nil }}
	c := Config{Level: func(string) trust.Integrity { return trust.User }, LastMessageAt: func(context.Context, string) (time.Time, error) { return time.Time{}, nil },
		WaitIdle: func(ctx context.Context) (context.Context, func(), error) { return ctx, func() {}, ctx.Err() },
		Messages: 20, CallsPerDay: 500, Idle: 15 * time.Minute, Profiles: profile.Store{Location: time.UTC}, Log: slog.New(slog.DiscardHandler),
		DB: db, Store: mem, Prompts: r.files, Window: func(string) (int, int) { return r.window, 512 },
		Now: func() time.Time { r.clock = r.clock.Add(time.Second); return r.clock },
		Ask: func(_ context.Context, role, prompt string) (string, error) {
			expect.Equal(t, role, "harvest", "the role is asked")
			r.mu.Lock()
			r.prompts = append(r.prompts, prompt)
			answer := r.answer
			r.mu.Unlock()
			return answer(prompt)
		}}
	r.template("Find facts {and braces}.\n{transcript}\n")
	if change != nil {
		change(&c)
	}
	r.Harvester = Open(c)
	return r
}

func (r *rig) template(text string) { r.files[Template.File] = &fstest.MapFile{Data: []byte(text)} }

// say stores a message of anna in her direct chat.
func (r *rig) say(event, text string) int64 { return r.sayIn("!dm", anna, event, text, false) }

func (r *rig) sayIn(room, sender, event, text string, shared bool) int64 {
	r.t.Helper()
	r.clock = r.clock.Add(time.Minute)
	m := history.Message{Room: history.Timeline(room), Role: llm.User, EventID: event, Sender: sender, Text: text, Header: "[Fri 2026-11-20 09:00 UTC]"}
	if shared {
		m.Header = "[Fri 2026-11-20 09:00 UTC, " + sender + "]"
	}
	return r.hear(m)
}

// hear stores m with the label that a session would give it.
func (r *rig) hear(m history.Message) int64 {
	r.t.Helper()
	m.At, m.Label = r.clock, labelOf(m)
	expect.OK(r.t, r.history.Append(r.t.Context(), &m))
	return m.ID
}

// labelOf returns the label that a session gives m. Only a header in a group names the sender.
func labelOf(m history.Message) trust.Label {
	l := trust.Label{Integrity: trust.User, Readers: trust.Place{Room: m.Room.Room(), Person: m.Sender, Private: !strings.Contains(m.Header, ",")}.Readers()}
	foreign := m.Role == llm.Tool && m.Text != "done" || m.Role == llm.User && m.Sender == ""
	if m.Sender == owner {
		l.Integrity = trust.Owner
	}
	if foreign || len(m.Files)+len(m.Quoted) > 0 {
		l.Integrity = trust.Foreign
	}
	return l
}

func (r *rig) answers(event, text string) {
	r.t.Helper()
	m := history.Message{Room: "!dm", Role: llm.Assistant, EventID: event, Text: text, At: r.clock}
	m.Label = trust.Label{Integrity: trust.User, Readers: trust.Readers("private:" + anna)}
	past := expect.Must(r.history.Load(r.t.Context(), m.Room))(r.t)
	for i := range past { // as a session does: of all that its prompt held
		m.Label.Integrity = min(m.Label.Integrity, past[i].Integrity())
	}
	expect.OK(r.t, r.history.Append(r.t.Context(), &m))
}

func (r *rig) harvest() Result {
	r.t.Helper()
	done := expect.Must(r.try())(r.t)
	return done
}

// try reads all conversations with unread messages and returns the first error.
func (r *rig) try() (Result, error) {
	r.t.Helper()
	rooms, _, err := r.IdleRooms(r.t.Context(), r.clock.AddDate(1, 0, 0))
	if err != nil {
		r.t.Fatal(err)
	}
	return r.Read(r.t.Context(), rooms, r.Ask, len(rooms))
}

func (r *rig) entries() []memory.Entry {
	r.t.Helper()
	all := expect.Must(r.store.List(r.t.Context(), memory.Access{All: true}, memory.Filter{}))(r.t)
	return all
}

func (r *rig) texts() string {
	var texts []string
	for _, e := range r.entries() {
		texts = append(texts, e.Text)
	}
	return strings.Join(texts, "|")
}

func (r *rig) states() map[string]int {
	r.t.Helper()
	rows := expect.Must(r.db.Query(`SELECT state || ' ' || reason, count(*) FROM harvest GROUP BY 1`))(r.t)
	defer rows.Close()
	out := map[string]int{}
	for rows.Next() {
		var s string
		var n int
		expect.OK(r.t, rows.Scan(&s, &n))
		out[strings.TrimSpace(s)] = n
	}
	return out
}

// oneFact is a fact as a model returns it.
func oneFact(message int, text, quote string) map[string]any {
	return map[string]any{"message": message, "fact": text, "quote": quote, "subject": "I", "kind": "fact", "valid_from": "", "valid_to": ""}
}

func list(facts ...map[string]any) string {
	if len(facts) == 0 {
		return "[]"
	}
	b, err := json.Marshal(facts)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestHarvest: a fact has its text, message, time and scope.
func TestHarvest(t *testing.T) {
	r := newRig(t, nil)
	r.say("$1", "Good morning! My sister Jana moved to Kiel, and since 2024 I work as a nurse.")
	r.say("$2", "By the way: I prefer tea.")
	r.answer = func(string) (string, error) {
		one := oneFact(1, "anna's sister Jana moved to Kiel", "My  sister “Jana” moved to Kiel")
		one["subject"] = "Jana"
		two := oneFact(1, "anna works as a nurse since 2024", "since 2024 I work as a nurse")
		two["valid_from"], two["kind"] = "2024", "nonsense"
		three := oneFact(2, "anna prefers tea", "I prefer tea")
		three["kind"], three["message"] = "preference", "#2"
		return "Sure, here is the list:\n```json\n" + strings.TrimSuffix(list(one, two, three), "]") + ",\n]\n```\nAnything else?", nil
	}
	done := r.harvest()
	if done.Added != 3 || done.Messages != 2 || done.Requests != 1 || len(done.Refused) != 0 {
		t.Errorf("%+v", done)
	}
	got := r.entries()
	if len(got) != 3 {
		t.Fatalf("%q", r.texts())
	}
	e := got[0]
	if e.Subject != "Jana" || e.Event != "$1" || e.Scope != memory.Private(anna) || e.Source != memory.Harvest || e.Quote == "" ||
		!e.ObservedAt.Equal(time.Date(2026, 11, 20, 9, 1, 0, 0, time.UTC)) {
		t.Errorf("%+v", e)
	}
	if e := got[1]; e.Subject != anna || e.Kind != memory.Fact || e.ValidFrom.Year() != 2024 {
		t.Errorf("%+v", e)
	}
	if e := got[2]; e.Kind != memory.Preference || e.Event != "$2" {
		t.Errorf("%+v", e)
	}
	ops, err := r.store.History(t.Context(), memory.Access{All: true}, e.ID)
	if err != nil || len(ops) != 1 || ops[0].Actor != "harvest" {
		t.Errorf("journal %+v, %v", ops, err)
	}
	if again := r.harvest(); again.Requests != 0 || again.Messages != 0 {
		t.Errorf("read twice: %+v", again)
	}
	if p := r.prompts[0]; !strings.Contains(p, "{and braces}.\n[1] 2026-11-20 09:01 anna: Good morning!") || !strings.Contains(p, "\n[2] ") {
		t.Errorf("asked: %s", p)
	}
}

// TestHarvestInPersonsZone: the model reads times of a direct chat as its person does.
func TestHarvestInPersonsZone(t *testing.T) {
	profiles := profile.Store{Dir: t.TempDir(), Location: time.UTC}
	expect.Must(profiles.Set(anna, profile.Zone, "Asia/Tokyo"))(t)
	r := newRig(t, func(c *Config) { c.Profiles = profiles })
	r.say("$1", "My sister Jana moved to Kiel yesterday.")
	r.sayIn("!group", anna, "$2", "I prefer tea.", true)
	r.harvest()
	expect.Has(t, strings.Join(r.prompts, "\n"), "2026-11-20 18:01 anna: My sister", "2026-11-20 09:02 anna: I prefer")
}

// TestTemplate: without the placeholder the messages come last; the placeholder's text in a message
// is not replaced.
func TestTemplate(t *testing.T) {
	r := newRig(t, nil)
	r.template("Nur Fakten, bitte. {")
	r.say("$1", "I like {transcript} and } braces.")
	r.harvest()
	if p := r.prompts[0]; !strings.HasPrefix(p, "Nur Fakten, bitte. {\n\n[1] ") || !strings.Contains(p, "I like {transcript} and } braces.") {
		t.Errorf("asked: %q", p)
	}
}

var numbered = regexp.MustCompile(`(?m)^\[(\d+)\] \S+ \S+ \S+: (.*)$`)

// parrot returns a fact for each message of the form "fact N …" and each of its sentences.
func parrot(prompt string) (string, error) {
	var facts []map[string]any
	for _, m := range numbered.FindAllStringSubmatch(prompt, -1) {
		for _, s := range regexp.MustCompile(`Locker \d+ holds the \w+`).FindAllString(m[2], -1) {
			var n int
			fmt.Sscanf(m[1], "%d", &n)
			facts = append(facts, oneFact(n, s, s))
		}
	}
	return list(facts...), nil
}

// TestNothingIsSkipped: 200 messages in a small window, with failing models and crashes; each fact
// is stored once.
// Holds L11.
func TestNothingIsSkipped(t *testing.T) {
	dir := t.TempDir()
	r := openRig(t, dir, nil)
	r.window = 1024
	for i := range 200 {
		r.say(fmt.Sprintf("$%d", i), fmt.Sprintf("Locker %d holds the lamp.%s", i, strings.Repeat(" And so on.", i%30)))
	}
	long := strings.Builder{}
	for i := 200; i < 400; i++ {
		fmt.Fprintf(&long, "Locker %d holds the rope. ", i)
	}
	r.say("$long", long.String()) // is larger than the window
	n := 0
	r.answer = func(prompt string) (string, error) {
		switch n++; {
		case n%7 == 0:
			return "I am sorry, but I cannot do that.", nil
		case n%7 == 3:
			answer, _ := parrot(prompt)
			return answer[:len(answer)*2/3], nil
		case n%11 == 0:
			return "", &llm.Error{Kind: llm.Unreachable, Err: errors.New("gone")}
		}
		if used := llm.EstimateTokens(prompt); used > 1024-512 {
			t.Errorf("a request of %d tokens in a window of 1024", used)
		}
		return parrot(prompt)
	}
	for range 400 {
		if _, err := r.try(); err == nil {
			break
		}
	}
	if got := r.states(); got["done"] != 201 || len(got) != 1 {
		t.Errorf("%v", got)
	}
	count := map[string]int{}
	for _, e := range r.entries() {
		count[e.Text]++
	}
	for i := range 400 {
		thing := "lamp"
		if i >= 200 {
			thing = "rope"
		}
		if f := fmt.Sprintf("Locker %d holds the %s", i, thing); count[f] != 1 {
			t.Errorf("%q is there %d times", f, count[f])
		}
	}
	if n < 20 {
		t.Errorf("only %d requests: the window was not small", n)
	}
}

// TestPoison: no message is given up while the model fails on all. A single message that always
// fails does not block others and is given up with a reason.
func TestPoison(t *testing.T) {
	r := newRig(t, nil)
	for i := range 8 {
		text := fmt.Sprintf("Locker %d holds the lamp.", i)
		if i == 2 {
			text = "Poison. " + text
		}
		r.say(fmt.Sprintf("$%d", i), text)
	}
	r.answer = func(string) (string, error) { return "no", nil }
	for range 12 {
		if done, err := r.try(); err == nil || done.Messages+done.GivenUp != 0 {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	if got := r.states(); got["new"] != 8 || len(r.entries()) != 0 {
		t.Errorf("%v, %q", got, r.texts())
	}
	r.answer = func(prompt string) (string, error) {
		if strings.Contains(prompt, "Poison") {
			return "no", nil
		}
		return parrot(prompt)
	}
	for range 30 {
		if _, err := r.try(); err == nil {
			break
		}
	}
	if got := r.states(); got["done"] != 7 || got["left "+answer.ErrNoList.Error()] != 1 || len(r.entries()) != 7 {
		t.Errorf("%v, %q", got, r.texts())
	}
	alone := 0
	for _, p := range r.prompts {
		if strings.Contains(p, "Poison") && len(numbered.FindAllString(p, -1)) == 1 {
			alone++
		}
	}
	if alone == 0 {
		t.Error("it was never tried alone")
	}
}

// TestScopesOfFacts: private messages never go into a room's request, nor their facts into a room.
// People in a room share a request.
func TestScopesOfFacts(t *testing.T) {
	const ben = "@ben:example.org"
	r := newRig(t, nil)
	r.sayIn("!group", anna, "$1", "Locker 1 holds the lamp.", true)
	r.sayIn("!group", ben, "$2", "My bike is green.", true)
	r.sayIn("!dm", anna, "$3", "Locker 77 holds the canary.", false)
	r.sayIn("!dm", ben, "$4", "Locker 78 holds the canary.", false)
	r.sayIn("!dm", anna, "$5", "Locker 79 holds the canary.", true) // it has become a room
	r.answer = func(prompt string) (string, error) {
		if strings.Contains(prompt, "bike") {
			return list(oneFact(1, "Locker 1 holds the lamp", "Locker 1 holds the lamp"), oneFact(2, "My bike is green", "My bike is green"),
				oneFact(2, "Locker 77 holds the canary", "My bike is green"), oneFact(2, "Locker 77 holds the canary", "Locker 77 holds the canary")), nil
		}
		return parrot(prompt)
	}
	r.harvest()
	got := map[string]string{}
	for _, e := range r.entries() {
		got[e.Text] = string(e.Scope)
	}
	want := map[string]string{"Locker 1 holds the lamp": "room:!group", "ben said: My bike is green": "room:!group", "Locker 77 holds the canary": "private:" + anna,
		"Locker 78 holds the canary": "private:" + ben, "Locker 79 holds the canary": "room:!dm"}
	expect.Equal(t, fmt.Sprint(got), fmt.Sprint(want), "%v", got)
	for _, p := range r.prompts {
		if strings.Count(p, "canary") > 1 || strings.Contains(p, "bike") && strings.Contains(p, "canary") {
			t.Errorf("one request for several scopes: %s", p)
		}
	}
}

// TestAnswersToQuestions: a short answer is read with the preceding question, which never counts as
// the person's own words.
func TestAnswersToQuestions(t *testing.T) {
	r := newRig(t, nil)
	r.answers("re:$0", "I know that you live in Kiel. What is your sister called?")
	r.say("$1", "Jana")
	r.answers("re:$1", "Is your brother called Peter?")
	r.say("$2", "Yes!")
	r.answer = func(prompt string) (string, error) {
		if !strings.Contains(prompt, "(the question before it: What is your sister called?)") || strings.Contains(prompt, "Kiel") {
			t.Errorf("asked: %s", prompt)
		}
		return list(oneFact(1, "anna's sister is called Jana", "Jana"), oneFact(1, "anna lives in Kiel", "Jana"), oneFact(2, "anna's brother is called Peter", "Yes"),
			oneFact(2, "anna's brother is called Peter", "your brother called Peter")), nil
	}
	done := r.harvest()
	if got := r.texts(); got != "anna's sister is called Jana" || done.Refused[refusedInvented] != 2 || done.Refused[refusedQuote] != 1 {
		t.Errorf("%q, %+v", got, done)
	}
}

// TestDue: a conversation is due after enough messages, a long pause or Wake, and backs off after a failure.
func TestDue(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, func(c *Config) { c.Messages, c.Idle = 3, 15*time.Minute })
	due := func() string {
		rooms := expect.Must(r.Due(ctx))(t)
		return strings.Join(rooms, " ")
	}
	r.sayIn("!a", anna, "$1", "Locker 1 holds the lamp.", false)
	r.sayIn("!b", anna, "$2", "Locker 2 holds the lamp.", false)
	r.sayIn("!b", anna, "$3", "Locker 3 holds the lamp.", false)
	expect.Equal(t, due(), "", "too early")
	r.sayIn("!b", anna, "$4", "Locker 4 holds the lamp.", false)
	expect.Equal(t, due(), "!b", "after three messages")
	r.Wake("!a")
	expect.Equal(t, due(), "!a !b", "called for")
	r.answer = func(string) (string, error) { return "no", nil }
	r.Read(ctx, []string{"!a"}, r.Ask, 1)
	r.Read(ctx, []string{"!b"}, r.Ask, 1)
	expect.Equal(t, due(), "", "no rest")
	r.clock = r.clock.Add(2 * time.Minute)
	expect.Equal(t, due(), "!a !b", "after the rest")
	r.answer = parrot
	r.Read(ctx, []string{"!a"}, r.Ask, 1)
	r.Read(ctx, []string{"!b"}, r.Ask, 1)
	r.sayIn("!a", anna, "$5", "Locker 5 holds the lamp.", false)
	expect.Equal(t, due(), "", "once it is read")
	r.clock = r.clock.Add(16 * time.Minute)
	expect.Equal(t, due(), "!a", "after a pause")
}

// TestInterruptedByPerson: a request ends when a person writes, and is repeated with fewer messages
// afterwards; it does not count as a failure.
func TestInterruptedByPerson(t *testing.T) {
	var interrupt context.CancelFunc
	waits := 0
	r := newRig(t, func(c *Config) {
		c.WaitIdle = func(ctx context.Context) (context.Context, func(), error) {
			waits++
			work, cancel := context.WithCancel(ctx)
			interrupt = cancel
			return work, cancel, nil
		}
	})
	for i := range 40 {
		r.say(fmt.Sprintf("$%d", i), fmt.Sprintf("Locker %d holds the lamp.", i))
	}
	var sizes []int
	r.answer = func(prompt string) (string, error) {
		sizes = append(sizes, len(numbered.FindAllString(prompt, -1)))
		if len(sizes) <= 2 {
			interrupt()
			return "", context.Canceled
		}
		return parrot(prompt)
	}
	done := r.harvest()
	if done.Added != 40 || !slices.Equal(sizes, []int{40, 20, 10, 10, 10, 10}) || waits < len(sizes) {
		t.Errorf("%+v, %v", done, sizes)
	}
	var tries int
	if err := r.db.QueryRow(`SELECT sum(tries) FROM harvest`).Scan(&tries); err != nil || tries != 0 {
		t.Errorf("%d tries are counted, %v", tries, err)
	}
}

// TestSmallWindow: without room for messages, no request is made.
func TestSmallWindow(t *testing.T) {
	r := newRig(t, nil)
	r.window = 600
	r.say("$1", "Locker 1 holds the lamp.")
	if _, err := r.try(); err == nil || !strings.Contains(err.Error(), "600 tokens") || len(r.prompts) != 0 {
		t.Errorf("%v", err)
	}
}

// TestHarvestInThreads: facts from a thread belong to its room, or to the person in a direct chat.
func TestHarvestInThreads(t *testing.T) {
	r := newRig(t, nil)
	r.sayIn(string(history.NewTimeline("!group:b", "$root")), anna, "$1", "Locker 1 holds the lamp.", true)
	r.sayIn(string(history.NewTimeline("!dm", "$root")), anna, "$2", "Locker 2 holds the lamp.", false)
	r.cfg.LastMessageAt = func(_ context.Context, room string) (at time.Time, err error) {
		if room == "!group:b" {
			at = time.Unix(77, 0)
		}
		return at, nil
	}
	waits, err := r.pendingConversations(t.Context())
	if err != nil || len(waits) != 2 || waits[0].heard.Unix() != 77 {
		t.Errorf("%+v, %v", waits, err)
	}
	r.answer = parrot
	r.harvest()
	got := map[string]memory.Scope{}
	for _, e := range r.entries() {
		got[e.Text] = e.Scope
	}
	want := map[string]memory.Scope{"Locker 1 holds the lamp": memory.Room("!group:b"), "Locker 2 holds the lamp": memory.Private(anna)}
	if !maps.Equal(got, want) {
		t.Errorf("noted %v", got)
	}
}
