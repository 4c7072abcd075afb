package dream

import (
	"strings"
	"testing"

	"reverie/internal/history"
	"reverie/internal/memory"
)

// TestHarvestInThreads: what somebody says in a thread is noted as said in the room, or to the
// person alone in a direct chat; there is nothing that only a thread remembers.
func TestHarvestInThreads(t *testing.T) {
	r := newRig(t, nil)
	r.sayIn(string(history.TalkOf("!group:b", "$root")), anna, "$1", "Locker 1 holds the lamp.", true)
	r.sayIn(string(history.TalkOf("!dm", "$root")), anna, "$2", "Locker 2 holds the lamp.", false)
	if _, err := r.db.ExecContext(t.Context(), `INSERT INTO session (room, person, private, heard_at) VALUES ('!group:b', ?, 0, 77)`, anna); err != nil {
		t.Fatal(err)
	}
	waits, err := r.waiting(t.Context())
	if err != nil || len(waits) != 2 || waits[0].heard.Unix() != 77 {
		t.Errorf("%+v, %v", waits, err)
	}
	r.answer = parrot
	r.harvest()
	got := map[string]memory.Scope{}
	for _, e := range r.entries() {
		got[e.Text] = e.Scope
	}
	for text, want := range map[string]memory.Scope{"1": memory.Room("!group:b"), "2": memory.Private(anna)} {
		for said, scope := range got {
			if strings.Contains(said, "Locker "+text) && scope != want {
				t.Errorf("%q belongs to %s, want %s", said, scope, want)
			}
		}
	}
	if len(got) != 2 {
		t.Errorf("noted %v", got)
	}
}
