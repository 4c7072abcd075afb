// Package searchtest is what tests of searching share: documents without the memories that they
// are of, and an embedder that knows words.
package searchtest

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// Embedder gives each word a direction and a text the sum of those of its words.
type Embedder struct {
	Model string
	Dim   int

	mu      sync.Mutex
	Err     error           // every request fails with it
	Refuses string          // a word that no request may hold
	Started chan<- struct{} // told of each request, which then waits for release
	Release <-chan struct{}
	texts   []string // that were embedded
	calls   int
}

// Name implements vector.Embedder.
func (e *Embedder) Name() string { return e.Model }

// Set changes e while it is in use.
func (e *Embedder) Set(f func(*Embedder)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e)
}

// Asked are the texts that were embedded, and the number of requests.
func (e *Embedder) Asked() (texts []string, calls int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.texts), e.calls
}

// Embed implements vector.Embedder.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.mu.Lock()
	e.calls++
	started, release, err, refuses, dim := e.Started, e.Release, e.Err, e.Refuses, e.Dim
	e.mu.Unlock()
	if started != nil {
		started <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
	}
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for i, said := range texts {
		if refuses != "" && strings.Contains(said, refuses) {
			return nil, errors.New("bad text")
		}
		out[i] = WordVector(said, dim)
	}
	e.Set(func(e *Embedder) { e.texts = append(e.texts, texts...) })
	return out, nil
}

// WordVector is the vector of a text: nil of one without words.
func WordVector(said string, dim int) []float32 {
	var v []float32
	for w := range strings.FieldsSeq(strings.ToLower(said)) {
		if w = strings.Trim(w, ".!"); w == "" {
			continue
		}
		h := fnv.New64a()
		h.Write([]byte(w))
		r := rand.New(rand.NewPCG(h.Sum64(), 1))
		if v == nil {
			v = make([]float32, dim)
		}
		for i := range v {
			v[i] += float32(r.NormFloat64())
		}
	}
	return v
}

// DB is a database in dir, closed when the test ends.
func DB(t testing.TB, dir string) *store.DB {
	t.Helper()
	db, err := storetest.Open(t, filepath.Join(dir, "bot.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Day is when a document is said that does not say when.
var Day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Doc is a row of the view document; its zero fields are filled in.
type Doc struct {
	Scope        trust.Readers
	Text         string
	State        string
	Conversation string
	Seq          int
	ObservedAt   time.Time
}

// Enter stores documents and returns their numbers.
func Enter(t testing.TB, db *store.DB, all ...Doc) (numbers []int64) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for _, d := range all {
		if d.ObservedAt.IsZero() {
			d.ObservedAt = Day
		}
		id, at := "mem_"+strings.ToLower(crand.Text()[:12]), d.ObservedAt.UnixMilli()
		result, err := tx.Exec(`INSERT INTO memory (id, scope, text, source, state, hash, conversation, seq, observed_at, created_at, updated_at)
			VALUES (?, ?, ?, 'import', ?, ?, ?, ?, ?, ?, ?)`, id, cmp.Or(d.Scope, trust.Everybody), d.Text, cmp.Or(d.State, "active"), text.Hash(d.Text),
			d.Conversation, d.Seq, at, at, at)
		if err == nil {
			_, err = tx.Exec(`INSERT INTO memory_op (batch, at, actor, op, entry) VALUES ('b', ?, 'test', 'add', ?)`, at, id)
		}
		if err != nil {
			t.Fatal(err)
		}
		n, _ := result.LastInsertId()
		numbers = append(numbers, n)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return numbers
}

// Alter changes the document n and notes that it did; then runs in the same transaction.
func Alter(t testing.TB, db *store.DB, n int64, set string, then ...func(*sql.Tx) error) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	_, err = tx.Exec(`INSERT INTO memory_op (batch, at, actor, op, entry) SELECT 'b', 0, 'test', 'note', id FROM memory WHERE n = ?`, n)
	if err == nil {
		_, err = tx.Exec(`UPDATE memory SET `+set+`, rev = rev + 1 WHERE n = ?`, n)
	}
	for _, f := range then {
		err = cmp.Or(err, f(tx))
	}
	if err := cmp.Or(err, tx.Commit()); err != nil {
		t.Fatal(err)
	}
}

// Forgotten empties the document n; forget gets the hash of its text in the same transaction.
func Forgotten(t testing.TB, db *store.DB, n int64, forget func(ctx context.Context, tx *sql.Tx, hash string) error) {
	t.Helper()
	var hash string
	if err := db.QueryRow(`SELECT hash FROM memory WHERE n = ?`, n).Scan(&hash); err != nil {
		t.Fatal(err)
	}
	Alter(t, db, n, `text = '', hash = '', state = 'forgotten'`, func(tx *sql.Tx) error { return forget(t.Context(), tx, hash) })
}

// Many are n documents of three words each.
func Many(n int) []Doc {
	var all []Doc
	for i := range n {
		all = append(all, Doc{Text: fmt.Sprintf("w%d x%d fact%d", i%7, i%5, i), Conversation: fmt.Sprint("c", i%3), Seq: i})
	}
	return all
}
