package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"reverie/internal/test/expect"
)

func openShared(t *testing.T) *DB {
	t.Helper()
	db := expect.Must(Open(t.Context(), filepath.Join(t.TempDir(), "bot.db"), fstest.MapFS{"0001_a.sql": {Data: []byte("-- +goose Up\nCREATE TABLE a (n INTEGER PRIMARY KEY, v TEXT NOT NULL DEFAULT '');\n")}}))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Many writers at once: none is turned away, and none is lost.
func TestWritersQueue(t *testing.T) {
	db := openShared(t)
	expect.Must(db.Exec(`INSERT INTO a (n, v) VALUES (0, '')`))(t)
	const writers, each = 16, 25
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for range each {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				var v int
				if err := tx.QueryRow(`SELECT CAST(v AS INTEGER) FROM a WHERE n = 0`).Scan(&v); err != nil {
					t.Error(err)
				}
				if _, err := tx.Exec(`UPDATE a SET v = ? WHERE n = 0`, v+1); err != nil {
					t.Error(err)
				}
				if w%4 == 3 { // some change their mind
					err = tx.Rollback()
				} else {
					err = tx.Commit()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	var v int
	expect.OK(t, db.QueryRow(`SELECT CAST(v AS INTEGER) FROM a WHERE n = 0`).Scan(&v))
	if want := writers * each * 3 / 4; v != want {
		t.Errorf("counted to %d, want %d", v, want)
	}
}

// Who waits to write can give up, and others write again whatever a writer did.
func TestWriterGivesUp(t *testing.T) {
	db := openShared(t)
	hold := expect.Must(db.BeginTx(t.Context(), nil))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := db.ExecContext(ctx, `INSERT INTO a (n) VALUES (1)`); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting beside a transaction: %v", err)
	}
	expect.OK(t, hold.Rollback())

	ended, cancel := context.WithCancel(t.Context()) // database/sql rolls this one back
	tx := expect.Must(db.BeginTx(ended, nil))(t)
	cancel()
	if err := tx.Commit(); err == nil {
		t.Error("committed after its context had ended")
	}
	write := func(query string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		_, err := db.ExecContext(ctx, query)
		return err
	}
	expect.OK(t, write(`INSERT INTO a (n) VALUES (6)`))
	rows, err := db.Query(`INSERT INTO a (n) VALUES (7) RETURNING n`) // and one that is not read to its end
	expect.OK(t, err)
	rows.Next()
	expect.OK(t, rows.Close())
	if err := write(`INSERT INTO a (n) VALUES ('no number')`); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a text as a key: %v", err)
	}
	expect.OK(t, write(`INSERT INTO a (n) VALUES (8)`))
}

// While many wait to write, others read.
func TestReadersDoNotWait(t *testing.T) {
	db := openShared(t)
	hold := expect.Must(db.BeginTx(t.Context(), nil))(t)
	var all sync.WaitGroup
	for n := range 100 {
		all.Go(func() {
			if err := Exec(t.Context(), db, `INSERT INTO a (n) VALUES (?)`, n); err != nil {
				t.Error(err)
			}
		})
	}
	for db.Stats().WaitCount < 100 { // all wait
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if n, err := Value[int](ctx, db, `SELECT count(*) FROM a`); n != 0 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	expect.OK(t, hold.Commit())
	all.Wait()
	expect.Equal(t, expect.Must(Value[int](t.Context(), db, `SELECT count(*) FROM a`))(t), 100)
}

// A query cannot change anything by mistake.
func TestQueriesOnlyRead(t *testing.T) {
	db := openShared(t)
	if _, err := Column[int](t.Context(), db, `INSERT INTO a (n) VALUES (1)`); err == nil {
		t.Error("a query has written")
	}
	expect.Equal(t, expect.Must(Value[int](t.Context(), db, `INSERT INTO a (n) VALUES (2) RETURNING n`))(t), 2)
}

func TestFileNameProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.StringMatching(`[@!][A-Za-z0-9._=/+-]{1,100}:[a-z.]{1,60}`)).Draw(t, "id")
		if id == "" {
			return
		}
		name := FileName(id)
		if name != strings.ToLower(name) || strings.ContainsAny(name, "/\\: ") || strings.HasPrefix(name, ".") || !utf8.ValidString(name) {
			t.Fatalf("FileName(%q) = %q", id, name)
		}
		if len(name) > maxName {
			t.Fatalf("%d bytes", len(name))
		}
		if got, ok := FileNameID(name); ok == strings.Contains(name, "~") || ok && got != id {
			t.Fatalf("%q came back as %q, %v", id, got, ok)
		}
	})
}

func TestFileName(t *testing.T) {
	for id, want := range map[string]string{
		"@me:example.org": "@me=3aexample.org",
		"!AbC":            "!=41b=43",
		"..":              "=2e.",
		".hidden":         "=2ehidden",
		"../../etc":       "=2e.=2f..=2fetc",
		"a=b~c":           "a=3db=7ec",
		"ä\x00\xff":       "=c3=a4=00=ff",
	} {
		if got := FileName(id); got != want {
			t.Errorf("FileName(%q) = %q, want %q", id, got, want)
		}
	}
}
