package harvest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// TestDailyLimit: requests in 24 hours are limited and rooms take turns; the rest is read later,
// and dreams have their own limit.
func TestDailyLimit(t *testing.T) {
	r := newRig(t, func(c *Config) { c.CallsPerDay, c.Messages = 10, 1 })
	r.window, r.answer = 850, parrot
	for i := range 250 {
		r.sayIn("!loud", anna, fmt.Sprint("$", i), fmt.Sprintf("Locker %d holds the lamp.", i), false)
	}
	r.sayIn("!quiet", anna, "$quiet", "Locker 900 holds the rope.", false)
	day := func() int {
		t.Helper()
		before := len(r.prompts)
		for range 3 {
			r.clock = r.clock.Add(time.Minute)
			rooms := expect.Must(r.Due(t.Context()))(t)
			_, _ = r.Read(t.Context(), rooms, r.askWithinLimit, len(rooms))
		}
		return len(r.prompts) - before
	}
	expect.Equal(t, day(), 10, "requests")
	if !strings.Contains(r.texts(), "Locker 900 holds the rope") {
		t.Error("where little is said nothing was read")
	}
	expect.Equal(t, day(), 0, "more requests")
	if done := r.harvest(); done.Requests == 0 {
		t.Errorf("%+v", done)
	}
	r.clock = r.clock.Add(24 * time.Hour)
	r.sayIn("!quiet", anna, "$again", "Locker 901 holds the rope.", false)
	expect.Equal(t, day(), 1, "requests the next day")
	expect.Equal(t, r.states()["new"], 0, "messages are left")
}

// TestRefused: findings that are not accepted.
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
		{"a name at the beginning", "I have a brother.", "Peter is anna's brother", "I have a brother", refusedUngrounded, 0},
		{"an invented story", "I have a dog.", "anna's dog was killed by a car", "I have a dog", refusedUngrounded, 0},
		{"a number in words", "We have three kids.", "anna has 3 kids", "We have three kids", "", 0},
		{"turned around", "I am not vegetarian.", "anna is vegetarian", "I am not vegetarian", refusedNegation, 0},
		{"turned around by a verb", "I don't eat meat.", "anna eats meat", "I don't eat meat", refusedNegation, 0},
		{"not, as it was said", "I don't eat meat.", "anna doesn't eat meat", "I don't eat meat", "", 0},
		{"not, in another clause", "I don't know much, but my sister lives in Kiel.", "anna's sister lives in Kiel", "I don't know much, but my sister lives in Kiel", "", 0},
		{"somebody else's words", "Tom wrote to me:\n> I live in Kiel\nWhat shall I answer?", "anna lives in Kiel", "I live in Kiel", refusedQuote, 0},
		{"words in quotation marks", `Tom said "I live in Kiel" and laughed.`, "anna lives in Kiel", "I live in Kiel", refusedOthersWords, 0},
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
		{"in Chinese, invented", "我住在北京。", "anna 住在上海", "我住在北京", refusedUngrounded, 0},
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
			expect.Equal(t, done.Messages, 1, "not read: %+v", done)
		})
	}
}

// TestNotRead: messages that are not sent to a model.
func TestNotRead(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Level = func(s string) trust.Integrity {
			if s == anna {
				return trust.User
			}
			return trust.Foreign
		}
	})
	r.sayIn("!group", "@weatherbot:example.org", "$bot", "The weather: I live in the cloud.", true)
	r.say("$gone", "I live in Rome.")
	expect.OK(t, r.history.Redact(t.Context(), "$gone"))
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
	want := map[string]int{"done " + skippedUntrusted: 1, "done " + skippedRedacted: 1, "done " + skippedNoOwnWords: 2}
	if got := r.states(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestKnownAlready: a stored fact is not stored again, whatever its source.
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
	expect.Must(r.db.Exec(`UPDATE message SET tail = 'Recalled: anna has a garden (2026-10-01)' WHERE id = ?`, id))(t)
	fish := add(memory.Entry{Scope: me, Text: "anna never eats fish", Source: memory.Harvest})
	expect.Must(r.store.Forget(ctx, memory.Access{All: true}, fish.ID))(t)
	dog := add(memory.Entry{Scope: me, Text: "anna's dog is Rex", Source: memory.FromFile})
	r.clock = time.Now() // it is put away after it was said
	expect.Must(r.db.Exec(`UPDATE memory SET state = 'archived', updated_at = ? WHERE id = ?`, r.clock.UnixMilli(), dog.ID))(t)
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
	expect.Equal(t, r.texts(), "Anna lives in Kiel.|anna likes sailing|My cat is called Mia.|anna runs a bakery")
}

// TestForgottenNotRelearned: a message whose facts were undone or forgotten is not read again.
func TestForgottenNotRelearned(t *testing.T) {
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
					if err = r.store.IndexTurns(ctx, memory.Turn{Scope: me, Event: "$1", Sender: anna, At: r.clock, Conversation: "!dm", Seq: 1, Text: "I moved to Kiel last year."}); err == nil {
						_, err = r.store.RedactTurn(ctx, "$1")
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
