package dream

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/store"
)

const anna = "@anna:example.org"

// rig is a harvester on a real database, with a model that a test plays.
type rig struct {
	*Harvester
	t       *testing.T
	db      *sql.DB
	store   *memory.Store
	history *history.Store
	clock   time.Time

	mu       sync.Mutex
	prompts  []string
	answer   func(prompt string) (string, error)
	template string
	window   int
}

func newRig(t *testing.T, change func(*HarvestConfig)) *rig {
	t.Helper()
	return openRig(t, t.TempDir(), change)
}

func openRig(t *testing.T, dir string, change func(*HarvestConfig)) *rig {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(dir, "bot.db"), reverie.Migrations)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	mem, err := memory.Open(t.Context(), memory.Config{DB: db, Dir: dir, Owner: anna})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, db: db, store: mem, history: history.NewStore(db), clock: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), window: 8192,
		template: "Find facts {and braces}.\n{transcript}\n", answer: func(string) (string, error) { return "[]", nil }}
	c := HarvestConfig{DB: db, Store: mem, Template: func() (string, error) { return r.template, nil }, Window: func(string) (int, int) { return r.window, 512 },
		Now: func() time.Time { r.clock = r.clock.Add(time.Second); return r.clock },
		Ask: func(_ context.Context, role, prompt string) (string, error) {
			if role != "harvest" {
				t.Errorf("the role %q is asked", role)
			}
			r.mu.Lock()
			r.prompts = append(r.prompts, prompt)
			answer := r.answer
			r.mu.Unlock()
			return answer(prompt)
		}}
	if change != nil {
		change(&c)
	}
	if r.Harvester, err = OpenHarvester(c); err != nil {
		t.Fatal(err)
	}
	return r
}

// say stores a message of anna in her direct chat.
func (r *rig) say(event, text string) int64 { return r.sayIn("!dm", anna, event, text, false) }

func (r *rig) sayIn(room, sender, event, text string, shared bool) int64 {
	r.t.Helper()
	r.clock = r.clock.Add(time.Minute)
	m := history.Message{Room: room, Role: llm.User, EventID: event, Sender: sender, Text: text, At: r.clock, Header: "[Fri 2026-11-20 09:00 UTC]"}
	if shared {
		m.Header = "[Fri 2026-11-20 09:00 UTC, " + sender + "]"
	}
	if err := r.history.Append(r.t.Context(), &m); err != nil {
		r.t.Fatal(err)
	}
	return m.ID
}

func (r *rig) answers(event, text string) {
	r.t.Helper()
	m := history.Message{Room: "!dm", Role: llm.Assistant, EventID: event, Text: text, At: r.clock}
	if err := r.history.Append(r.t.Context(), &m); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) harvest() Harvested {
	r.t.Helper()
	done, err := r.All(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return done
}

func (r *rig) entries() []memory.Entry {
	r.t.Helper()
	all, err := r.store.List(r.t.Context(), memory.Access{All: true}, memory.Filter{})
	if err != nil {
		r.t.Fatal(err)
	}
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
	rows, err := r.db.Query(`SELECT state || ' ' || reason, count(*) FROM harvest GROUP BY 1`)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]int{}
	for rows.Next() {
		var s string
		var n int
		if err := rows.Scan(&s, &n); err != nil {
			r.t.Fatal(err)
		}
		out[strings.TrimSpace(s)] = n
	}
	return out
}

// fact is a model's object.
func fact(message int, text, quote string) map[string]any {
	return map[string]any{"message": message, "fact": text, "quote": quote, "subject": "I", "kind": "fact", "valid_from": "", "valid_to": ""}
}

