package dream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

// talk is a world in which people talk, and a dream reads it.
type talk struct {
	*world
	h       *Harvester
	said    int
	prompts []string // of the harvest
	read    func(ctx context.Context, prompt string) (string, error)
}

func newTalk(t *testing.T, facts []fact, change func(*HarvestConfig)) *talk {
	t.Helper()
	k := &talk{world: newWorld(t, facts, perfect), read: func(_ context.Context, p string) (string, error) { return parrotOf(p) }}
	k.listen(change)
	return k
}

// listen gives the dreamer a harvester.
func (k *talk) listen(change func(*HarvestConfig)) {
	k.t.Helper()
	c := HarvestConfig{DB: k.d.cfg.DB, Store: k.store, Default: fstest.MapFS{HarvestTemplate: {Data: []byte("Find facts.\n{transcript}\n")}}, Window: func(string) (int, int) { return 8192, 512 },
		Level: func(string) trust.Integrity { return trust.Owner }, // it is the owner who speaks
		Now:   func() time.Time { return k.now }, Ask: func(ctx context.Context, _, prompt string) (string, error) {
			k.prompts = append(k.prompts, prompt)
			return k.read(ctx, prompt)
		}}
	if change != nil {
		change(&c)
	}
	var err error
	if k.h, err = OpenHarvester(c); err != nil {
		k.t.Fatal(err)
	}
	k.d.cfg.Harvester = k.h
}

// say stores what somebody said so long ago.
func (k *talk) say(room string, ago time.Duration, text string) {
	k.t.Helper()
	k.said++
	m := history.Message{Room: history.Talk(room), Role: llm.User, EventID: fmt.Sprint("$", k.said), Sender: owner, Text: text, At: k.now.Add(-ago), Header: "[Fri 2026-11-20 09:00 UTC]"}
	m.Label = labelOf(m)
	must(k.t, history.NewStore(k.d.cfg.DB).Append(k.t.Context(), &m))
}

// unread is how many messages are to be read, and how often they were tried in vain.
func (k *talk) unread() (n, tries int) {
	k.t.Helper()
	must(k.t, k.d.cfg.DB.QueryRow(`SELECT count(*), coalesce(sum(tries), 0) FROM harvest WHERE state = 'new'`).Scan(&n, &tries))
	return n, tries
}

// parrotOf takes each whole message for a fact.
func parrotOf(prompt string) (string, error) {
	var facts []map[string]any
	for _, m := range numbered.FindAllStringSubmatch(prompt, -1) {
		var n int
		fmt.Sscan(m[1], &n)
		fact := oneFact(n, m[2], m[2])
		fact["subject"], _, _ = strings.Cut(m[2], " ")
		facts = append(facts, fact)
	}
	return list(facts...), nil
}

func berlin() []fact {
	return []fact{
		{key: "home", value: "Berlin", old: true, at: 1, texts: []string{"Anna lives in Berlin."}},
		{key: "home", value: "Hamburg", at: 400, texts: []string{"Anna moved to Hamburg."}},
		{key: "tea", at: 3, texts: []string{"Anna likes green tea."}}, {key: "dog", at: 3, texts: []string{"Anna has a dog."}},
	}
}

