package history_test

import (
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/trust"
)

// TestReadersOfAnEvent: a conversation that begins with a system event for one person is read
// by that person; one for all who read the room says nothing yet.
func TestReadersOfAnEvent(t *testing.T) {
	s, _ := open(t)
	for room, readers := range map[history.Talk]trust.Readers{"!direct": trust.Person("@a:x"), "!group": trust.Room("!group")} {
		m := history.Message{Room: room, Role: llm.User, EventID: "event", Text: "what was found", At: time.Now(), Label: trust.Label{Integrity: trust.User, Readers: readers}}
		noError(t, s.Append(t.Context(), &m))
		want := readers
		if readers.Person() == "" {
			want = trust.Nobody
		}
		if got, err := s.Readers(t.Context(), room); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", room, got, err, want)
		}
	}
}
