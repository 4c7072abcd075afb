package rehearsal

import (
	"testing"

	"reverie/internal/llm"
)

func TestSummarise(t *testing.T) {
	m, _ := start(t, 0)
	got := ask(t, m, llm.Message{Role: llm.System, Content: "Write a summary, at most 20 words."}, user(
		"Previous:\n<data id=\"k\" source=\"summary\">\nada said: I am Ada\n\nWord for word:\n- ada: code 4711\n</data k>\n\n"+
			"Now:\n<data id=\"k\" source=\"conversation\">\nada [Sat 09:14]: rehearse: error 500\nassistant: no\nada [Sat 09:15]: "+
			"this line has more words than there is room for here\nada [Sat 09:16]: I like tea\n</data k>"))
	if want := "ada said: I am Ada\nada said: rehearse: error 500\nada said: I like tea"; got.Text != want {
		t.Errorf("got %q", got.Text)
	}
}