func list(facts ...map[string]any) string {
	b, err := json.Marshal(facts)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestHarvest: a fact comes with its words, its message, its time and whose it is.
func TestHarvest(t *testing.T) {
	r := newRig(t, nil)
	r.say("$1", "Good morning! My sister Jana moved to Kiel, and since 2024 I work as a nurse.")
	r.say("$2", "By the way: I prefer tea.")
	r.answer = func(string) (string, error) {
		one := fact(1, "anna's sister Jana moved to Kiel", "My  sister “Jana” moved to Kiel")
		one["subject"] = "Jana"
		two := fact(1, "anna works as a nurse since 2024", "since 2024 I work as a nurse")
		two["valid_from"], two["kind"] = "2024", "nonsense"
		three := fact(2, "anna prefers tea", "I prefer tea")
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

// TestTemplate: without its place the messages come at the end; a lookalike of the place in a message is text.
func TestTemplate(t *testing.T) {
	r := newRig(t, nil)
	r.template = "Nur Fakten, bitte. {"
	r.say("$1", "I like {transcript} and } braces.")
	r.harvest()
	if p := r.prompts[0]; !strings.HasPrefix(p, "Nur Fakten, bitte. {\n\n[1] ") || !strings.Contains(p, "I like {transcript} and } braces.") {
		t.Errorf("asked: %q", p)
	}
}

// TestRefused: what a model may not make of a message.
func TestRefused(t *testing.T) {
	const long = "I have a dog called Rex. " // fills up
	for _, c := range []struct {
		name, said  string
		fact, quote string
		why         string // "" = it is stored
		message     int    // 0 = 1
	}{
		{"plain", "I live in Kiel.", "anna lives in Kiel", "I live in Kiel", "", 0},
		{"another message", "I live in Kiel.", "anna lives in Kiel", "I live in Kiel", refusedMessage, 7},
		{"no message", "I live in Kiel.", "anna lives in Kiel", "I live in Kiel", "", -1},
		{"no quote", "I live in Kiel.", "anna lives in Kiel", "", refusedQuote, 0},
		{"marks as a quote", "I live in Kiel.", "anna lives in Kiel", "...", refusedQuote, 0},
		{"quote from elsewhere", "I live in Kiel.", "anna lives in Kiel", "I live in Kiel now", refusedQuote, 0},
		{"half a word", "I live in Kielce.", "anna lives in Kiel", "I live in Kiel", refusedQuote, 0},
		{"blanks and quotation marks", "My  dog’s name\nis “Rex”.", "anna's dog is called Rex", `my dog's name is "Rex"`, "", 0},
		{"another number", "The code of the gate is 4711.", "The code of the gate is 4712", "The code of the gate is 4711", refusedInvented, 0},
		{"another name", "I have a brother and he lives in Kiel.", "anna's brother Peter lives in Kiel", "I have a brother", refusedInvented, 0},
		{"a name at the beginning", "I have a brother.", "Peter is anna's brother", "I have a brother", refusedLoose, 0},
		{"an invented story", "I have a dog.", "anna's dog was killed by a car", "I have a dog", refusedLoose, 0},
		{"a number in words", "We have three kids.", "anna has 3 kids", "We have three kids", "", 0},
		{"turned around", "I am not vegetarian.", "anna is vegetarian", "I am not vegetarian", refusedTurned, 0},
		{"turned around by a verb", "I don't eat meat.", "anna eats meat", "I don't eat meat", refusedTurned, 0},
		{"not, as it was said", "I don't eat meat.", "anna doesn't eat meat", "I don't eat meat", "", 0},
		{"not, in another clause", "I don't know much, but my sister lives in Kiel.", "anna's sister lives in Kiel", "I don't know much, but my sister lives in Kiel", "", 0},
		{"a not that nobody said", "I eat meat.", "anna does not eat meat", "I eat meat", refusedTurned, 0},
		{"somebody else's words", "Tom wrote to me:\n> I live in Kiel\nWhat shall I answer?", "anna lives in Kiel", "I live in Kiel", refusedQuote, 0},
		{"words in quotation marks", `Tom said "I live in Kiel" and laughed.`, "anna lives in Kiel", "I live in Kiel", refusedOther, 0},
		{"a name in quotation marks", `My boat is called "Morning Star".`, "anna's boat is called Morning Star", `My boat is called "Morning Star"`, "", 0},
		{"code", "What does this do?\n```\nI live in Kiel\n```", "anna lives in Kiel", "I live in Kiel", refusedQuote, 0},
		{"forwarded", "Look at this.\n-----Original Message-----\nI live in Kiel", "anna lives in Kiel", "I live in Kiel", refusedQuote, 0},
		{"a password", "The password of the router is hunter2.", "The password of the router is hunter2", "The password of the router is hunter2", refusedSecret, 0},
		{"a password, hidden in the fact", "The password of the router is hunter2.", "anna's router has hunter2", "the router is hunter2", refusedSecret, 0},
		{"ein Kennwort", "Das Passwort vom Router ist Sommer7.", "Das Passwort vom Router ist Sommer7", "Das Passwort vom Router ist Sommer7", refusedSecret, 0},
		{"a password, in the next sentence", "I changed the password of the router. It is now sunflower.", "anna's router has sunflower now", "It is now sunflower", refusedSecret, 0},
		{"a word before the password", "I like tea. The password is hunter2. I live in Kiel.", "anna lives in Kiel", "I live in Kiel", "", 0},
		{"a key", "For the weather I use sk-abcdefgh12345678ijkl.", "anna uses sk-abcdefgh12345678ijkl for the weather", "For the weather I use sk-abcdefgh12345678ijkl", refusedSecret, 0},
		{"a random token", "It is aB3xK9mQ2zL7wR5tY8vC1nD4.", "It is aB3xK9mQ2zL7wR5tY8vC1nD4", "It is aB3xK9mQ2zL7wR5tY8vC1nD4", refusedSecret, 0},
		{"a card", "My card is 4111 1111 1111 1111.", "anna's card is 4111 1111 1111 1111", "My card is 4111 1111 1111 1111", refusedSecret, 0},
		{"a telephone number", "My number is +49 431 5550123.", "anna's number is +49 431 5550123", "My number is +49 431 5550123", "", 0},
		{"empty", "I live in Kiel.", " ", "I live in Kiel", refusedText, 0},
		{"too long", "I like " + strings.Repeat("very ", 500) + "sweet tea.", "anna likes " + strings.Repeat("very ", 500) + "sweet tea", "sweet tea", refusedText, 0},
		{"far away", "I live in Kiel. " + strings.Repeat(long, 40) + "My brother works in Ulm.", "anna lives in Ulm", "I live in Kiel", refusedInvented, 0},
		{"in German", "Ich wohne seit 2019 in Köln und arbeite als Krankenschwester.", "anna wohnt seit 2019 in Köln", "Ich wohne seit 2019 in Köln", "", 0},
		{"in German, invented", "Ich wohne in Köln.", "anna wohnt in Bonn", "Ich wohne in Köln", refusedInvented, 0},
		{"in Chinese", "我住在北京，喜欢喝绿茶。", "anna 喜欢喝绿茶", "喜欢喝绿茶", "", 0},
		{"in Chinese, invented", "我住在北京。", "anna 住在上海", "我住在北京", refusedLoose, 0},
		{"moved", "I just moved to Berlin.", "anna lives in Berlin", "I just moved to Berlin", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.say("$1", c.said)
			r.answer = func(string) (string, error) {
				f := fact(max(c.message, 1), c.fact, c.quote)
				if c.message < 0 {
					delete(f, "message")
				}
				return list(f), nil
			}
			done := r.harvest()
			if c.why == "" && done.Added != 1 || c.why != "" && (done.Added != 0 || done.Refused[c.why] != 1 || len(r.entries()) != 0) {
				t.Errorf("%+v, %q", done, r.texts())
			}
			if done.Messages != 1 {
				t.Errorf("not read: %+v", done)
			}
		})
	}
}

// TestNotRead: messages that are not even put to a model.
func TestNotRead(t *testing.T) {
	r := newRig(t, func(c *HarvestConfig) { c.Trusted = func(s string) bool { return s == anna } })
	r.sayIn("!group", "@weatherbot:example.org", "$bot", "The weather: I live in the cloud.", true)
	r.say("$gone", "I live in Rome.")
	if err := r.history.Redact(t.Context(), "$gone"); err != nil {
		t.Fatal(err)
	}
	r.say("$cited", "> I live in Paris")
	r.say("$smile", "🙂 ?!")
	for _, m := range []history.Message{
		{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "c", Name: "read_file", Arguments: `{"path":"x"}`}}},
		{Role: llm.Tool, CallID: "c", Text: "I live in Oslo."},
		{Role: llm.Assistant, EventID: "re:$1", Text: "I live in Bern. Your dog is called Rex."},
		{Role: llm.User, Text: "I live in the machine.", Header: "[Fri 2026-11-20 09:00 UTC, system event]"},
	} {
		m.Room, m.At = "!dm", r.clock
		if err := r.history.Append(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
	done := r.harvest()
	if done.Requests != 0 || len(r.prompts) != 0 || done.Messages != 4 {
		t.Errorf("%+v, asked %q", done, r.prompts)
	}
	want := map[string]int{"done " + notTrusted: 1, "done " + notAnyMore: 1, "done " + notOwn: 2}
	if got := r.states(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestKnownAlready: what is remembered is not remembered again, however it came there.
func TestKnownAlready(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, nil)
	me := memory.Private(anna)
	add := func(e memory.Entry) memory.Entry {
		e, _, err := r.store.Add(ctx, e, anna)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	id := r.say("$1", "I live in Kiel. I like sailing. My cat is called Mia. We have a garden. I never eat fish. Rex is my dog. I run a bakery.")
	add(memory.Entry{Scope: me, Text: "Anna lives in Kiel.", Source: memory.UserExplicit})
	add(memory.Entry{Scope: memory.Shared, Text: "anna likes sailing", Source: memory.UserExplicit})
	add(memory.Entry{Scope: me, Text: "My cat is called Mia.", Source: memory.Assistant, Event: "$1"}) // by its tool, while it answered
	if _, err := r.db.Exec(`UPDATE message SET tail = 'Recalled: anna has a garden (2026-10-01)' WHERE id = ?`, id); err != nil {
		t.Fatal(err)
	}
	fish := add(memory.Entry{Scope: me, Text: "anna never eats fish", Source: memory.Harvest})
	if _, err := r.store.Forget(ctx, memory.Access{All: true}, fish.ID); err != nil {
		t.Fatal(err)
	}
	dog := add(memory.Entry{Scope: me, Text: "anna's dog is Rex", Source: memory.FromFile})
	r.clock = time.Now() // it is put away after it was said
	if err := r.store.Retire(ctx, memory.Access{All: true, Actor: anna}, dog.ID); err != nil {
		t.Fatal(err)
	}
	r.answer = func(string) (string, error) {
		return list(fact(1, "anna lives in Kiel", "I live in Kiel"), fact(1, "anna likes sailing", "I like sailing"), fact(1, "anna's cat is called Mia", "My cat is called Mia"),
			fact(1, "anna has a garden", "We have a garden"), fact(1, "anna never eats fish", "I never eat fish"), fact(1, "anna's dog is Rex", "Rex is my dog"),
			fact(1, "anna runs a bakery", "I run a bakery"), fact(1, "A bakery is run by anna", "I run a bakery")), nil
	}
	done := r.harvest()
	want := map[string]int{refusedRecalled: 1, refusedKnown: 2, refusedForgotten: 1, refusedPutAway: 1}
	if done.Added != 1 || done.Known != 2 || fmt.Sprint(done.Refused) != fmt.Sprint(want) {
		t.Errorf("%+v", done)
	}
	if got := r.texts(); got != "Anna lives in Kiel.|anna likes sailing|My cat is called Mia.|anna runs a bakery" {
		t.Errorf("%q", got)
	}
}

// TestUndoneIsNotLearnedAgain: a message something was learned from that was taken back
// or forgotten is not read again, whatever the words.
func TestUndoneIsNotLearnedAgain(t *testing.T) {
	for _, how := range []string{"undo", "forget", "meanwhile", "redact meanwhile", "turn"} {
		t.Run(how, func(t *testing.T) {
			ctx := t.Context()
			r := newRig(t, nil)
			me := memory.Private(anna)
			r.say("$1", "I moved to Kiel last year.")
			e, _, err := r.store.Add(ctx, memory.Entry{Scope: me, Text: "a person of the north", Source: memory.Assistant, Event: "$1"}, anna)
			if err != nil {
				t.Fatal(err)
			}
			drop := func() {
				switch how {
				case "undo":
					_, err = r.store.Undo(ctx, memory.Access{Actor: anna, Scopes: []memory.Scope{me}}, "")
				case "forget", "meanwhile":
					_, err = r.store.Forget(ctx, memory.Access{Actor: anna, Scopes: []memory.Scope{me}}, e.ID)
				case "redact meanwhile":
					err = r.history.Redact(ctx, "$1")
				case "turn":
					if err = r.store.Hear(ctx, memory.Turn{Scope: me, Event: "$1", Sender: anna, At: r.clock, Conversation: "!dm", Seq: 1, Text: "I moved to Kiel last year."}); err == nil {
						_, err = r.store.Unhear(ctx, "$1")
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
			during := strings.HasSuffix(how, "meanwhile")
			if !during {
				drop()
			}
			r.answer = func(string) (string, error) {
				if during {
					drop()
				}
				return list(fact(1, "anna moved to Kiel last year", "I moved to Kiel last year")), nil
			}
			r.harvest()
			if got := r.texts(); strings.Contains(got, "Kiel") {
				t.Errorf("learned: %q", got)
			}
			if n := len(r.prompts); during != (n == 1) {
				t.Errorf("%d requests", n)
			}
		})
	}
}

var numbered = regexp.MustCompile(`(?m)^\[(\d+)\] \S+ \S+ \S+: (.*)$`)

// parrot makes a fact of each message that has the form "fact N …" and of each sentence of it.
func parrot(prompt string) (string, error) {
	var facts []map[string]any
	for _, m := range numbered.FindAllStringSubmatch(prompt, -1) {
		for _, s := range regexp.MustCompile(`Locker \d+ holds the \w+`).FindAllString(m[2], -1) {
			var n int
			fmt.Sscanf(m[1], "%d", &n)
			facts = append(facts, fact(n, s, s))
		}
	}
	return list(facts...), nil
}

// TestNothingIsSkipped: two hundred messages, many requests in a small window, of models that
// fail now and then and of a program that dies: each fact is there, once.
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
		if _, err := r.Harvest(t.Context(), "!dm", 0); err == nil {
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

// TestFailures: nothing changes when a model fails, and what fails alone is given up only
// when the model can read the others.
func TestFailures(t *testing.T) {
	for name, bad := range map[string]func() (string, error){
		"prose": func() (string, error) { return "Anna lives in Kiel.", nil },
		"cut off": func() (string, error) {
			return `[{"message":1,"fact":"anna lives in Kiel","quote":"I live in Kiel"},{"mess`, nil
		},
		"empty":      func() (string, error) { return "", nil },
		"null":       func() (string, error) { return "null", nil },
		"down":       func() (string, error) { return "", &llm.Error{Kind: llm.Unreachable, Err: errors.New("refused")} },
		"too large":  func() (string, error) { return "", &llm.Error{Kind: llm.TooLarge, Err: errors.New("window")} },
		"no message": func() (string, error) { return `{"facts": "none"}`, nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			for i := range 8 {
				r.say(fmt.Sprintf("$%d", i), fmt.Sprintf("Locker %d holds the lamp.", i))
			}
			r.answer = func(string) (string, error) { return bad() }
			for range 12 {
				if done, err := r.Harvest(t.Context(), "!dm", 0); err == nil || done.Messages != 0 {
					t.Fatalf("%+v, %v", done, err)
				}
			}
			if got := r.states(); got["new"] != 8 || len(r.entries()) != 0 {
				t.Errorf("%v, %q", got, r.texts())
			}
			r.answer = parrot
			for range 12 {
				if _, err := r.Harvest(t.Context(), "!dm", 0); err != nil {
					t.Fatal(err)
				}
			}
			if got := r.states(); got["done"] != 8 || len(r.entries()) != 8 {
				t.Errorf("afterwards %v, %q", got, r.texts())
			}
		})
	}
}

// TestPoison: one message about which no answer can be used does not keep the others from
// being read, and is given up with a reason.
func TestPoison(t *testing.T) {
	r := newRig(t, nil)
	for i := range 8 {
		text := fmt.Sprintf("Locker %d holds the lamp.", i)
		if i == 2 {
			text = "Poison. " + text
		}
		r.say(fmt.Sprintf("$%d", i), text)
	}
	r.answer = func(prompt string) (string, error) {
		if strings.Contains(prompt, "Poison") {
			return "no", nil
		}
		return parrot(prompt)
	}
	for range 30 {
		if _, err := r.Harvest(t.Context(), "!dm", 0); err == nil {
			break
		}
	}
	if got := r.states(); got["done"] != 7 || got["left "+errProse.Error()] != 1 || len(r.entries()) != 7 {
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

// TestScopesOfFacts: what was said in private goes into no request about a room, and no fact
// of it into a room; several people in a room share one.
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
			return list(fact(1, "Locker 1 holds the lamp", "Locker 1 holds the lamp"), fact(2, "My bike is green", "My bike is green"),
				fact(2, "Locker 77 holds the canary", "My bike is green"), fact(2, "Locker 77 holds the canary", "Locker 77 holds the canary")), nil
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
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v", got)
	}
	for _, p := range r.prompts {
		if strings.Count(p, "canary") > 1 || strings.Contains(p, "bike") && strings.Contains(p, "canary") {
			t.Errorf("one request for several scopes: %s", p)
		}
	}
}

// TestAnswersToQuestions: a short answer is understood with the question before it, of which
// nothing is taken for the person's own words.
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
		return list(fact(1, "anna's sister is called Jana", "Jana"), fact(1, "anna lives in Kiel", "Jana"), fact(2, "anna's brother is called Peter", "Yes"),
			fact(2, "anna's brother is called Peter", "your brother called Peter")), nil
	}
	done := r.harvest()
	if got := r.texts(); got != "anna's sister is called Jana" || done.Refused[refusedInvented] != 2 || done.Refused[refusedQuote] != 1 {
		t.Errorf("%q, %+v", got, done)
	}
}

// TestUpTo: only what was asked for is read.
func TestUpTo(t *testing.T) {
	r := newRig(t, nil)
	r.say("$1", "Locker 1 holds the lamp.")
	upTo := r.say("$2", "Locker 2 holds the lamp.")
	r.say("$3", "Locker 3 holds the lamp.")
	r.answer = parrot
	if done, err := r.Harvest(t.Context(), "!dm", upTo); err != nil || done.Messages != 2 || r.texts() != "Locker 1 holds the lamp|Locker 2 holds the lamp" {
		t.Errorf("%+v, %v, %q", done, err, r.texts())
	}
}

// TestWhen: enough messages, a long enough pause or a call; and a rest after a failure.
func TestWhen(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, func(c *HarvestConfig) { c.Messages, c.Idle = 3, 15*time.Minute })
	due := func() string {
		rooms, err := r.toRead(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(rooms, " ")
	}
	r.sayIn("!a", anna, "$1", "Locker 1 holds the lamp.", false)
	r.sayIn("!b", anna, "$2", "Locker 2 holds the lamp.", false)
	r.sayIn("!b", anna, "$3", "Locker 3 holds the lamp.", false)
	if got := due(); got != "" {
		t.Errorf("too early: %q", got)
	}
	r.sayIn("!b", anna, "$4", "Locker 4 holds the lamp.", false)
	if got := due(); got != "!b" {
		t.Errorf("after three messages: %q", got)
	}
	r.Wake("!a")
	if got := due(); got != "!a !b" {
		t.Errorf("called for: %q", got)
	}
	r.answer = func(string) (string, error) { return "no", nil }
	r.try(ctx, "!a")
	r.try(ctx, "!b")
	if got := due(); got != "" {
		t.Errorf("no rest: %q", got)
	}
	r.clock = r.clock.Add(2 * time.Minute)
	if got := due(); got != "!a !b" {
		t.Errorf("after the rest: %q", got)
	}
	r.answer = parrot
	r.try(ctx, "!a")
	r.try(ctx, "!b")
	r.sayIn("!a", anna, "$5", "Locker 5 holds the lamp.", false)
	if got := due(); got != "" {
		t.Errorf("once it is read: %q", got)
	}
	r.clock = r.clock.Add(16 * time.Minute)
	if got := due(); got != "!a" {
		t.Errorf("after a pause: %q", got)
	}
}

// TestGivesWay: a request that is under way ends when somebody writes, and is made again,
// smaller, when nobody waits any more; nothing counts as failed.
func TestGivesWay(t *testing.T) {
	var interrupt context.CancelFunc
	waits := 0
	r := newRig(t, func(c *HarvestConfig) {
		c.Quiet = func(ctx context.Context) (context.Context, func(), error) {
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

// TestRun: it reads by itself what Wake names, and ends with its context.
func TestRun(t *testing.T) {
	r := newRig(t, nil)
	r.say("$1", "Locker 1 holds the lamp.")
	asked := make(chan struct{}, 10)
	r.answer = func(p string) (string, error) { asked <- struct{}{}; return parrot(p) }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }() // go: waited for below
	r.Wake("!dm")
	select {
	case <-asked:
	case <-time.After(30 * time.Second):
		t.Fatal("not read")
	}
	for end := time.Now().Add(30 * time.Second); r.texts() == "" && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
	}
	stop()
	if err := <-ended; err != nil || r.texts() != "Locker 1 holds the lamp" {
		t.Errorf("%v, %q", err, r.texts())
	}
}

// TestSmallWindow: where there is no room for messages, nobody is asked.
func TestSmallWindow(t *testing.T) {
	r := newRig(t, nil)
	r.window = 600
	r.say("$1", "Locker 1 holds the lamp.")
	if _, err := r.All(t.Context()); err == nil || !strings.Contains(err.Error(), "600 tokens") || len(r.prompts) != 0 {
		t.Errorf("%v", err)
	}
}
