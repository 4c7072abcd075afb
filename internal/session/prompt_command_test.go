package session

import (
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/prompt"
)

// TestPromptWords: !prompt says in the language of the room what the next request is made of.
func TestPromptWords(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.cfg.Messages = OpenMessages(w.dir, w.cfg.DB, "de")
	if got := w.say(t, "$1", "!prompt").Text; !strings.Contains(got, "Der Anfang entsteht mit der nächsten Anfrage neu.") {
		t.Errorf("of a new conversation:\n%s", got)
	}
	if w.say(t, "$2", "Tee"); !strings.Contains(w.say(t, "$3", "!prompt").Text, "- Der Anfang steht seit 20") {
		t.Errorf("afterwards:\n%s", w.room.final["re:$3"].Text)
	}
	got := newSession(w.Manager, history.Talk("!dm")).promptWords(t.Context(), prompt.Report{Layout: "stable", PrefixHash: "abc", Total: 10, Dense: 2, Window: 100, MaxOutput: 30, Reused: .5,
		Epoch: prompt.EpochReport{Started: time.Unix(0, 0).UTC()}, Instructions: &prompt.InstructionReport{Tier: 2, Tokens: 5, Budget: 500},
		Problems: []prompt.Problem{{File: "BASE_PROMPT.txt", Line: 3, Text: "is odd"}, {Text: "tasks: database is locked"}, {File: "CORE.txt", Text: "is empty"}}})
	want := `- Zusammen sind es geschätzt 10 Token, 20, wie das Modell zählt.
- Das Fenster hat 100, davon 30 für die Antwort.
- Aufbau stable, Anfang abc; 50 % davon wie in der letzten Anfrage.
- Die Anweisungen nehmen 5 von 500 Token ein, die sie in Stufe 2 haben.
- Der Anfang steht seit 1970-01-01 00:00.
- Jemand sollte sich ` + "`BASE_PROMPT.txt`:3, `CORE.txt` ansehen. `bot prompt` auf meinem Rechner zeigt die Worte."
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
