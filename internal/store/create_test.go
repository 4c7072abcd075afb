package store_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reverie/internal/store"
)

// TestOpenNewTogether: of several who find no database, one makes it, and what the
// others write is in the same. Nothing else is left in the folder.
func TestOpenNewTogether(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "bot.db")
	m := migrations("CREATE TABLE x (a TEXT);", "CREATE TABLE y (a TEXT);")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			db, err := store.Open(t.Context(), path, m)
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), "INSERT INTO x VALUES ('kept')"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := value(t, open(t, path, m), "SELECT count(*) FROM x"); got != "8" {
		t.Errorf("%s of 8 rows are there", got)
	}
	for name := range strings.FieldsSeq(names(t, dir)) {
		if !strings.HasPrefix(name, "bot.db") {
			t.Errorf("left in the folder: %s", name)
		}
	}
}
