package session

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"reverie/internal/store"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// Bounds of what the sub-sessions of one piece of work keep for one another.
const (
	mostShared    = 50
	largestFile   = 64 << 10 // bytes
	mostFileBytes = 1 << 20  // of all
)

// theirFiles is what a sub-session ?1 may read: the files of its workflow, and those of
// a direct chat only if it is one still, ?2.
const theirFiles = `FROM sub_session_file AS f JOIN sub_session AS n ON n.id = f.node
	WHERE n.workflow = (SELECT workflow FROM sub_session WHERE id = ?1) AND (n.private = 0 OR ?2)`

// Keep implements tool.Scratch.
func (h *helpers) Keep(ctx context.Context, scope tool.Scope, name, text string, behind bool) error {
	return store.InTx(ctx, h.cfg.DB, func(tx *sql.Tx) error {
		var files, size, mine int
		if err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(length(CAST(f.text AS BLOB))), 0),
				coalesce(sum(iif(f.node = ?1 AND f.name = ?3, length(CAST(f.text AS BLOB)), 0)), 0) `+theirFiles,
			scope.Helper, true, name).Scan(&files, &size, &mine); err != nil {
			return fmt.Errorf("session: read shared files: %w", err)
		}
		after := len(text)
		if behind {
			after += mine
		}
		switch {
		case after > largestFile:
			return fmt.Errorf("%s would have %d bytes, and a file has %d at most: keep less, or use several", name, after, largestFile)
		case size-mine+after > mostFileBytes:
			return fmt.Errorf("the shared files would have %d bytes, and there is room for %d: write a shorter text in the place of one of yours", size-mine+after, mostFileBytes)
		case mine == 0 && files >= mostShared:
			return fmt.Errorf("there are %d shared files already: write in the place of one of yours", files)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO sub_session_file (node, name, text, at) VALUES (?1, ?2, ?3, ?4)
			ON CONFLICT (node, name) DO UPDATE SET text = iif(?5, text, '') || excluded.text, at = excluded.at`, scope.Helper, name, text, h.millis(), behind); err != nil {
			return fmt.Errorf("session: keep a shared file: %w", err)
		}
		return nil
	})
}

// Kept implements tool.Scratch.
func (h *helpers) Kept(ctx context.Context, scope tool.Scope, name string) (string, error) {
	node, file, ok := strings.Cut(name, "/")
	if !ok {
		node, file = "", name
	}
	var text string
	var of trust.Integrity
	err := h.cfg.DB.QueryRowContext(ctx, `SELECT f.node, f.text, n.integrity `+theirFiles+` AND f.name = ?3 AND (?4 = '' OR f.node = ?4) ORDER BY f.at DESC, f.rowid DESC LIMIT 1`,
		scope.Helper, scope.Private, file, node).Scan(&node, &text, &of)
	switch {
	case err == sql.ErrNoRows: //nolint:errorlint // Scan returns it as it is
		return "", fmt.Errorf("there is no shared file %s; action list names them", name)
	case err != nil:
		return "", fmt.Errorf("session: read a shared file: %w", err)
	}
	scope.Shows(of)
	return node + "/" + file + ":\n" + quoted(text, tool.MaxResult-1000), nil
}

// Listed implements tool.Scratch.
func (h *helpers) Listed(ctx context.Context, scope tool.Scope) (string, error) {
	lines, err := store.List(ctx, h.cfg.DB, func(row store.Row) (string, error) {
		var node, name string
		var n int
		err := row.Scan(&node, &name, &n)
		return fmt.Sprintf("%s/%s (%d characters)", node, name, n), err
	}, `SELECT f.node, f.name, length(f.text) `+theirFiles+` ORDER BY f.node, f.name`, scope.Helper, scope.Private)
	if err != nil {
		return "", fmt.Errorf("session: list shared files: %w", err)
	}
	if len(lines) == 0 {
		return "There are no shared files yet.", nil
	}
	return strings.Join(lines, "\n"), nil
}

// tidy removes the files of workflows of which all has been told.
func (h *helpers) tidy(ctx context.Context) error {
	if _, err := h.cfg.DB.ExecContext(ctx, `DELETE FROM sub_session_file WHERE NOT EXISTS (SELECT 1 FROM sub_session AS a
		JOIN sub_session AS b ON b.workflow = a.workflow WHERE a.id = sub_session_file.node AND b.told = 0)`); err != nil {
		return fmt.Errorf("session: remove shared files: %w", err)
	}
	return nil
}
