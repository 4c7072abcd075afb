package search

import (
	"context"
	"database/sql"
	"slices"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// rebuildBatch is how many texts are analysed before they are written.
const rebuildBatch = 4000

// Rebuild rebuilds the index in one transaction and returns the number of documents. If it fails,
// the old index stays.
func (f *FTS) Rebuild(ctx context.Context) (documents int, err error) {
	err = store.InTx(ctx, f.db, func(tx *sql.Tx) error {
		if err := clearIndex(ctx, tx); err != nil {
			return err
		}
		entries, err := readSources(ctx, tx, entrySource)
		if err != nil {
			return err
		}
		turns, err := readSources(ctx, tx, turnSource)
		if err != nil {
			return err
		}
		documents = len(entries) + len(turns)
		for part := range slices.Chunk(append(entries, turns...), rebuildBatch) {
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
		`DROP TABLE index_fts`, table, `INSERT INTO index_fts (index_fts, rank) VALUES ('hashsize', 16777216)`,
		`DELETE FROM index_doc`, `DELETE FROM index_term`, `DELETE FROM index_scope`,
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
	scopes, err := store.Column[trust.Readers](ctx, f.db, `SELECT scope FROM index_scope WHERE docs > 0 ORDER BY scope`)
	return scopes, store.Wrap(err, "list scopes")
}
