package matrix_test

import (
	"path/filepath"
	"testing"

	"reverie/internal/matrix"
	"reverie/internal/store/storetest"
)

// What was sent is a copy; what waits to be sent is a promise.
func TestForgetWhatWasSent(t *testing.T) {
	db, err := storetest.Open(t, filepath.Join(t.TempDir(), "bot.db"))
	ok(t, err)
	defer db.Close()
	for _, state := range []string{"sent", "dead", "pending"} {
		if _, err := db.Exec(`INSERT INTO outbox (id, room, text, poll, state, created_at) VALUES (?1, '!r', 'I know that tea is hot.', ?2, ?1, 0)`,
			state, `{"Text":"May I note \"tea is hot\"?"}`); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := db.BeginTx(t.Context(), nil)
	ok(t, err)
	ok(t, matrix.Forget(t.Context(), tx, []string{"tea is hot", `"[forgotten]"?`, ""}))
	ok(t, tx.Commit())
	for state, want := range map[string]string{"sent": "I know that [forgotten].", "dead": "I know that [forgotten].", "pending": "I know that tea is hot."} {
		var got string
		var poll string
		if err := db.QueryRow(`SELECT text, poll FROM outbox WHERE id = ?`, state).Scan(&got, &poll); err != nil || got != want {
			t.Errorf("%s: %q, %v", state, got, err)
		}
		if gone := poll == `{"Text":"May I note [forgotten]"}`; gone != (state != "pending") { // also across what JSON escapes
			t.Errorf("%s: the poll is %s", state, poll)
		}
	}
}
