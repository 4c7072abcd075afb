package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"reverie/internal/test/expect"
)

// ownWishes are wishes of people on how they are answered, said twice and then contradicted, and what the model
// is told of the wish and of its contrary.
var ownWishes = []struct{ language, once, twice, rule, contrary, other string }{
	{"en", "Please answer shorter.", "Shorter please", "Answer in one to three sentences", "no, longer", "Answer in full"},
	{"en", "Please don't use emojis.", "no emojis", "Use words only, no emoji", "You can use emojis again", "Emoji are welcome"},
	{"de", "Antworte bitte kürzer.", "Fass dich kurz.", "Answer in one to three sentences", "Bitte wieder ausführlicher", "Answer in full"},
	{"de", "Duze mich bitte.", "Wir können uns gerne duzen.", "Use the familiar address", "Siezen Sie mich bitte", "Use the polite address"},
	{"de", "Sag bitte nicht mehr „absolut“.", "Sag nicht „absolut“.", "phrase “absolut”", "", ""},
	{"es", "Responde más corto, por favor", "Sé más breve", "Answer in one to three sentences", "no, más largo", "Answer in full"},
	{"es", "Tutéame", "Puedes tutearme", "Use the familiar address", "Trátame de usted", "Use the polite address"},
	{"es", "No uses emojis, por favor", "sin emojis", "Use words only, no emoji", "puedes usar emojis", "Emoji are welcome"},
	{"es", "No digas «absolutamente».", "No digas «absolutamente»", "phrase “absolutamente”", "", ""},
	{"fr", "Réponds plus court, s'il te plaît", "Sois plus bref", "Answer in one to three sentences", "non, plus long", "Answer in full"},
	{"fr", "On peut se tutoyer", "Tutoie-moi", "Use the familiar address", "Vouvoyez-moi, s'il vous plaît", "Use the polite address"},
	{"fr", "Ne dis plus « absolument »", "Ne dis plus « absolument ».", "phrase “absolument”", "", ""},
	{"it", "Rispondi più breve, per favore", "più breve", "Answer in one to three sentences", "no, più lungo", "Answer in full"},
	{"it", "Dammi del tu", "Possiamo darci del tu?", "Use the familiar address", "Mi dia del Lei", "Use the polite address"},
	{"it", "Non dire più «assolutamente».", "Non dire più «assolutamente»", "phrase “assolutamente”", "", ""},
}

// TestWishesHold: a wish that a person says twice is in each request from then on, after !new and after a restart.
// Contradicted, or forgotten with !voice, it is in none, at once.
func TestWishesHold(t *testing.T) {
	for i, c := range ownWishes {
		t.Run(fmt.Sprint(c.language, " ", c.once), func(t *testing.T) {
			var mu sync.Mutex
			var requests []string
			model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				_, stream := lastAsked(body)
				if err != nil || !stream {
					http.NotFound(w, r)
					return
				}
				mu.Lock()
				requests = append(requests, string(body))
				mu.Unlock()
				reply(w, stream, "Well.")
			}))
			defer model.Close()
			file := configFile(t, `data: ./data
harvest: {enabled: false}
dreaming: {schedule: ""}
llm: {models: [{name: m, base_url: "`+model.URL+`/v1", model: m, window: 32000}]}
log: {level: error}
`)
			says := func(lines ...string) (asked []string) {
				t.Helper()
				requests = nil
				code, printed := runBot(t, strings.Join(lines, "\n")+"\n", "chat", "--config", file)
				expect.Equal(t, code, 0, printed)
				return requests
			}
			// holds reports whether the newest list of wishes in a request has rule.
			holds := func(request, rule string) bool {
				parts := strings.Split(request, "How the Person Likes Answers:")
				return len(parts) > 1 && strings.Contains(parts[len(parts)-1], rule)
			}
			asked := says("Hello.", c.once, "Well?", c.twice, "And now?", "!new", "Hello again.")
			expect.Len(t, asked, 6, "requests")
			for k, request := range asked {
				expect.Equal(t, holds(request, c.rule), k > 0, k)
			}
			asked = says("!new", "Good evening.") // after a restart
			expect.False(t, !holds(asked[0], c.rule), "not after a restart")
			if c.contrary == "" {
				asked = says("!voice forget "+fmt.Sprint(lineOf(t, c.rule, file)), "Well?", "!new", "Hello.")
			} else {
				asked = says(c.contrary, "Well?", "!new", "Hello.")
				expect.False(t, !holds(asked[0], c.other) || !holds(asked[2], c.other), "the contrary does not hold")
			}
			for k, request := range asked {
				expect.False(t, holds(request, c.rule), "request %d of wish %d still has it", k, i)
			}
		})
	}
}

// lineOf returns the number of the line of !voice on a phrase.
func lineOf(t *testing.T, rule, file string) int {
	t.Helper()
	_, printed := runBot(t, "!voice\n", "chat", "--config", file)
	_, phrase, _ := strings.Cut(rule, "“")
	for line := range strings.SplitSeq(printed, "\n") {
		var n int
		if strings.Contains(line, strings.TrimSuffix(phrase, "”")) {
			if _, err := fmt.Sscanf(strings.TrimSpace(line), "%d.", &n); err == nil {
				return n
			}
		}
	}
	t.Fatalf("no line on %s in %s", rule, printed)
	return 0
}
