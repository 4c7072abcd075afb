package matrix_test

import (
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"

	"reverie"
	"reverie/internal/store"
)

// TestDirectWithFromOlderDatabase: a direct chat that was begun by an invitation stays one, with
// who invited. Where a tombstone may have changed the inviter, the account's list decides, and
// so it does where the bot invited itself.
func TestDirectWithFromOlderDatabase(t *testing.T) {
	before := fstest.MapFS{}
	names, err := fs.Glob(reverie.Migrations, "*.sql")
	ok(t, err)
	for _, name := range names {
		if name < "0048" {
			data, err := fs.ReadFile(reverie.Migrations, name)
			ok(t, err)
			before[name] = &fstest.MapFile{Data: data}
		}
	}
	path := filepath.Join(t.TempDir(), "bot.db")
	db, err := store.Open(t.Context(), path, before)
	ok(t, err)
	for _, query := range []string{
		`INSERT INTO matrix_sync (user, device, next_batch, at) VALUES ('@bot:b', 'D', 's1', 1)`,
		`INSERT INTO matrix_room (id, membership, direct, inviter, replaces, moved) VALUES
			('!dm', 'joined', 1, '@me:b', '', 0), ('!listed', 'joined', 1, '', '', 0), ('!own', 'joined', 1, '@bot:b', '', 0),
			('!group', 'joined', 0, '@me:b', '', 0), ('!next', 'joined', 1, '@guest:b', '!dm', 1),
			('!named', 'joined', 1, '@guest:b', '!guest', 0), ('!again', 'joined', 0, '@guest:b', '!guest', 0)`,
	} {
		_, err := db.Exec(query)
		ok(t, err)
	}
	ok(t, db.Close())
	db, err = store.Open(t.Context(), path, reverie.Migrations)
	ok(t, err)
	defer db.Close()
	for room, want := range map[string]string{"!dm": "@me:b", "!listed": "", "!own": "", "!group": "", "!next": "", "!named": ""} {
		var with string
		if err := db.QueryRow(`SELECT direct_with FROM matrix_room WHERE id = ?`, room).Scan(&with); err != nil || with != want {
			t.Errorf("%s is with %q, want %q, %v", room, with, want, err)
		}
	}
	for query, want := range map[string]string{
		`SELECT state FROM matrix_tombstone WHERE room = '!dm' AND replacement = '!next' AND empty = 1`:      "followed",
		`SELECT state || count(*) FROM matrix_tombstone WHERE room = '!guest'`:                               "new1",
		`SELECT group_concat(replaces) FROM matrix_room WHERE id IN ('!named', '!again') AND replaces <> ''`: "!guest",
	} {
		var got string
		if err := db.QueryRow(query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %q, want %q, %v", query, got, want, err)
		}
	}
}
