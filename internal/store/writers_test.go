package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
				changed := errors.New("changed its mind")
				err := InTx(t.Context(), db, func(tx *sql.Tx) error {
					v, err := Value[int](t.Context(), tx, `SELECT CAST(v AS INTEGER) FROM a WHERE n = 0`)
					if err == nil {
						err = Exec(t.Context(), tx, `UPDATE a SET v = ? WHERE n = 0`, v+1)
					}
					if err == nil && w%4 == 3 {
						err = changed
					}
					return err
				})
				if w%4 == 3 && err != changed || w%4 != 3 && err != nil {
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

// line starts writers that insert their number and then do something. They write in this order: the first waits until
// all others wait for it. It returns their errors, a panic as an error.
func line(t *testing.T, db *DB, do ...func(*sql.Tx) error) []error {
	t.Helper()
	errs, start := make([]error, len(do)), make(chan struct{})
	var all sync.WaitGroup
	for n := range do {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					errs[n] = fmt.Errorf("panic: %v", p)
				}
			}()
			errs[n] = InTx(t.Context(), db, func(tx *sql.Tx) error {
				if n == 0 {
					<-start
				}
				if err := Exec(t.Context(), tx, `INSERT INTO a (n) VALUES (?)`, n); err != nil {
					return err
				}
				return do[n](tx)
			})
		})
		for there := false; !there; time.Sleep(time.Millisecond) {
			db.writers.mu.Lock()
			there = db.writers.busy && len(db.writers.waiting) == n
			db.writers.mu.Unlock()
		}
	}
	close(start)
	all.Wait()
	return errs
}

func nothing(*sql.Tx) error { return nil }

// Those who wait write in one transaction. What one of them undoes is not the others' loss.
func TestWritersShareATransaction(t *testing.T) {
	db := openShared(t)
	errs := line(t, db,
		nothing,
		func(*sql.Tx) error { return errors.New("changed its mind") },
		func(*sql.Tx) error { panic("broken") },
		func(tx *sql.Tx) error { // its time is over in the middle of a write
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			_, _ = tx.ExecContext(ctx, `INSERT INTO a (n)
				WITH RECURSIVE c (n) AS (VALUES (100) UNION ALL SELECT n + 1 FROM c WHERE n < 60000) SELECT n FROM c`)
			<-ctx.Done()
			return ctx.Err()
		},
		func(*sql.Tx) error {
			seen, err := Value[int](t.Context(), db, `SELECT count(*) FROM a`)
			expect.Equal(t, seen, 0, "stored before all have written")
			return err
		},
	)
	expect.Equal(t, fmt.Sprint(errs), "[<nil> changed its mind panic: broken context deadline exceeded <nil>]")
	expect.Equal(t, fmt.Sprint(expect.Must(Column[int](t.Context(), db, `SELECT n FROM a LIMIT 9`))(t)), "[0 4]")
}

// When SQLite undoes a transaction by itself, as on a full disk, all who wrote in it learn it, and others write again.
func TestTransactionIsLost(t *testing.T) {
	db := openShared(t)
	errs := line(t, db, nothing, func(tx *sql.Tx) error { return Exec(t.Context(), tx, `ROLLBACK`) }, nothing)
	for n, lost := range []bool{true, true, false} {
		if (errs[n] != nil) != lost {
			t.Errorf("%d: %v", n, errs[n])
		}
	}
	expect.Equal(t, fmt.Sprint(expect.Must(Column[int](t.Context(), db, `SELECT n FROM a`))(t)), "[2]")
}

// Who waits to write can give up, and others write again whatever a writer did.
func TestWriterGivesUp(t *testing.T) {
	db := openShared(t)
	hold := expect.Must(db.BeginTx(t.Context(), nil))(t)
	for name, write := range map[string]func(context.Context) error{
		"a statement": func(ctx context.Context) error { return Exec(ctx, db, `INSERT INTO a (n) VALUES (1)`) },
		"RETURNING": func(ctx context.Context) error {
			_, err := Value[int](ctx, db, `INSERT INTO a (n) VALUES (1) RETURNING n`)
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := write(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s, waiting beside a transaction: %v", name, err)
		}
	}
	expect.OK(t, hold.Rollback())
	expect.OK(t, InTx(t.Context(), db, func(*sql.Tx) error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := InTx(ctx, db, nothing); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting in line: %v", err)
		}
		return nil
	}))

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
