package prompt

import (
	"strings"
	"testing"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
)

// heard adds a message that memory has heard, as the session lets it.
func (w *world) heard(m history.Message, event string) {
	w.t.Helper()
	m.EventID = event
	m = w.add(m)
	w.must(w.memory.Hear(w.t.Context(), memory.Turn{Scope: w.scopes()[0], Event: event, Sender: m.Sender, At: w.now, Conversation: w.room, Seq: int(m.ID), Text: m.Text}))
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
		// And a question that says itself what it is about, with nothing before it.
		{"German, alone", "Adas Schwester Jana wohnt in Brünn.", "", "Wo wohnt eigentlich meine Schwester Jana?"},
		{"Portuguese, alone", "A irmã da Ada trabalha no hospital de Évora.", "", "Onde trabalha a minha irmã?"},
		{"Russian, alone", "Сестра Ады работает в больнице Казани.", "", "Где работает моя сестра?"},
		{"Chinese, alone", "小雅的妹妹住在成都的春熙路。", "", "我妹妹住在哪里？"},
	} {
		t.Run(tt.language, func(t *testing.T) {
			w := indexed(t, Stable)
			w.knows(tt.fact)
			if tt.answer != "" {
				w.says("Hi there!")
				w.send()
				w.heard(history.Message{Role: llm.Assistant, Text: tt.answer}, "$answer")
			}
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
