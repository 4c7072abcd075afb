package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/store"
)

// Scopes lists all scopes that hold something.
func (f *FTS) Scopes(ctx context.Context) ([]Scope, error) {
	scopes, err := store.Column[Scope](ctx, f.db, `SELECT scope FROM index_scope WHERE docs > 0 ORDER BY scope`)
	if err != nil {
		return nil, fmt.Errorf("list scopes: %w", err)
	}
	return scopes, nil
}

// sourceOrder is how all sources are read: neighbours follow each other,
// and what no longer holds comes behind them.
const sourceOrder = ` ORDER BY scope, conversation, 2, seq, n`

// indexedAtOnce is how many texts are made terms of before they are written.
const indexedAtOnce = 4000

// eachSource hands over all texts that are to be indexed, many at a time.
func eachSource(ctx context.Context, db store.DBTX, do func(all []source, done, total int) error) error {
	queries := []string{entrySource, turnSource}
	left, total := make([][]int64, len(queries)), 0
	for i, query := range queries {
		var err error
		if left[i], err = store.Column[int64](ctx, db, `SELECT abs(n) FROM (`+strings.Replace(query, "SELECT -n", "SELECT n", 1)+sourceOrder+`)`); err != nil {
			return err
		}
		total += len(left[i])
	}
	done := 0
	for i, query := range queries {
		for part := range slices.Chunk(left[i], indexedAtOnce) {
			all, err := sources(ctx, db, query+` AND n IN (SELECT value FROM json_each(?))`+sourceOrder, inJSON(part))
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

// Verify implements index. It compares which texts are indexed, and the terms of a sample of
// them, and has SQLite check the full-text table. It keeps nobody from writing.
func (f *FTS) Verify(ctx context.Context) ([]string, error) {
	conn, err := f.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("verify the index: %w", err)
	}
	defer conn.Close()
	// A transaction of the driver would take the write lock.
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
		return nil, fmt.Errorf("verify the index: %w", err)
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`) }() // nothing was changed
	faults, err := f.verify(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("verify the index: %w", err)
	}
	if len(faults) > maxFaults {
		faults = append(faults[:maxFaults], "… and more")
	}
	return faults, nil
}

// sampleSize is how many texts, and how many terms of a scope, Verify looks at one by one.
const sampleSize = 500

// maxFaults is how many faults are listed.
const maxFaults = 20

func (f *FTS) verify(ctx context.Context, db store.DBTX) ([]string, error) {
	// The check goes by what the connection knows of the table from before, which a
	// query brings up to date: else what others wrote looks like damage.
	if _, err := store.Column[int64](ctx, db, `SELECT rowid FROM index_fts LIMIT 1`); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return []string{"the full-text table is damaged: " + err.Error()}, nil
	}
	said, err := store.Column[string](ctx, db, `PRAGMA integrity_check(index_fts)`)
	if err != nil {
		return nil, err
	}
	if len(said) != 1 || said[0] != "ok" { // what it holds says nothing
		return []string{"the full-text table is damaged: " + strings.Join(said[:min(len(said), 3)], "; ")}, nil
	}
	var faults []string
	for _, check := range []func(context.Context, store.DBTX) ([]string, error){verifyTexts, f.verifyTerms, verifyCounts} {
		found, err := check(ctx, db)
		if err != nil {
			return nil, err
		}
		faults = append(faults, found...)
	}
	return faults, nil
}

// toIndex are all texts as index_doc should list them.
const toIndex = `(SELECT n AS doc, iif(state = 'active', 0, 1) AS class, scope, rev FROM memory WHERE state IN ('active', 'superseded', 'archived')
	UNION ALL SELECT -n, 2, scope, 1 FROM memory_turn WHERE text <> '')`

// docName is what the document t is called.
const docName = `iif(t.doc < 0, 'message ' || -t.doc, 'memory ' || t.doc)`

// verifyTexts compares which texts are indexed, of what state and which revision.
func verifyTexts(ctx context.Context, db store.DBTX) ([]string, error) {
	var faults []string
	for _, query := range []string{
		`SELECT ` + docName + ` || ' is missing' FROM ` + toIndex + ` AS t WHERE t.doc NOT IN (SELECT doc FROM index_doc)`,
		`SELECT ` + docName + ` || ' is indexed and is not, or no longer, to be found' FROM index_doc AS t WHERE t.doc NOT IN (SELECT doc FROM ` + toIndex + `)`,
		`SELECT ` + docName + ` || ' stands in another scope or state than it has' FROM ` + toIndex + ` AS t CROSS JOIN index_doc AS d ON d.doc = t.doc
			LEFT JOIN index_scope AS s ON s.scope = t.scope WHERE d.row IS NOT ((t.class << 60) | (s.no << 36) | abs(t.doc))`,
		`SELECT ` + docName + ` || ' is indexed as it was before its last change' FROM ` + toIndex + ` AS t CROSS JOIN index_doc AS d ON d.doc = t.doc WHERE d.rev <> t.rev`,
		`SELECT count(*) || ' texts stand in the full-text table alone' FROM index_fts_docsize WHERE id NOT IN (SELECT row FROM index_doc) HAVING count(*) > 0`,
		`SELECT count(*) || ' texts are missing from the full-text table' FROM index_doc WHERE row NOT IN (SELECT id FROM index_fts_docsize) HAVING count(*) > 0`,
	} {
		found, err := store.Column[string](ctx, db, query+fmt.Sprintf(` LIMIT %d`, maxFaults))
		if err != nil {
			return nil, err
		}
		faults = append(faults, found...)
	}
	return faults, nil
}

// verifyTerms makes the terms of some texts anew and compares them with the index.
func (f *FTS) verifyTerms(ctx context.Context, db store.DBTX) ([]string, error) {
	some, err := store.Column[int64](ctx, db, `SELECT doc FROM index_doc ORDER BY random() LIMIT ?`, sampleSize)
	if err != nil {
		return nil, err
	}
	var faults []string
	for _, doc := range some {
		query := entrySource + ` AND n = ?`
		if doc < 0 {
			query = turnSource + ` AND n = ?`
		}
		all, err := sources(ctx, db, query, max(doc, -doc))
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			continue // verifyTexts says so
		}
		m := f.words.make(all[0])
		wrong, err := store.Column[string](ctx, db, `SELECT `+docName+` || ' is indexed with other terms than its own' FROM index_doc AS t
			CROSS JOIN index_fts AS f ON f.rowid = t.row WHERE t.doc = ? AND (f.body, f.day, f.subject) <> (?, ?, ?)`, doc, m.body, m.day, m.names)
		if err != nil {
			return nil, err
		}
		faults = append(faults, wrong...)
	}
	return faults, nil
}

// verifyCounts compares how many texts and words a scope has, and in how many texts some terms stand.
func verifyCounts(ctx context.Context, db store.DBTX) ([]string, error) {
	faults, err := store.Column[string](ctx, db, `SELECT 'the counts of words in ' || scope || ' are wrong' FROM index_scope AS s LEFT JOIN
		(SELECT row >> 36 & 0xFFFFFF AS no, count(*) AS docs, sum(words) AS words FROM index_doc GROUP BY 1) AS d ON d.no = s.no
		WHERE s.docs <> coalesce(d.docs, 0) OR s.words <> coalesce(d.words, 0)`)
	if err != nil {
		return nil, err
	}
	scopes, err := store.Column[int64](ctx, db, `SELECT no FROM index_scope`)
	if err != nil {
		return nil, err
	}
	for _, scope := range scopes {
		terms, err := store.Column[string](ctx, db, `SELECT term FROM index_term WHERE scope = ? ORDER BY random() LIMIT ?`, scope, sampleSize/5)
		if err != nil {
			return nil, err
		}
		for _, term := range terms {
			wrong, err := store.Column[string](ctx, db, `SELECT 'the counts of words in ' || (SELECT scope FROM index_scope WHERE no = ?1) || ' are wrong' FROM index_term
				WHERE scope = ?1 AND term = ?2 AND df <> (SELECT count(*) FROM index_fts WHERE index_fts MATCH ?3 AND rowid >> 36 & 0xFFFFFF = ?1)`,
				scope, term, `{body day subject} : "`+strings.ReplaceAll(term, `"`, `""`)+`"`)
			if err != nil {
				return nil, err
			}
			faults = append(faults, wrong...)
		}
	}
	return faults, nil
}
