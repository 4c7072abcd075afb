package session

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/prompt"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// The states of a sub-session; the last three are its end.
const (
	helperPending   = "pending"   // waits for others, or for a free place
	helperRunning   = "running"   // is worked on, or was when the program ended
	helperWaiting   = "waiting"   // has answered, but others that it asked for have not
	helperCompleted = "completed" // has a result
	helperFailed    = "failed"
	helperCancelled = "cancelled"
)

// helper is a sub-session, a row of the table.
type helper struct {
	id, parent         string
	depth              int
	room, user         string
	private            bool
	asked              string
	objective, context string
	mode               prompt.Layout // or full
	tools              []string
	timeout            time.Duration
	status             string
	result             string
	reason             i18n.Text
	rounds             int
	event              string
	tries              int
	created, ended     time.Time
	timedOut           bool            // why it failed
	integrity          trust.Integrity // of all that it was given and has read
}

// readers is who may know of it.
func (n *helper) readers() trust.Readers {
	return trust.Place{Room: n.room, Person: n.user, Private: n.private}.Readers()
}

const helperColumns = `id, parent, depth, room, user, private, asked, objective, context, mode, tools, timeout, status,
	result, reason, rounds, event, tries, created, ended, timed_out, integrity`

func scanHelper(row store.Row) (n helper, err error) {
	var timeout, created, ended int64
	if err := row.Scan(&n.id, &n.parent, &n.depth, &n.room, &n.user, &n.private, &n.asked, &n.objective, &n.context, &n.mode, store.JSON(&n.tools),
		&timeout, &n.status, &n.result, &n.reason, &n.rounds, &n.event, &n.tries, &created, &ended, &n.timedOut, &n.integrity); err != nil {
		return n, err
	}
	n.timeout = time.Duration(timeout) * time.Millisecond
	n.created, n.ended = time.UnixMilli(created), time.UnixMilli(ended)
	return n, nil
}

// read reads the sub-sessions that what, the rest of a query after FROM, is true of.
func (h *helpers) read(ctx context.Context, from store.DBTX, what string, args ...any) ([]helper, error) {
	out, err := store.List(ctx, from, scanHelper, `SELECT `+helperColumns+` FROM sub_session AS n `+what, args...)
	if err != nil {
		return nil, fmt.Errorf("session: read sub-sessions: %w", err)
	}
	return out, nil
}

// change runs one UPDATE and says how many sub-sessions it changed.
func (h *helpers) change(ctx context.Context, in store.DBTX, text string, args ...any) (int64, error) {
	done, err := in.ExecContext(ctx, `UPDATE sub_session SET `+text, args...)
	if err != nil {
		return 0, fmt.Errorf("session: store a sub-session: %w", err)
	}
	return done.RowsAffected()
}

// failDependents ends what can never begin: it needs one that has failed or was
// cancelled. That goes on along the chain.
func (h *helpers) failDependents(ctx context.Context) error {
	for {
		blocked, err := h.read(ctx, h.cfg.DB, `WHERE n.status = 'pending' AND EXISTS (SELECT 1 FROM sub_session_need AS w JOIN sub_session AS d ON d.id = w.needs
			WHERE w.node = n.id AND d.status IN ('failed', 'cancelled'))`)
		if err != nil || len(blocked) == 0 {
			return err
		}
		for _, n := range blocked {
			needed, err := h.needed(ctx, n)
			if err != nil {
				return err
			}
			d := needed[slices.IndexFunc(needed, func(d helper) bool { return d.status == helperFailed || d.status == helperCancelled })]
			key := "why.needed_failed"
			if d.status == helperCancelled {
				key = "why.needed_cancelled"
			}
			why := i18n.New(key, "id", d.id, "why", d.reason)
			if _, err := h.change(ctx, h.cfg.DB, `status = 'failed', ended = ?, reason = ? WHERE id = ? AND status = 'pending'`, h.millis(), why, n.id); err != nil {
				return err
			}
		}
	}
}

func (h *helpers) millis() int64 { return h.cfg.Now().UnixMilli() }

// startable are those that may be worked on, the oldest first: what was interrupted
// by the end of the program, and what waits for nothing.
func (h *helpers) startable(ctx context.Context) ([]helper, error) {
	return h.read(ctx, h.cfg.DB, `WHERE told = 0 AND (status = 'running' OR status = 'pending'
		AND NOT EXISTS (SELECT 1 FROM sub_session_need AS w JOIN sub_session AS d ON d.id = w.needs WHERE w.node = n.id AND d.status <> 'completed'))
		ORDER BY created, rowid`)
}

// one finds a sub-session by its id; false if there is none.
func (h *helpers) one(ctx context.Context, from store.DBTX, id string) (helper, bool, error) {
	found, err := h.read(ctx, from, `WHERE id = ?`, id)
	if err != nil || len(found) == 0 {
		return helper{}, false, err
	}
	return found[0], true, nil
}

// needed are those whose results n works with.
func (h *helpers) needed(ctx context.Context, n helper) ([]helper, error) {
	return h.read(ctx, h.cfg.DB, `JOIN sub_session_need AS w ON w.needs = n.id WHERE w.node = ? ORDER BY n.created, n.rowid`, n.id)
}

// open reports whether it has not ended.
func (n helper) open() bool {
	return n.status == helperPending || n.status == helperRunning || n.status == helperWaiting
}

// told is how it ended, with each line of what it said marked as its own: nothing
// in it can be taken for words of the program or of a person.
func (n helper) told(say i18n.Say, most int) string {
	head := fmt.Sprintf("%s (%s)", n.id, history.OneLine(n.objective, 200))
	if n.status != helperCompleted {
		return fmt.Sprintf("%s %s: %s", head, say("state."+n.status), history.OneLine(n.reason.In(say), 600))
	}
	return head + ":\n" + quoted(say, n.result, most)
}

// kind is the kind of event that tells of its end.
func (n helper) kind() chat.EventKind {
	if n.status == helperCompleted {
		return chat.SubSessionResult
	}
	return chat.SubSessionFailed
}

// quoted marks each line of text with "> ", and cuts it at most characters.
func quoted(say i18n.Say, text string, most int) string {
	text = strings.TrimSpace(text)
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "\n" + say("helpers.cut", "count", fmt.Sprint(len(r)))
	}
	return "> " + strings.ReplaceAll(strings.ReplaceAll(text, "\r", ""), "\n", "\n> ")
}

// ForgetHelpers takes texts out of what sub-sessions were given and brought, in tx.
func ForgetHelpers(ctx context.Context, tx *sql.Tx, texts []string) error {
	for _, t := range texts {
		if t == "" {
			continue
		}
		for _, column := range []string{"objective", "context", "result", "reason"} {
			if _, err := tx.ExecContext(ctx, `UPDATE sub_session SET `+column+` = replace(`+column+`, ?1, '[forgotten]') WHERE instr(`+column+`, ?1) > 0`, t); err != nil {
				return fmt.Errorf("session: forget in sub-sessions: %w", err)
			}
		}
	}
	return nil
}
