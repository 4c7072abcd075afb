package memory

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"reverie/internal/store"
)

// source is a text to be indexed, as the truth has it.
type source struct {
	doc           int64 // memory.n, or minus memory_turn.n
	class         int64
	scope         Scope
	text, subject string
	conversation  string
	seq           int
	at            int64
	rev           int
}

const (
	entrySource = `SELECT n, iif(state = 'active', 0, 1), scope, text, subject, conversation, seq, observed_at, rev FROM memory
		WHERE state IN ('active', 'superseded', 'archived')`
	turnSource = `SELECT -n, 2, scope, text, sender, conversation, seq, at, 1 FROM memory_turn WHERE text <> ''`
)

func sources(ctx context.Context, db store.DBTX, query string, args ...any) ([]source, error) {
	return store.List(ctx, db, func(row store.Row) (s source, err error) {
		err = row.Scan(&s.doc, &s.class, &s.scope, &s.text, &s.subject, &s.conversation, &s.seq, &s.at, &s.rev)
		return s, err
	}, query, args...)
}

// update brings the index up to date with the entries whose numbers are given:
// new, changed, moved, retired and forgotten ones alike. It belongs into the transaction that changed them.
func (f *FTS) update(ctx context.Context, tx *sql.Tx, n ...int64) error {
	all, err := sources(ctx, tx, entrySource+` AND n IN (SELECT value FROM json_each(?))`, inJSON(n))
	if err != nil {
		return fmt.Errorf("index memories: %w", err)
	}
	return f.index(ctx, tx, slices.Clone(n), all)
}

// made is a text as it is indexed.
type made struct {
	source
	row, place, session int64
	body, day, names    string
	chars, words, marks int
	terms               []string // that count as being in it, each once
}

const (
	markAsks = 1 << iota
	markTells
)

// make analyses s. Its row is not known yet.
func (a *analyser) make(s source) made {
	ws := words(s.text)
	at := time.UnixMilli(s.at).UTC()
	m := made{source: s, body: strings.Join(a.terms(ws), " "), words: len(ws), chars: width(s.text), names: nameTerms(s.subject)}
	if s.at != 0 {
		m.day = strings.Join(dateTerms(at), " ")
	}
	if s.conversation != "" && s.class != classPast {
		m.place = hash64(string(s.scope), s.conversation, flagText(s.class == classTurn))
		m.session = hash64(s.conversation, at.Format(time.DateOnly))
	}
	if asks(s.text) {
		m.marks |= markAsks
	}
	if tellsTime(ws, datesIn(ws)) {
		m.marks |= markTells
	}
	return m
}

// prepare is make, with all that the index wants to know.
func (a *analyser) prepare(s source) *made {
	m := a.make(s)
	m.terms = distinct(m.body, m.day, m.names)
	return &m
}

