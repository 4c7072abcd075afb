package session

import (
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/prompt"
)

// TestPromptTable: !prompt says in the language of the room what became of each section and
// why the beginning was made anew, and never an error as it was said.
func TestPromptTable(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.cfg.Messages = OpenMessages(w.dir, w.cfg.DB, "de")
	if got := w.say(t, "$1", "!prompt").Text; !strings.Contains(got, "| Gespräch | 0 Nachrichten |") ||
		!strings.Contains(got, "Der Anfang entsteht mit der nächsten Anfrage neu: ein neues Gespräch.") || !strings.Contains(got, "| Anfang | core |") {
		t.Errorf("of a new conversation:\n%s", got)
	}
	if w.say(t, "$2", "Tee"); !strings.Contains(w.say(t, "$3", "!prompt").Text, "- Der Anfang steht seit 20") {
		t.Errorf("afterwards:\n%s", w.room.final["re:$3"].Text)
	}
	s := newSession(w.Manager, history.Talk("!dm"))
	section := func(id string, zone prompt.Zone, state prompt.State, note i18n.Text) prompt.SectionReport {
		return prompt.SectionReport{ID: id, Zone: zone, Tokens: 7, State: state, Note: note}
	}
	got := s.promptTable(t.Context(), prompt.Report{Layout: "stable", PrefixHash: "abc", Total: 10, Dense: 2, Window: 100, MaxOutput: 30, Reused: .5, ToolTokens: 9,
		History: prompt.HistoryReport{Messages: 2, LeftOut: 1, Tokens: 3}, Epoch: prompt.EpochReport{Started: time.Unix(0, 0).UTC(), Reason: "skills, tools changed"},
		Sections: []prompt.SectionReport{section("a", prompt.Prefix, prompt.Kept, ""), section("b", prompt.Prefix, prompt.Shrunk, i18n.New("why.both", "first", i18n.New("why.lines_shown", "count", 2, "total", 9), "second", i18n.New("why.cut_after", "count", 3, "total", 80))),
			section("c", prompt.Prefix, prompt.Dropped, i18n.New("why.too_many_characters", "count", 9, "most", 3)), section("d", prompt.Prefix, prompt.Kept, "as rendered earlier; now: open x: permission denied"),
			section("e", prompt.Tail, prompt.Failed, "panic: nil map"), section("f", prompt.Tail, prompt.Shrunk, i18n.New("why.middle_out", "count", 3, "total", 80))},
		Instructions: &prompt.InstructionReport{Tier: 2, Tokens: 5, Budget: 500},
		Problems:     []prompt.Problem{{File: "BASE_PROMPT.txt", Line: 3, Text: "is odd"}, {Text: "tasks: database is locked"}, {File: "CORE.txt", Text: "is empty"}}})
	want := `| Teil | Abschnitt | Token | Zustand | Anmerkung |
|---|---|---|---|---|
| Anfang | a | 7 | ganz |  |
| Anfang | b | 7 | teilweise | 2 von 9 Zeilen gezeigt; nach 3 von 80 Zeichen abgeschnitten |
| Anfang | c | 7 | weggelassen | 9 Zeichen sind mehr als die 3, für die Platz ist |
| Anfang | d | 7 | ganz | wie es vorher war; jetzt ist es nicht zu lesen, mein Protokoll sagt, warum |
| Gespräch | 2 Nachrichten | 3 | ganz | 1 ältere Nachricht weggelassen |
| Ende | e | 7 | nicht gelesen | nicht zu verwenden; mein Protokoll sagt, warum |
| Ende | f | 7 | teilweise | die Mitte ist weggelassen; 3 von 80 Zeichen gezeigt |
| Werkzeuge |  | 9 |  |  |

- Zusammen sind es geschätzt 10 Token, 20, wie das Modell zählt.
- Das Fenster hat 100, davon 30 für die Antwort.
- Aufbau stable, Anfang abc; 50 % davon wie in der letzten Anfrage.
- Die Anweisungen nehmen 5 von 500 Token ein, die sie in Stufe 2 haben.
- Der Anfang steht seit 1970-01-01 00:00: geändert: skills, tools.
- Jemand sollte sich ` + "`BASE_PROMPT.txt`:3, `CORE.txt` ansehen. `bot prompt` auf meinem Rechner zeigt die Worte."
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for reason, want := range map[string]string{"new conversation": "ein neues Gespräch", "new day": "ein neuer Tag", "history": "das Gespräch war zu lang geworden", "many pictures": "es waren viele Bilder",
		"layout changed": "der Aufbau wurde geändert", "sources changed": "die Quellen wurden geändert", "stored prefix is damaged": "das Aufgehobene war beschädigt",
		"memories edited": "bearbeitet: memories", "memories grew": "gewachsen: memories", "": ""} {
		if got := s.epochReason(t.Context(), reason); got != want {
			t.Errorf("%q: got %q, want %q", reason, got, want)
		}
	}
}