// TestReadsFirst: what was said is read before the plan, and counts in it, unless somebody talks
// there at the moment: that is left to the next dream, but for one that was asked for.
func TestReadsFirst(t *testing.T) {
	all := berlin()
	k := newTalk(t, []fact{all[0], all[2], all[3]}, nil)
	k.of[all[1].texts[0]] = &all[1]
	k.say("!old", 10*time.Minute, all[1].texts[0])
	k.say("!fresh", 9*time.Minute, "Locker 7 holds the lamp.")
	if r := k.dream(Options{DryRun: true}); r.Harvested != nil || len(k.prompts) != 0 || !strings.Contains(strings.Join(r.Notes, "\n"), "not read yet: 2; a dry run reads none") {
		t.Fatalf("%+v", r)
	}
	if k.dream(Options{Phases: []Phase{Stale}}); len(k.prompts) != 0 {
		t.Fatal("another part reads")
	}
	r := k.dream(Options{})
	if r.Harvested == nil || r.Harvested.Messages != 1 || r.Harvested.Added != 1 || len(r.Superseded) != 1 || r.Superseded[0].Text != "Anna lives in Berlin." || r.Cost.Read != 1 || r.Cost.Calls <= 1 {
		t.Fatalf("%+v", r)
	}
	for _, want := range []string{"Read before: 1 messages, with 1 new facts", "1 of them to read", "What it read stays noted"} {
		if !strings.Contains(r.Text(time.UTC), want) {
			t.Errorf("no %q in %s", want, r.Text(time.UTC))
		}
	}
	if text := r.Digest(i18n.English, func(memory.Scope) bool { return true }); !strings.Contains(text, "I have read what was said since (messages: 1, new facts: 1).") {
		t.Error(text)
	}
	var calls, harvest int
	if err := k.d.cfg.DB.QueryRow(`SELECT calls, harvest FROM dream_run WHERE id = ?`, r.Run).Scan(&calls, &harvest); err != nil || calls != r.Cost.Calls || harvest != 1 {
		t.Errorf("%d, %d, %v", calls, harvest, err)
	}
	if left, _ := k.unread(); left != 1 {
		t.Errorf("%d messages are left", left)
	}
	if r := k.dream(Options{Now: true}); r.Harvested == nil || r.Harvested.Added != 1 {
		t.Errorf("%+v", r)
	}
	if k.dream(Options{Now: true}); len(k.prompts) != 2 {
		t.Errorf("%d requests", len(k.prompts))
	}
}

// TestReadsHalf: however much was said, half of each part of the budget is left to the plan, and each room
// has its turn; the rest is read later, and nothing is lost.
func TestReadsHalf(t *testing.T) {
	for name, b := range map[string]Budget{"calls": {Calls: 9, Tokens: 1 << 20, Time: time.Minute}, "tokens": {Calls: 99, Tokens: 3000, Time: time.Minute}, "time": {Calls: 99, Tokens: 1 << 20, Time: 2 * time.Nanosecond}, "one": {Calls: 1, Tokens: 1 << 20, Time: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t, home(""), func(c *HarvestConfig) { c.Window = func(string) (int, int) { return 700, 300 } })
			for i := range 70 {
				k.say("!loud", time.Hour, fmt.Sprintf("Locker %d holds the lamp.", i))
			}
			k.say("!quiet", time.Hour, "Locker 900 holds the rope.")
			k.d.cfg.Budget = b
			k.of, k.facts = map[string]*fact{}, nil
			k.d.cfg.Ask = func(_ context.Context, _, prompt string) (string, error) {
				k.calls++
				return always("neither")(k.world, prompt)
			}
			r := k.dream(Options{})
			reads, most := len(k.prompts), map[string]int{"calls": 4, "tokens": 20, "time": 0, "one": 0}[name]
			if reads != r.Cost.Read || reads > most || name == "calls" && reads != most || name == "tokens" && (reads < 2 || r.Cost.Tokens > b.Tokens) || !strings.Contains(strings.Join(r.Notes, "\n"), "is used up") && !strings.Contains(strings.Join(r.Notes, "\n"), "are used up") {
				t.Errorf("%d requests, %+v", reads, r)
			}
			if name != "time" && (k.calls == 0 || r.Cost.Calls != reads+k.calls) {
				t.Errorf("the plan had %d requests, %+v", k.calls, r.Cost)
			}
			if _, there := k.active()["Locker 900 holds the rope."]; there != (most > 1) {
				t.Errorf("the quiet room was read: %t", there)
			}
			if _, tries := k.unread(); tries != 0 {
				t.Errorf("%d tries are counted", tries)
			}
			k.d.cfg.Budget = Budget{Calls: 9999, Tokens: 1 << 30, Time: time.Hour}
			k.dream(Options{})
			if left, _ := k.unread(); left != 0 {
				t.Errorf("%d messages are not read", left)
			}
			seen := map[string]int{}
			for _, p := range k.prompts {
				for _, m := range numbered.FindAllStringSubmatch(p, -1) {
					seen[m[2]]++
				}
			}
			for text, n := range seen {
				equal(t, n, 1, "times %q is read", text)
			}
			equal(t, len(seen), 71, "messages were read")
		})
	}
}

