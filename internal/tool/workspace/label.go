package workspace

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// label is what was last written at a path.
type label struct {
	hash      string
	integrity trust.Integrity
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// of returns the integrity of a file with this content: that of what was written, or foreign.
func (l label) of(data []byte) trust.Integrity {
	if l.hash != hashOf(data) {
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
	rows, err := s.cfg.DB.QueryContext(ctx, `SELECT path, hash, integrity FROM work_file WHERE folder = ?`, dir)
	if err != nil {
		return nil, store.Wrap(err, "work folder: read labels")
	}
	defer rows.Close()
	for rows.Next() {
		var path string
		var l label
		if err := rows.Scan(&path, &l.hash, &l.integrity); err != nil {
			return nil, store.Wrap(err, "work folder: read labels")
		}
		all[path] = l
	}
	return all, store.Wrap(rows.Err(), "work folder: read labels")
}

// setLabel stores the label of a path, and drops those of files that are gone. Without a label, or if the
// program is killed before it is stored, the file is foreign.
func (s *Store) setLabel(ctx context.Context, dir, path string, l label, there map[string]bool) error {
	known, err := s.labels(ctx, dir)
	if err != nil {
		return err
	}
	err = store.InTx(ctx, s.cfg.DB, func(tx *sql.Tx) error {
		for old := range known {
			if !there[old] {
				if _, err := tx.ExecContext(ctx, `DELETE FROM work_file WHERE folder = ? AND path = ?`, dir, old); err != nil {
					return err
				}
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO work_file (folder, path, hash, integrity) VALUES (?, ?, ?, ?)`,
			dir, path, l.hash, l.integrity)
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
