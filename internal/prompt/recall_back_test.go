package prompt

import (
	"strings"
	"testing"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
)

// answersHeard adds an answer that memory has heard, as the session lets it.
func (w *world) answersHeard(event, text string) {
	w.t.Helper()
	m := w.add(history.Message{Role: llm.Assistant, Text: text, EventID: event})
	w.must(w.memory.Hear(w.t.Context(), memory.Turn{Scope: w.scopes()[0], Event: event, At: w.now, Conversation: w.room, Seq: int(m.ID), Text: text}))
}

// TestRecallPointsBack: a question whose own words say nothing of what it is about is about
// the last answer, in whatever language.
func TestRecallPointsBack(t *testing.T) {
	for _, tt := range []struct{ language, fact, answer, question string }{
		{"English", "Ada's passport lies in the blue box on the shelf.", "Do you mean your passport?", "Yes, where did I put it?"},
		{"English, short", "Ada's passport lies in the blue box on the shelf.", "There are two papers of yours that I know. Do you mean your passport?", "Yes, exactly."},
		{"English, no question before", "Ada's passport lies in the blue box on the shelf.", "Then do not forget your passport.", "And where is it?"},
		{"German", "Adas Reisepass liegt in der blauen Schachtel.", "Meinst du deinen Reisepass?", "Ja genau, wo ist der?"},
		{"French", "Le passeport d'Ada est dans la boîte bleue.", "Tu veux dire ton passeport ?", "Oui, où est-il ?"},
		{"Spanish", "El pasaporte de Ada está en la caja azul.", "¿Te refieres a tu pasaporte?", "Sí, ¿dónde está?"},
		{"a long answer", "Ada's passport lies in the blue box on the shelf.", strings.Repeat("There is much to say about trains, ships and harbours. ", 20) + "Do you mean your passport?", "Yes, where did I put it?"},
		{"Chinese, a long answer", "小雅的护照放在蓝色盒子里。", strings.Repeat("火车船只港口都有很多可以讨论的内容。", 20) + "你是说护照吗？", "是的，在哪里？"},
		{"Chinese", "小雅的护照放在蓝色盒子里。", "你是说护照吗？", "是的，在哪里？"},
	} {
		t.Run(tt.language, func(t *testing.T) {
			w := indexed(t, Stable)
			w.knows(tt.fact)
			w.says("Hi there!")
			w.send()
			w.answersHeard("$answer", tt.answer)
			w.says(tt.question)
			w.send()
			if strings.Contains(w.sent.Prefix, tt.fact) {
				t.Fatal("it stands in the prefix: this test measures nothing")
			}
			if got := w.recalledNow(); !strings.Contains(got, tt.fact) {
				t.Errorf("%q after %q does not recall %q:\n%s", tt.question, tt.answer, tt.fact, got)
			}
		})
	}
}

// TestRecallDoesNotPointBack: thanks after an answer bring nothing up, and a question that
// says what it is about is read by its own words.
func TestRecallDoesNotPointBack(t *testing.T) {
	w := indexed(t, Stable)
	w.knows("Ada's passport lies in the blue box on the shelf.", "Ada is allergic to walnuts.")
	for _, text := range []string{"Hi there!", "Thanks, that is great.", "ok 👍", "No, thanks!", "Danke, super!", "How do quasars emit radiation?", "Do walnuts, quasars and pulsars glow?"} {
		w.says(text)
		w.send()
		if got := w.recalledNow(); got != "" {
			t.Errorf("%q brought up\n%s", text, got)
		}
		w.answers("I have noted what you say about your passport. Anything else?")
	}
}
