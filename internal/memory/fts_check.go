package memory

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Scopes lists all scopes that hold something.
func (f *FTS) Scopes(ctx context.Context) ([]Scope, error) {
	rows, err := f.db.QueryContext(ctx, `SELECT scope FROM index_scope WHERE docs > 0 ORDER BY scope`)
	if err != nil {
		return nil, fmt.Errorf("list scopes: %w", err)
	}
	defer rows.Close()
	var out []Scope
	for rows.Next() {
		var s Scope
		if err := rows.Scan(&s); err != nil {
			return nil, fmt.Errorf("list scopes: %w", err)
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// sourceOrder is how all sources are read: neighbours follow each other,
// and what no longer holds comes behind them.
const sourceOrder = ` ORDER BY scope, conversation, 2, seq, n`

// indexedAtOnce is how many texts are made terms of before they are written.
const indexedAtOnce = 4000

// eachSource hands over all texts that are to be indexed, many at a time.
func eachSource(ctx context.Context, db querier, do func(all []source, done, total int) error) error {
	queries := []string{entrySource, turnSource}
	left, total := make([][]int64, len(queries)), 0
	for i, query := range queries {
		var err error
		if left[i], err = list[int64](ctx, db, `SELECT abs(n) FROM (`+strings.Replace(query, "SELECT -n", "SELECT n", 1)+sourceOrder+`)`); err != nil {
			return err
		}
		total += len(left[i])
	}
	done := 0
	for i, query := range queries {
		for part := range slices.Chunk(left[i], indexedAtOnce) {
			var in strings.Builder
			for _, n := range part {
				fmt.Fprintf(&in, ",%d", n)
			}
			all, err := sources(ctx, db, query+` AND n IN (`+in.String()[1:]+`)`+sourceOrder)
			if err != nil {
				return err
			}
			done += len(part)
			if err := do(all, done, total); err != nil {
				return err
			}
		}
	}
	return nil
}

// list reads one column.
func list[T any](ctx context.Context, db querier, query string, args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// Verify implements index. It makes the terms of every text again and compares.
func (f *FTS) Verify(ctx context.Context) ([]string, error) { return f.VerifyWatched(ctx, nil) }

// VerifyWatched is Verify that tells how far it has come; progress may be nil. It
// sees everything as it was when it began, and keeps nobody from writing.
func (f *FTS) VerifyWatched(ctx context.Context, progress func(done, total int)) ([]string, error) {
	conn, err := f.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("verify the index: %w", err)
	}
	defer conn.Close()
	// A transaction of the driver would take the right to write.
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
		return nil, fmt.Errorf("verify the index: %w", err)
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`) }() // nothing was changed
	faults, err := f.verify(ctx, conn, progress)
	if err != nil {
		return nil, fmt.Errorf("verify the index: %w", err)
	}
	return faults, nil
}

func (f *FTS) verify(ctx context.Context, db queryer, progress func(done, total int)) ([]string, error) {
	// The check goes by what the connection knows of the table from before, which a
	// query brings up to date: else what others wrote looks like damage.
	if _, err := list[int64](ctx, db, `SELECT rowid FROM index_fts LIMIT 1`); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return []string{"the full-text table is damaged: " + err.Error()}, nil
	}
	said, err := list[string](ctx, db, `PRAGMA integrity_check(index_fts)`)
	if err != nil {
		return nil, err
	}
	if len(said) != 1 || said[0] != "ok" { // what it holds says nothing
		return []string{"the full-text table is damaged: " + strings.Join(said[:min(len(said), 3)], "; ")}, nil
	}
	v := &verifier{f: f, df: map[int64]map[string]int{}, docs: map[int64][2]int{}}
	if v.scopes, err = scopeNumbers(ctx, db); err != nil {
		return nil, err
	}
	err = eachSource(ctx, db, func(all []source, done, total int) error {
		if progress != nil {
			progress(done, total)
		}
		return v.compare(ctx, db, all)
	})
	if err == nil {
		err = v.leftovers(ctx, db)
	}
	if err == nil {
		err = v.statistics(ctx, db)
	}
	return v.faults, err
}

func scopeNumbers(ctx context.Context, db querier) (map[Scope]int64, error) {
	rows, err := db.QueryContext(ctx, `SELECT scope, no FROM index_scope`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[Scope]int64{}
	for rows.Next() {
		var s Scope
		var n int64
		if err := rows.Scan(&s, &n); err != nil {
			return nil, err
		}
		out[s] = n
	}
	return out, rows.Err()
}

// verifier compares the index with what it should be.
type verifier struct {
	f      *FTS
	scopes map[Scope]int64
	df     map[int64]map[string]int
	docs   map[int64][2]int
	faults []string
	tail   []made // the end of the texts before: neighbours of the next
}

// maxFaults is how many faults are listed.
const maxFaults = 20

func (v *verifier) say(format string, args ...any) {
	switch {
	case len(v.faults) < maxFaults:
		v.faults = append(v.faults, fmt.Sprintf(format, args...))
	case len(v.faults) == maxFaults:
		v.faults = append(v.faults, "… and more")
	}
}

// stored is a row of the index.
type stored struct {
	row                      int64
	rev                      int
	body, near, day, subject string
}

// compare checks all. The neighbours of the last ones come with the next call,
// so they are checked there; leftovers checks the very last.
func (v *verifier) compare(ctx context.Context, tx queryer, all []source) error {
	texts := v.tail
	known := len(texts)
	for _, s := range all {
		texts = append(texts, v.f.words.make(s))
	}
	for i := known; i < len(texts); i++ {
		m := &texts[i]
		m.row = rowOf(m.class, v.scopes[m.scope], m.doc)
		terms := distinct(m.body, m.day, m.names)
		df := v.df[scopeOf(m.row)]
		if df == nil {
			df = map[string]int{}
			v.df[scopeOf(m.row)] = df
		}
		for _, t := range terms {
			df[t]++
		}
		d := v.docs[scopeOf(m.row)]
		v.docs[scopeOf(m.row)] = [2]int{d[0] + 1, d[1] + m.words}
	}
	for i := max(0, known-nearby); i < len(texts)-nearby; i++ {
		if err := v.one(ctx, tx, texts, i); err != nil {
			return err
		}
	}
	v.tail = slices.Clone(texts[max(0, len(texts)-2*nearby):])
	return nil
}

func (v *verifier) one(ctx context.Context, tx queryer, texts []made, i int) error {
	m := texts[i]
	var s stored
	err := tx.QueryRowContext(ctx, `SELECT d.row, d.rev, t.body, t.near, t.day, t.subject FROM index_doc AS d LEFT JOIN index_fts AS t ON t.rowid = d.row
		WHERE d.doc = ?`, m.doc).Scan(&s.row, &s.rev, nullable{&s.body}, nullable{&s.near}, nullable{&s.day}, nullable{&s.subject})
	switch {
	case err == sql.ErrNoRows:
		v.say("%s is missing", title(m.doc))
		return nil
	case err != nil:
		return err
	case s.row != m.row:
		v.say("%s stands in another scope or state than it has", title(m.doc))
	case s.rev != m.rev:
		v.say("%s is indexed as it was before its last change", title(m.doc))
	case s.body != m.body || s.day != m.day || s.subject != m.names:
		v.say("%s is indexed with other terms than its own", title(m.doc))
	case s.near != nearOf(texts, i):
		v.say("%s is indexed with other neighbours than its own", title(m.doc))
	}
	return nil
}

// nullable scans NULL as the empty string.
type nullable struct{ s *string }

// Scan implements sql.Scanner.
func (n nullable) Scan(v any) error {
	*n.s, _ = v.(string)
	return nil
}

func title(doc int64) string {
	if doc < 0 {
		return fmt.Sprintf("message %d", -doc)
	}
	return fmt.Sprintf("memory %d", doc)
}

// nearOf joins the bodies around texts[i], which are in the order of their
// conversation.
func nearOf(texts []made, i int) string {
	var out []string
	m := texts[i]
	if m.place == 0 {
		return ""
	}
	take := func(j, step int) {
		for n := 0; j >= 0 && j < len(texts) && n < nearby; j += step {
			switch o := texts[j]; {
			case o.place != m.place:
				return
			default:
				n++
				if gap := o.at - m.at; max(gap, -gap) <= neighbourGap.Milliseconds() && o.body != "" {
					out = append(out, o.body)
				}
			}
		}
	}
	take(i-1, -1)
	slices.Reverse(out)
	take(i+1, 1)
	return strings.Join(out, " ")
}

func (v *verifier) leftovers(ctx context.Context, tx queryer) error {
	for i := max(0, len(v.tail)-nearby); i < len(v.tail); i++ {
		if err := v.one(ctx, tx, v.tail, i); err != nil {
			return err
		}
	}
	for _, check := range []struct{ says, query string }{
		{"%d texts are indexed that are not, or no longer, to be found", `SELECT count(*) FROM index_doc AS d
			WHERE NOT EXISTS (SELECT 1 FROM (` + entrySource + `) WHERE n = d.doc) AND NOT EXISTS (SELECT 1 FROM memory_turn AS t WHERE t.n = -d.doc AND t.text <> '')`},
		{"%d texts stand in the full-text table alone", `SELECT count(*) FROM index_fts_docsize WHERE id NOT IN (SELECT row FROM index_doc)`},
		{"%d texts are missing from the full-text table", `SELECT count(*) FROM index_doc WHERE row NOT IN (SELECT id FROM index_fts_docsize)`},
	} {
		var n int
		if err := tx.QueryRowContext(ctx, check.query).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			v.say(check.says, n)
		}
	}
	return nil
}

func (v *verifier) statistics(ctx context.Context, tx queryer) error {
	for _, name := range slices.Sorted(maps.Keys(v.scopes)) {
		no := v.scopes[name]
		var have [2]int
		if err := tx.QueryRowContext(ctx, `SELECT docs, words FROM index_scope WHERE no = ?`, no).Scan(&have[0], &have[1]); err != nil {
			return err
		}
		terms, err := list[string](ctx, tx, `SELECT term || ' ' || df FROM index_term WHERE scope = ? ORDER BY term`, no)
		if err != nil {
			return err
		}
		want := make([]string, 0, len(v.df[no]))
		for _, t := range slices.Sorted(maps.Keys(v.df[no])) {
			want = append(want, fmt.Sprint(t, " ", v.df[no][t]))
		}
		if have != v.docs[no] || !slices.Equal(terms, want) {
			v.say("the counts of words in %s are wrong", name)
		}
	}
	return nil
}