// TestReadsNothing: a model that fails while it reads costs nothing but what it would have read: the
// plan goes on, the report says why, and it is read later.
func TestReadsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		err    error
		why    string
		tries  bool
	}{
		"down":    {err: &llm.Error{Kind: llm.Unreachable, Err: errors.New("refused")}, why: "llm: refused"},
		"prose":   {answer: "Anna lives in Kiel.", why: errProse.Error(), tries: true},
		"cut off": {answer: `[{"message":1,"fact":"Locker 1`, why: errPartial.Error(), tries: true},
		"panic":   {why: "panic: boo"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t, home(""), nil)
			for i := range 5 {
				k.say(fmt.Sprint("!", i), time.Hour, fmt.Sprintf("Locker %d holds the lamp.", i))
			}
			k.read = func(context.Context, string) (string, error) {
				if name == "panic" {
					panic("boo")
				}
				return c.answer, c.err
			}
			r := k.dream(Options{})
			if len(r.Merged) != 1 || len(r.Superseded) != 1 || r.State != AppliedState || !strings.Contains(strings.Join(r.Notes, "\n"), "not all that was said is read: harvest !0: "+c.why) {
				t.Errorf("%+v", r)
			}
			if left, tries := k.unread(); left != 5 || (tries > 0) != c.tries || len(k.prompts) != failures {
				t.Errorf("%d messages, %d tries, %d requests", left, tries, len(k.prompts))
			}
			k.read = func(_ context.Context, p string) (string, error) { return parrotOf(p) }
			k.h.Wake("!1")
			if rooms, err := k.h.toRead(t.Context()); err != nil || slices.Contains(rooms, "!0") || slices.Contains(rooms, "!1") || !slices.Contains(rooms, "!2") {
				t.Errorf("to be read by day, while what failed rests: %q, %v", rooms, err)
			}
			k.read = func(_ context.Context, p string) (string, error) {
				if strings.Contains(p, "Locker 0") || strings.Contains(p, "Locker 1") {
					return "no", nil
				}
				return parrotOf(p)
			}
			if r := k.dream(Options{}); r.Harvested.Messages != 3 || r.Harvested.Added != 3 {
				t.Errorf("what failed keeps others from being read: %+v", r)
			}
			k.read = func(_ context.Context, p string) (string, error) { return parrotOf(p) }
			if r := k.dream(Options{}); r.Harvested.Messages != 2 || r.Harvested.Added != 2 {
				t.Errorf("%+v", r)
			}
			k.say("!0", time.Hour, "Locker 8 holds the rope.")
			if rooms, err := k.h.toRead(t.Context()); err != nil || !slices.Equal(rooms, []string{"!0"}) {
				t.Errorf("what was read rests no more: %q, %v", rooms, err)
			}
		})
	}
}