// makeAll is prepare of all, of many on every processor there is: the database waits
// for it.
func (a *analyser) makeAll(all []source) []*made {
	out := make([]*made, len(all))
	some := max(500, (len(all)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for first := 0; first < len(all); first += some {
		// go: ends when its texts are done, which is waited for
		wait.Go(func() {
			for i := first; i < min(first+some, len(all)); i++ {
				out[i] = a.prepare(all[i])
			}
		})
	}
	wait.Wait()
	return out
}

func flagText(b bool) string {
	if b {
		return "turn"
	}
	return ""
}

// width is how long text is in letters; a character of a script that needs few
// counts for three.
func width(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r >= 0x2E80 && spaceless(r) {
			n += 2
		}
	}
	return n
}

// asks reports whether text ends as a question.
func asks(text string) bool {
	text = strings.TrimRightFunc(text, func(r rune) bool {
		return !strings.ContainsRune("?？.!。！", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？")
}

// nameTerms are the words of a name; of a Matrix id its local part.
func nameTerms(subject string) string {
	if rest, ok := strings.CutPrefix(subject, "@"); ok {
		subject, _, _ = strings.Cut(rest, ":")
	}
	var out []string
	for _, w := range words(subject) {
		if t := bare(unaccented(w.text)); t != "" && !contains(out, t) {
			out = append(out, t)
		}
	}
	return strings.Join(out, " ")
}

func hash64(parts ...string) int64 {
	h := fnv.New64a()
	var size [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		h.Write([]byte(p))
	}
	return int64(h.Sum64() | 1) // never 0, which means none
}

// distinct are the terms that count as being in the document, each once.
func distinct(fields ...string) []string {
	var out []string
	for _, f := range fields {
		out = append(out, strings.Fields(f)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// indexWriter changes the index within one transaction.
type indexWriter struct {
	f      *FTS
	tx     store.DBTX
	scopes map[Scope]int64
	docs   map[int64][2]int         // scope → change of documents and words
	df     map[int64]map[string]int // scope → term → change
}

// index takes the documents gone out and puts all in. gone may hold those of
// all: they are changed.
func (f *FTS) index(ctx context.Context, tx *sql.Tx, gone []int64, all []source) error {
	p := prepare(tx)
	defer p.close()
	w := f.writer(p)
	err := w.removeAll(ctx, gone)
	if err == nil {
		err = w.insertAll(ctx, w.f.words.makeAll(all))
	}
	if err != nil {
		return fmt.Errorf("index memories: %w", err)
	}
	return nil
}

func (f *FTS) writer(tx store.DBTX) *indexWriter {
	return &indexWriter{f: f, tx: tx, scopes: map[Scope]int64{}, docs: map[int64][2]int{}, df: map[int64]map[string]int{}}
}

func (w *indexWriter) removeAll(ctx context.Context, gone []int64) error {
	// Rows that do not follow each other are written out one by one.
	slices.SortFunc(gone, func(a, b int64) int { return cmp.Compare(max(a, -a), max(b, -b)) })
	for _, doc := range gone {
		if err := w.remove(ctx, doc); err != nil {
			return err
		}
	}
	return nil
}

// insertAll puts all in, and writes what came of it and of what was removed.
func (w *indexWriter) insertAll(ctx context.Context, all []*made) error {
	docs := bulk{tx: w.tx, insert: `INSERT OR FAIL INTO index_doc (row, doc, rev, place, seq, at, session, chars, words, marks)`, width: 10}
	for _, m := range all {
		if err := w.insert(ctx, &docs, m); err != nil {
			return err
		}
	}
	if err := docs.flush(ctx); err != nil {
		return err
	}
	// What was written to the full-text table so far is put away before a statement of
	// several rows, so they come first; and for that reason it is written row by row.
	if err := w.statistics(ctx); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b *made) int { return cmp.Compare(a.row, b.row) })
	for _, m := range all {
		if err := w.exec(ctx, `INSERT INTO index_fts (rowid, body, day, subject) VALUES (?, ?, ?, ?)`, m.row, m.body, m.day, m.names); err != nil {
			return err
		}
	}
	return nil
}

// mergeIndex takes out of the index what was deleted from it: its pages keep that until they
// are merged. It reads and writes the whole index.
func mergeIndex(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, `INSERT INTO index_fts (index_fts) VALUES ('optimize')`); err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	return nil
}

func (w *indexWriter) exec(ctx context.Context, query string, args ...any) error {
	_, err := w.tx.ExecContext(ctx, query, args...)
	return err
}

// remove takes doc out, if it is in.
func (w *indexWriter) remove(ctx context.Context, doc int64) error {
	var row int64
	var words int
	var body, day, names string
	err := w.tx.QueryRowContext(ctx, `SELECT d.row, d.words, t.body, t.day, t.subject
		FROM index_doc AS d CROSS JOIN index_fts AS t ON t.rowid = d.row WHERE d.doc = ?`, doc).Scan(&row, &words, &body, &day, &names)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	if err := w.exec(ctx, `DELETE FROM index_fts WHERE rowid = ?`, row); err != nil {
		return err
	}
	if err := w.exec(ctx, `DELETE FROM index_doc WHERE row = ?`, row); err != nil {
		return err
	}
	w.count(scopeOf(row), -1, words, distinct(body, day, names))
	return nil
}

// count notes that documents with terms came (by = 1) or went (-1).
func (w *indexWriter) count(scope int64, by, words int, terms []string) {
	d := w.docs[scope]
	w.docs[scope] = [2]int{d[0] + by, d[1] + by*words}
	df := w.df[scope]
	if df == nil {
		df = map[string]int{}
		w.df[scope] = df
	}
	for _, t := range terms {
		df[t] += by
	}
}

func (w *indexWriter) insert(ctx context.Context, docs *bulk, m *made) error {
	scope, err := w.scope(ctx, m.scope)
	if err != nil {
		return err
	}
	m.row = rowOf(m.class, scope, m.doc)
	if err := docs.add(ctx, m.row, m.doc, m.rev, m.place, m.seq, m.at, m.session, m.chars, m.words, m.marks); err != nil {
		return err
	}
	w.count(scope, 1, m.words, m.terms)
	return nil
}

func (w *indexWriter) scope(ctx context.Context, name Scope) (int64, error) {
	if no := w.scopes[name]; no != 0 {
		return no, nil
	}
	var no int64
	err := w.tx.QueryRowContext(ctx, `INSERT INTO index_scope (scope) VALUES (?) ON CONFLICT (scope) DO UPDATE SET scope = scope RETURNING no`, name).Scan(&no)
	if err != nil {
		return 0, err
	}
	w.scopes[name] = no
	return no, nil
}

// statistics writes how the counts changed.
func (w *indexWriter) statistics(ctx context.Context) error {
	for _, scope := range slices.Sorted(maps.Keys(w.docs)) {
		d := w.docs[scope]
		if err := w.exec(ctx, `UPDATE index_scope SET docs = docs + ?, words = words + ? WHERE no = ?`, d[0], d[1], scope); err != nil {
			return err
		}
		df := w.df[scope]
		more := bulk{tx: w.tx, insert: `INSERT OR FAIL INTO index_term (scope, term, df)`, after: ` ON CONFLICT DO UPDATE SET df = df + excluded.df`, width: 3}
		for _, term := range slices.Sorted(maps.Keys(df)) {
			by := df[term]
			var err error
			switch {
			case by > 0:
				err = more.add(ctx, scope, term, by)
			case by < 0:
				err = w.exec(ctx, `UPDATE index_term SET df = df + ?3 WHERE scope = ?1 AND term = ?2`, scope, term, by)
				if err == nil {
					err = w.exec(ctx, `DELETE FROM index_term WHERE scope = ? AND term = ? AND df <= 0`, scope, term)
				}
			}
			if err != nil {
				return err
			}
		}
		if err := more.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}
