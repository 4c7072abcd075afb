package memory

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/store/storetest"
)

// TestLongTextsLeaveTheIndexWhole: a long message, and the texts beside it, leave the index
// without damage. SQLite's secure-delete did not manage that.
func TestLongTextsLeaveTheIndexWhole(t *testing.T) {
	db := must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	f := OpenFTS(db)
	for i := range 4 {
		long := fmt.Sprintf("hear heron%d", i) + strings.Repeat("\nI go on about the weather, which is fine today.", 400)
		for j, text := range []string{long, fmt.Sprintf("I know of heron%d", i)} {
			turn := Turn{Scope: Shared, Event: fmt.Sprintf("$%d.%d", i, j), Sender: []string{"@a:x", ""}[j], Conversation: "c", Seq: 2*i + j + 1, Text: text}
			noError(t, f.Hear(t.Context(), turn))
		}
	}
	for _, event := range []string{"$2.0", "$2.1", "$0.0"} {
		noError(t, f.Unhear(t.Context(), Shared, event))
		noError(t, indexIsSound(t, f))
	}
}
