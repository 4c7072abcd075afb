package memory

import (
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"

	reverie "reverie"
	"reverie/internal/store"
)

// An undoing that an earlier release left half-way is completed by the upgrade.
func TestUndoThatWasCutOffIsCompletedByTheUpgrade(t *testing.T) {
	t.Parallel()
	old := fstest.MapFS{}
	names := must(fs.Glob(reverie.Migrations, "*.sql"))(t)
	for _, name := range names {
		if b, err := fs.ReadFile(reverie.Migrations, name); err != nil {
			t.Fatal(err)
		} else if filepath.Base(name) < "0071" {
			old[name] = &fstest.MapFile{Data: b}
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "bot.db")
	db := must(store.Open(t.Context(), path, old))(t)
	for _, id := range []string{"mem_a", "mem_b"} {
		if _, err := db.Exec(`INSERT INTO memory (id, scope, text, source, observed_at, created_at, updated_at) VALUES (?1, 'shared', 'heron ' || ?1, 'user_explicit', 0, 0, 0);
			INSERT INTO memory_op (batch, at, actor, op, entry, after) VALUES ('import', 0, 'import', 'add', ?1, json_object('id', ?1, 'scope', 'shared', 'text', 'heron ' || ?1, 'state', 'active', 'rev', 1))`, id); err != nil {
			t.Fatal(err)
		}
	}
	must(db.Exec(`INSERT INTO memory_undo (batch, by, actor, total, next) VALUES ('import', 'undoing', 'cli', 2, 3)`))(t)
	noError(t, db.Close())
	s := openAt(t, dir)
	if all, err := s.List(t.Context(), everything, Filter{}); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	sound(t, s)
	if _, err := s.Undo(t.Context(), everything, "undoing"); err != nil {
		t.Error(err)
	}
	if all, err := s.List(t.Context(), everything, Filter{}); err != nil || len(all) != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	sound(t, s)
}