// TestReadsTooSlowly: a model that does not answer is waited for no longer than a dream waits, and is
// not asked on; who writes ends it at once. Neither counts against what was said.
func TestReadsTooSlowly(t *testing.T) {
	dir := prepare(t, home(""))
	synctest.Test(t, func(t *testing.T) {
		k := &talk{world: openWorld(t, dir, home(""), perfect)}
		k.listen(nil)
		for i := range 3 {
			k.say(fmt.Sprint("!", i), time.Hour, fmt.Sprintf("Locker %d holds the lamp.", i))
		}
		leave := func() {}
		k.read = func(ctx context.Context, _ string) (string, error) {
			leave()
			<-ctx.Done()
			return "", ctx.Err()
		}
		r := k.dream(Options{Now: true}) // the clock stands before the memories
		if len(r.Superseded) != 1 || len(k.prompts) != 1 || !strings.Contains(strings.Join(r.Notes, "\n"), "no answer within 2m0s") {
			t.Errorf("%d requests, %+v", len(k.prompts), r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		leave = cancel
		r, err := k.d.Dream(ctx, Options{Now: true})
		if err == nil || r.State != Failed || r.Reason != errYielded || r.Harvested == nil || len(r.Notes) > 0 {
			t.Errorf("%+v, %v", r, err)
		}
		k.h.one <- struct{}{} // what is read by day at that moment is waited for, but no longer than nobody writes
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if r, err := k.d.Dream(ctx, Options{Now: true}); err == nil || r.Reason != errYielded || r.Cost.Calls != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if left, tries := k.unread(); left != 3 || tries != 0 {
			t.Errorf("%d messages, %d tries", left, tries)
		}
		equal(t, len(result(k.h.toRead(t.Context()))(t)), 3, "")
		k.d.cfg.DB.Close()
	})
}

// TestEnoughByDay: in 24 hours so many requests; each room
// has its turn, what is more is read later, and a dream has its own.
func TestEnoughByDay(t *testing.T) {
	k := newTalk(t, nil, func(c *HarvestConfig) {
		c.Calls, c.Messages, c.Window = 10, 1, func(string) (int, int) { return 700, 300 }
	})
	for i := range 250 {
		k.say("!loud", 0, fmt.Sprintf("Locker %d holds the lamp.", i))
	}
	k.say("!quiet", 0, "Locker 900 holds the rope.")
	day := func() int {
		t.Helper()
		before := len(k.prompts)
		for range 3 {
			k.now = k.now.Add(time.Minute)
			rooms := result(k.h.toRead(t.Context()))(t)
			_, _ = k.h.turns(t.Context(), rooms, func(ctx context.Context, p string) (string, error) {
				k.now = k.now.Add(time.Millisecond) // a request takes time
				return k.h.byDay(ctx, p)
			}, len(rooms))
		}
		return len(k.prompts) - before
	}
	equal(t, day(), 10, "requests")
	if _, there := k.active()["Locker 900 holds the rope."]; !there {
		t.Error("where little is said nothing was read")
	}
	equal(t, day(), 0, "more requests")
	if r := k.dream(Options{Phases: []Phase{Harvest}, Now: true}); r.Cost.Read == 0 {
		t.Errorf("%+v", r)
	}
	k.now = k.now.Add(24 * time.Hour)
	k.say("!quiet", 0, "Locker 901 holds the rope.")
	equal(t, day(), 1, "requests the next day")
	if left, tries := k.unread(); left != 0 || tries != 0 {
		t.Errorf("%d messages are left, %d tries", left, tries)
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
		{"somebody else's words", "Tom wrote to me:\n> I live in Kiel\nWhat shall I answer?", "anna lives in Kiel", "I live in Kiel", refusedQuote, 0},
		{"words in quotation marks", `Tom said "I live in Kiel" and laughed.`, "anna lives in Kiel", "I live in Kiel", refusedOther, 0},
		{"a name in quotation marks", `My boat is called "Morning Star".`, "anna's boat is called Morning Star", `My boat is called "Morning Star"`, "", 0},
		{"code", "What does this do?\n```\nI live in Kiel\n```", "anna lives in Kiel", "I live in Kiel", refusedQuote, 0},
		{"forwarded", "Look at this.\n-----Original Message-----\nI live in Kiel", "anna lives in Kiel", "I live in Kiel", refusedQuote, 0},
		{"a password", "The password of the router is hunter2.", "The password of the router is hunter2", "The password of the router is hunter2", refusedSecret, 0},
		{"a password, hidden in the fact", "The password of the router is hunter2.", "anna's router has hunter2", "the router is hunter2", refusedSecret, 0},
		{"a password, in the next sentence", "I changed the password of the router. It is now sunflower.", "anna's router has sunflower now", "It is now sunflower", refusedSecret, 0},
		{"a word before the password", "I like tea. The password is hunter2. I live in Kiel.", "anna lives in Kiel", "I live in Kiel", "", 0},
		{"a password, by the word of the fact alone", "For the router take sunflower.", "The password of the router is sunflower", "For the router take sunflower", refusedSecret, 0},
		{"a telephone number", "My number is +49 431 5550123.", "anna's number is +49 431 5550123", "My number is +49 431 5550123", "", 0},
		{"empty", "I live in Kiel.", " ", "I live in Kiel", refusedText, 0},
		{"too long", "I like " + strings.Repeat("very ", 500) + "sweet tea.", "anna likes " + strings.Repeat("very ", 500) + "sweet tea", "sweet tea", refusedText, 0},
		{"far away", "I live in Kiel. " + strings.Repeat(long, 40) + "My brother works in Ulm.", "anna lives in Ulm", "I live in Kiel", refusedInvented, 0},
		{"in German", "Ich wohne seit 2019 in Köln und arbeite als Krankenschwester.", "anna wohnt seit 2019 in Köln", "Ich wohne seit 2019 in Köln", "", 0},
		{"in Chinese", "我住在北京，喜欢喝绿茶。", "anna 喜欢喝绿茶", "喜欢喝绿茶", "", 0},
		{"in Chinese, invented", "我住在北京。", "anna 住在上海", "我住在北京", refusedLoose, 0},
		{"moved", "I just moved to Berlin.", "anna lives in Berlin", "I just moved to Berlin", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.say("$1", c.said)
			r.answer = func(string) (string, error) {
				f := oneFact(max(c.message, 1), c.fact, c.quote)
				if c.message < 0 {
					delete(f, "message")
				}
				return list(f), nil
			}
			done := r.harvest()
			if c.why == "" && done.Added != 1 || c.why != "" && (done.Added != 0 || done.Refused[c.why] != 1 || len(r.entries()) != 0) {
				t.Errorf("%+v, %q", done, r.texts())
			}
			equal(t, done.Messages, 1, "not read: %+v", done)
		})
	}
}

// TestNotRead: messages that are not even put to a model.
func TestNotRead(t *testing.T) {
	r := newRig(t, func(c *HarvestConfig) {
		c.Level = func(s string) trust.Integrity {
			if s == anna {
				return trust.User
			}
			return trust.Foreign
		}
	})
	r.sayIn("!group", "@weatherbot:example.org", "$bot", "The weather: I live in the cloud.", true)
	r.say("$gone", "I live in Rome.")
	must(t, r.history.Redact(t.Context(), "$gone"))
	r.say("$cited", "> I live in Paris")
	r.say("$smile", "🙂 ?!")
	for _, m := range []history.Message{
		{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "c", Name: "read_file", Arguments: `{"path":"x"}`}}},
		{Role: llm.Tool, CallID: "c", Text: "I live in Oslo."},
		{Role: llm.Assistant, EventID: "re:$1", Text: "I live in Bern. Your dog is called Rex."},
		{Role: llm.User, Text: "I live in the machine.", Header: "[Fri 2026-11-20 09:00 UTC, system event]"},
	} {
		m.Room = "!dm"
		r.hear(m)
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
// Holds W15.
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
	add(memory.Entry{Scope: me, Text: "Anna lives in Kiel.", Source: memory.UserExplicit, Integrity: trust.User})
	add(memory.Entry{Scope: memory.Shared, Text: "anna likes sailing", Source: memory.UserExplicit, Integrity: trust.User})
	add(memory.Entry{Scope: me, Text: "My cat is called Mia.", Source: memory.Assistant, Integrity: trust.User, Event: "$1"}) // by its tool, while it answered
	result(r.db.Exec(`UPDATE message SET tail = 'Recalled: anna has a garden (2026-10-01)' WHERE id = ?`, id))(t)
	fish := add(memory.Entry{Scope: me, Text: "anna never eats fish", Source: memory.Harvest})
	result(r.store.Forget(ctx, memory.Access{All: true}, fish.ID))(t)
	dog := add(memory.Entry{Scope: me, Text: "anna's dog is Rex", Source: memory.FromFile})
	r.clock = time.Now() // it is put away after it was said
	result(r.db.Exec(`UPDATE memory SET state = 'archived', updated_at = ? WHERE id = ?`, r.clock.UnixMilli(), dog.ID))(t)
	r.answer = func(string) (string, error) {
		return list(oneFact(1, "anna lives in Kiel", "I live in Kiel"), oneFact(1, "anna likes sailing", "I like sailing"), oneFact(1, "anna's cat is called Mia", "My cat is called Mia"),
			oneFact(1, "anna has a garden", "We have a garden"), oneFact(1, "anna never eats fish", "I never eat fish"), oneFact(1, "anna's dog is Rex", "Rex is my dog"),
			oneFact(1, "anna runs a bakery", "I run a bakery"), oneFact(1, "A bakery is run by anna", "I run a bakery")), nil
	}
	done := r.harvest()
	want := map[string]int{refusedRecalled: 1, refusedKnown: 2, refusedForgotten: 1, refusedPutAway: 1}
	if done.Added != 1 || done.Known != 2 || fmt.Sprint(done.Refused) != fmt.Sprint(want) {
		t.Errorf("%+v", done)
	}
	equal(t, r.texts(), "Anna lives in Kiel.|anna likes sailing|My cat is called Mia.|anna runs a bakery", "")
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
				return list(oneFact(1, "anna moved to Kiel last year", "I moved to Kiel last year")), nil
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
