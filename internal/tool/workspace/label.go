package workspace

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// label is what was last written at a path.
type label struct {
	hash      string
	integrity trust.Integrity
}

// of returns the integrity of a file with this content: that of what was written, or foreign.
func (l label) of(data []byte) trust.Integrity {
	if l.hash != fmt.Sprintf("%x", sha256.Sum256(data)) {
		return trust.Foreign
	}
	return l.integrity
}

// labels returns the labels of a work folder by path. A bound folder ("") has none.
func (s *Store) labels(ctx context.Context, dir string) (map[string]label, error) {
	all := map[string]label{}
	if dir == "" {
		return all, nil
	}
	err := store.Each(ctx, s.cfg.DB, func(row store.Row) error {
		var path string
		var l label
		err := row.Scan(&path, &l.hash, &l.integrity)
		all[path] = l
		return err
	}, `SELECT path, hash, integrity FROM work_file WHERE folder = ?`, dir)
	return all, store.Wrap(err, "work folder: read labels")
}

// setLabel stores the label of a path, and drops those of files that are gone. Without a label, or if the
// program is killed before it is stored, the file is foreign.
func (s *Store) setLabel(ctx context.Context, dir, path string, l label, there map[string]bool) error {
	err := store.InTx(ctx, s.cfg.DB, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM work_file WHERE folder = ? AND path NOT IN (SELECT value FROM json_each(?))`,
			dir, store.Array(slices.Collect(maps.Keys(there))))
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO work_file (folder, path, hash, integrity) VALUES (?, ?, ?, ?)`,
				dir, path, l.hash, l.integrity)
		}
		return err
	})
	return store.Wrap(err, "work folder: store label")
}

// moveLabels moves the labels of a folder. Where both folders had a file, the label of the moved one is
// dropped.
func (s *Store) moveLabels(ctx context.Context, old, now string) error {
	return store.InTx(ctx, s.cfg.DB, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE OR IGNORE work_file SET folder = ? WHERE folder = ?`, now, old)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM work_file WHERE folder = ?`, old)
		}
		return err
	})
}
