package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/store"
)

const approvalColumns = `code, room, talk, conversation, event, asker, readers, quote, acts, seen, mark, state, wide,
	answered_by, unproven, created, expires`

// approvals reads those that what, the rest of a query, is true of, the oldest first.
func (m *Manager) approvals(ctx context.Context, from store.DBTX, what string, args ...any) ([]approval, error) {
	all, err := store.List(ctx, from, scanApproval, `SELECT `+approvalColumns+` FROM approval `+what+` ORDER BY created, rowid`, args...)
	if err != nil {
		return nil, fmt.Errorf("session: read approvals: %w", err)
	}
	return all, nil
}

func scanApproval(row store.Row) (a approval, err error) {
	var created, expires int64
	if err := row.Scan(&a.code, &a.room, &a.talk, &a.conversation, &a.event, &a.asker, &a.readers, &a.quote, store.JSON(&a.acts), store.JSON(&a.seen), &a.mark, &a.state,
		&a.wide, &a.answeredBy, &a.unproven, &created, &expires); err != nil {
		return a, err
	}
	a.created, a.expires = time.UnixMilli(created), time.UnixMilli(expires)
	return a, nil
}

func storeApproval(ctx context.Context, db store.DBTX, a approval) error {
	var expires int64
	if a.state != gathering {
		expires = a.expires.UnixMilli()
	}
	_, err := db.ExecContext(ctx, `INSERT INTO approval (`+approvalColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (code) DO UPDATE SET acts = excluded.acts, seen = excluded.seen, mark = excluded.mark, state = excluded.state,
			wide = excluded.wide,
			answered_by = excluded.answered_by, unproven = excluded.unproven WHERE approval.state IN ('gathering', 'open', 'approved')`,
		a.code, a.room, a.talk, a.conversation, a.event, a.asker, a.readers, a.quote, store.JSON(&a.acts), store.JSON(&a.seen), a.mark, a.state,
		a.wide, a.answeredBy, a.unproven,
		a.created.UnixMilli(), expires)
	if err != nil {
		return fmt.Errorf("session: store an approval: %w", err)
	}
	return nil
}

// dropApprovals deletes what ended long ago, with its texts.
func (m *Manager) dropApprovals(ctx context.Context, db store.DBTX) error {
	_, err := db.ExecContext(ctx, `DELETE FROM approval WHERE created < ? AND state NOT IN ('open', 'approved')`,
		m.cfg.Now().Add(-approvalKept).UnixMilli())
	if err != nil {
		return fmt.Errorf("session: delete old approvals: %w", err)
	}
	return nil
}

// blank takes the texts out of an approval, and ends it if it has not ended.
const blank = `UPDATE approval SET quote = '', acts = '[]', seen = '[]',
	state = iif(state IN ('gathering', 'open', 'approved'), 'void', state)`

// ForgetApprovals takes the texts out of the approvals that hold one of these, in tx.
func ForgetApprovals(ctx context.Context, tx *sql.Tx, texts []string) error {
	all, err := (&Manager{}).approvals(ctx, tx, `WHERE acts <> '[]' OR quote <> ''`)
	if err != nil {
		return err
	}
	for _, a := range all {
		if !slices.ContainsFunc(texts, a.holds) {
			continue
		}
		if _, err := tx.ExecContext(ctx, blank+` WHERE code = ?`, a.code); err != nil {
			return fmt.Errorf("session: forget in approvals: %w", err)
		}
	}
	return nil
}

// holds reports whether text stands in a.
func (a *approval) holds(text string) bool {
	if text == "" {
		return false
	}
	return strings.Contains(a.quote, text) || slices.ContainsFunc(a.acts, func(act askedAct) bool {
		escaped, _ := json.Marshal(text) //nolint:errchkjson // a string
		var plain any
		_ = json.Unmarshal([]byte(act.Call.Arguments), &plain)
		arguments, _ := json.Marshal(plain) //nolint:errchkjson // it came from JSON
		return strings.Contains(act.Result, text) || strings.Contains(act.Call.Arguments, text) ||
			strings.Contains(string(arguments), string(escaped[1:len(escaped)-1]))
	})
}
