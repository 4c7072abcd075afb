package search

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// source is a text to be indexed, read from its table.
type source struct {
	doc           int64 // document.n, or minus past_message.n
	class         int64
	scope         trust.Readers
	text, subject string
	conversation  string
	seq           int
	at            int64
	rev           int
	preference    bool
}

const (
	entrySource = `SELECT n, CASE WHEN state <> 'active' THEN 0
			WHEN conversation <> '' AND lower(subject) IN ('', 'assistant') THEN 2 ELSE 1 END, scope, text, subject,
		conversation, seq, at, rev, kind = 'preference' FROM document WHERE state IN ('active', 'superseded', 'archived')`
	turnSource = `SELECT -n, iif(sender = '', 4, 3), scope, text, sender, conversation, seq, at, 1, false
		FROM past_message WHERE text <> ''`
)

// readSources returns the texts that query selects, the oldest first.
func readSources(ctx context.Context, db store.DBTX, query string, args ...any) ([]source, error) {
	all, err := store.List(ctx, db, func(row store.Row) (s source, err error) {
		err = row.Scan(&s.doc, &s.class, &s.scope, &s.text, &s.subject, &s.conversation, &s.seq, &s.at, &s.rev, &s.preference)
		return s, err
	}, query, args...)
	slices.SortFunc(all, func(a, b source) int { return cmp.Compare(max(a.doc, -a.doc), max(b.doc, -b.doc)) })
	return all, err
}

// Update updates the index for the documents n, whatever changed in them. It must run in the
// transaction that changed them.
func (f *FTS) Update(ctx context.Context, tx *sql.Tx, n ...int64) error {
	all, err := readSources(ctx, tx, entrySource+` AND n IN (SELECT value FROM json_each(?))`, store.Array(n))
	if err != nil {
		return fmt.Errorf("index memories: %w", err)
	}
	return f.replaceDocs(ctx, tx, n, all)
}

// analysedDoc is a source with its terms and statistics.
type analysedDoc struct {
	source
	place, session      int64
	body, day, names    string
	chars, words, marks int
}

const (
	markQuestion = 1 << iota
	markTime
	markWish // it asks for something from now on, or says what a person likes
)

// analyse computes the terms and statistics of s.
func analyse(s source) analysedDoc {
	ws := text.Tokens(s.text)
	at := time.UnixMilli(s.at).UTC()
	m := analysedDoc{source: s, words: len(ws), chars: text.Width(s.text)}
	m.body, m.names = strings.Join(text.Terms(ws), " "), text.NameTerms(s.subject)
	if s.at != 0 {
		m.day = strings.Join(text.DateTerms(at), " ")
	}
	if s.conversation != "" && s.class != classPast {
		m.place = placeOf(s.scope, s.conversation, s.doc < 0)
		m.session = hash64(s.conversation, at.Format(time.DateOnly))
	}
	if text.IsQuestion(s.text) {
		m.marks |= markQuestion
	}
	if text.MentionsTime(ws, text.DatesIn(ws)) {
		m.marks |= markTime
	}
	if s.preference || s.class != classAnswer && s.class != classTold && text.IsStandingWish(s.text, ws) {
		m.marks |= markWish
	}
	return m
}

