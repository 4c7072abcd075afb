package session

import (
	"fmt"
	"strings"
	"testing"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// asked is the request that the room's next message would make, as one text. Nothing is
// stored: each question finds the conversation as it stands.
func (w *world) wouldSend(t *testing.T, question string) string {
	t.Helper()
	past := w.past(t)
	s := newSession(w.Manager, "!dm")
	how := result(s.manner(t.Context(), inDM.Place, past, true))(t)
	last := past[len(past)-1]
	past = append(past, history.Message{ID: last.ID + 1, Room: last.Room, Conversation: last.Conversation, Role: llm.User, Sender: owner,
		EventID: "$asked", Text: question, At: w.cfg.Now(), Header: w.cfg.Prompt.Header(w.cfg.Now(), owner, false)})
	in := Inbound{ID: "$asked", Room: "!dm", Sender: owner, Private: true}
	p := result(w.cfg.Prompt.Assemble(t.Context(), s.promptTurn(in, past, how)))(t)
	var b strings.Builder
	for _, m := range p.Messages() {
		b.WriteString(m.Content + "\n")
	}
	return b.String()
}

// checkReachable asks for each of the sixty facts, in other words than it was said in.
// The model has the answer before it when it reads the question; that it could also
// call search_memory does not count, as a small window does not offer it.
func (w *world) checkReachable(t *testing.T) {
	t.Helper()
	there := 0
	var lost []int
	for i := range 60 {
		if strings.Contains(w.wouldSend(t, question(i)), code(i)) {
			there++
		} else {
			lost = append(lost, i)
		}
	}
	t.Logf("%d of 60 facts reach the model when they are asked for; not %v", there, lost)
	if there < 57 {
		t.Errorf("%d of 60 facts reach the model when they are asked for; not %v", there, lost)
	}
}

func question(i int) string {
	things := []string{"the shelf down in the cellar", "my train ticket", "the bicycle key", "the library book", "the office's form", "that pump part"}
	return fmt.Sprintf("What was the mark on %s again, the one with number %d?", things[i%len(things)], i)
}
