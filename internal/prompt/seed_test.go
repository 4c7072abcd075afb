package prompt

import (
	"os"
	"strings"
	"testing"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// TestSeedForAPerson: the seed stands beside the first message of a person in a
// conversation, whatever the program said before, and beside nothing else.
func TestSeedForAPerson(t *testing.T) {
	w := newWorld(t, Stable)
	event := func(text string) {
		w.add(history.Message{Role: llm.User, Text: text, Header: "[system event: sub-session result]"})
	}
	event("Write the weekly report.")
	w.send()
	w.expect(false, "Greet the person.")
	w.answers("It is written.")
	w.answers("Which of the two is right, 1a or 1b?") // what the program says as it is
	w.tells("Hello again")
	w.expect(true, "Greet the person.")
	w.answers("Hello.")
	w.tells("And now?")
	if n := strings.Count(flat(w.last), "Greet the person."); n != 1 {
		t.Errorf("the seed is said %d times:\n%s", n, flat(w.last))
	}

	// A sub-session is no conversation of a person's.
	w.room, w.last = "sub:one", nil
	event("## Objective\nCount the plants.")
	w.send()
	w.expect(false, "Greet the person.")

	// A thread, or a conversation that goes on with a summary, has begun before.
	w.room, w.last, w.summary = "!other:example.org", nil, "They talked about beans."
	w.tells("And the beans?")
	w.expect(false, "Greet the person.")
}

// TestShippedSeeds: each language has the assistant introduce itself by its name, and say
// in few words what it can do. English stands in for a language that has none.
func TestShippedSeeds(t *testing.T) {
	w := shippedWorld(t, Stable)
	for _, language := range []string{"en", "de", "fr", "es", "it", "zh", "ja", "xx"} {
		w.assembler.cfg.SeedLanguage, w.last = language, nil
		w.send()
		file := seedFile(language)
		if language == "xx" {
			w.wrong("prompts/SEED_xx.txt: is missing; SEED_en.txt is used")
			file = seedFile("en")
		}
		data, err := os.ReadFile(w.path(file))
		w.must(err)
		text := string(data)
		for _, want := range []string{"{agent_name}", "`!help`"} {
			if n := strings.Count(text, want); n != 1 {
				t.Errorf("%s: %s stands there %d times", language, want, n)
			}
		}
		if n := llm.EstimateTokens(text); n > 130 {
			t.Errorf("%s: %d tokens", language, n)
		}
		w.expect(true, strings.TrimSpace(strings.ReplaceAll(text, "{agent_name}", "Reverie")))
		w.room = "!after" + language + ":example.org"
		w.says("Hello")
	}
}