// placeOf returns the number of a conversation of a scope: that of its messages, or of what was learned there.
func placeOf(scope trust.Readers, conversation string, messages bool) int64 {
	return hash64(string(scope), conversation, map[bool]string{true: "turn"}[messages])
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

// distinctTerms returns the terms of all fields without duplicates.
func distinctTerms(fields ...string) []string {
	terms := strings.Fields(strings.Join(fields, " "))
	slices.Sort(terms)
	return slices.Compact(terms)
}

// indexWriter changes the index within one transaction and collects the statistics.
type indexWriter struct {
	tx     store.DBTX
	scopes map[trust.Readers]int64
	last   map[int64]int64          // scope → the last number of a row in it
	docs   map[int64][2]int         // scope → change of documents and words
	df     map[int64]map[string]int // scope → term → change
}

// replaceDocs removes the documents gone from the index and adds all. A changed document is in
// both.
func (f *FTS) replaceDocs(ctx context.Context, tx *sql.Tx, gone []int64, all []source) error {
	w := &indexWriter{tx, map[trust.Readers]int64{}, map[int64]int64{}, map[int64][2]int{}, map[int64]map[string]int{}}
	rows, err := w.removeAll(ctx, gone)
	if err == nil {
		f.drop(rows)
		err = w.insertAll(ctx, all)
	}
	return store.Wrap(err, "index memories")
}

// insertAll adds all to the index and writes the statistics.
func (w *indexWriter) insertAll(ctx context.Context, all []source) error {
	rows := make([]int64, len(all))
	for i, s := range all {
		scope, err := w.scope(ctx, s.scope)
		if err != nil {
			return err
		}
		m := analyse(s)
		w.last[scope]++
		rows[i] = rowOf(scope, m.class, w.last[scope])
		w.count(scope, 1, m.words, distinctTerms(m.body, m.day, m.names))
		if err := w.exec(ctx, `INSERT OR FAIL INTO index_doc
			(row, doc, rev, conversation, seq, at, conversation_day, chars, words, flags, body, day, subject)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			rows[i], m.doc, m.rev, m.place, m.seq, m.at, m.session, m.chars, m.words, m.marks, m.body, m.day, m.names); err != nil {
			return err
		}
	}
	// At once, and in ascending order: SQLite flushes its buffer before writes to another table, and for a lower rowid.
	if err := w.exec(ctx, `INSERT INTO index_fts (rowid, body, day, subject) SELECT row, body, day, subject FROM index_doc
		WHERE row IN (SELECT value FROM json_each(?)) ORDER BY row`, store.Array(rows)); err != nil {
		return err
	}
	return w.writeStatistics(ctx)
}

// Optimize merges the segments that changes have left in the index: a search looks up each word in each of
// them, and their pages still contain deleted text. It reads and writes the whole index.
func (f *FTS) Optimize(ctx context.Context, tx *sql.Tx) error {
	return store.Exec(ctx, tx, `INSERT INTO index_fts (index_fts) VALUES ('optimize')`)
}

func (w *indexWriter) exec(ctx context.Context, query string, args ...any) error {
	return store.Exec(ctx, w.tx, query, args...)
}

// removeAll removes those of docs that are in the index, and returns their rows.
func (w *indexWriter) removeAll(ctx context.Context, docs []int64) (rows []int64, err error) {
	err = store.Each(ctx, w.tx, func(r store.Row) error {
		var row int64
		var words int
		var body, day, names string
		err := r.Scan(&row, &words, &body, &day, &names)
		rows = append(rows, row)
		w.count(scopeOfRow(row), -1, words, distinctTerms(body, day, names))
		return err
	}, `SELECT row, words, body, day, subject FROM index_doc WHERE doc IN (SELECT value FROM json_each(?))`, store.Array(docs))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	if err := w.exec(ctx, `DELETE FROM index_fts WHERE rowid IN (SELECT value FROM json_each(?))`, store.Array(rows)); err != nil {
		return nil, err
	}
	return rows, w.exec(ctx, `DELETE FROM index_doc WHERE row IN (SELECT value FROM json_each(?))`, store.Array(rows))
}

// count records that documents with terms were added or removed. by is 1 or -1.
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

func (w *indexWriter) scope(ctx context.Context, name trust.Readers) (int64, error) {
	if no := w.scopes[name]; no != 0 {
		return no, nil
	}
	var no, last int64
	err := w.tx.QueryRowContext(ctx, `INSERT INTO index_scope (scope) VALUES (?)
		ON CONFLICT (scope) DO UPDATE SET scope = scope RETURNING no, last`, name).Scan(&no, &last)
	w.scopes[name], w.last[no] = no, last
	return no, err
}

// writeStatistics writes the collected statistics.
func (w *indexWriter) writeStatistics(ctx context.Context) error {
	for _, scope := range slices.Sorted(maps.Keys(w.docs)) {
		d := w.docs[scope]
		if err := w.exec(ctx, `UPDATE index_scope SET docs = docs + ?, words = words + ?, last = max(last, ?) WHERE no = ?`,
			d[0], d[1], w.last[scope], scope); err != nil {
			return err
		}
		changed, err := json.Marshal(w.df[scope])
		if err != nil {
			return err
		}
		for _, query := range []string{
			`INSERT INTO index_term (scope, term, df) SELECT ?1, key, value FROM json_each(?2) WHERE true
				ON CONFLICT DO UPDATE SET df = df + excluded.df`,
			`DELETE FROM index_term WHERE scope = ?1 AND term IN (SELECT key FROM json_each(?2)) AND df <= 0`,
		} {
			if err := w.exec(ctx, query, scope, string(changed)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rebuildBatch is how many texts are analysed before they are written.
const rebuildBatch = 4000

// Rebuild rebuilds the index in one transaction and returns the number of documents. If it fails,
// the old index stays.
func (f *FTS) Rebuild(ctx context.Context) (documents int, err error) {
	err = store.InTx(ctx, f.db, func(tx *sql.Tx) error {
		if err := clearIndex(ctx, tx); err != nil {
			return err
		}
		all, err := readSources(ctx, tx, entrySource+` UNION ALL `+turnSource)
		if err != nil {
			return err
		}
		documents = len(all)
		for part := range slices.Chunk(all, rebuildBatch) {
			if err := f.replaceDocs(ctx, tx, nil, part); err != nil {
				return err
			}
		}
		return nil
	})
	return documents, store.Wrap(err, "reindex")
}

// clearIndex empties the index. It recreates the full-text table, which may be damaged.
func clearIndex(ctx context.Context, tx *sql.Tx) error {
	table, err := store.Value[string](ctx, tx, `SELECT sql FROM sqlite_schema WHERE name = 'index_fts'`)
	if err != nil {
		return err
	}
	for _, statement := range []string{
		`DROP TABLE index_fts`, table, `INSERT INTO index_fts (index_fts, rank) VALUES ('hashsize', 16777216), ('crisismerge', 4)`,
		`DELETE FROM index_doc`, `DELETE FROM index_term`, `UPDATE index_scope SET docs = 0, words = 0`,
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// EnsureBuilt rebuilds an empty index. An upgrade that changes its form leaves it empty.
func (f *FTS) EnsureBuilt(ctx context.Context) error {
	missing, err := store.Value[bool](ctx, f.db, `SELECT NOT EXISTS (SELECT 1 FROM index_doc) AND (EXISTS (SELECT 1 FROM (`+entrySource+`))
		OR EXISTS (SELECT 1 FROM past_message WHERE text <> ''))`)
	if err != nil || !missing {
		return store.Wrap(err, "check the search index")
	}
	_, err = f.Rebuild(ctx)
	return err
}

// Scopes lists the scopes that are not empty.
func (f *FTS) Scopes(ctx context.Context) ([]trust.Readers, error) {
	return store.Column[trust.Readers](ctx, f.db, `SELECT scope FROM index_scope WHERE docs > 0 ORDER BY scope`)
}
