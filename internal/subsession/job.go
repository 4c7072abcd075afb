package subsession

import (
	"context"
	"database/sql"
	"fmt"
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
	Pending   = "pending"   // waits for others, or for a free place
	Running   = "running"   // is worked on, or was when the program ended
	Waiting   = "waiting"   // has answered, but others that it asked for have not
	Completed = "completed" // has a result
	Failed    = "failed"
	Cancelled = "cancelled"
)

// Job is a sub-session, a row of the table.
type Job struct {
	id, parent         string
	depth              int
	room, user         string
	private            bool
	Objective, context string
	mode               prompt.Layout
	tools              []string
	timeout            time.Duration
	status             string
	Result             string
	reason             i18n.Text
	rounds             int
	event              string
	tries              int
	created, ended     time.Time
	integrity          trust.Integrity // of all that it was given and has read
}

// talk is where its messages are.
func (n *Job) talk() history.Timeline { return history.Timeline(n.Event()) }

// Event is the name of what it does, for who asks what was done for whom.
func (n *Job) Event() string { return subPrefix + n.id }

// readers is who may know of it.
func (n *Job) readers() trust.Readers {
	return trust.Place{Room: n.room, Person: n.user, Private: n.private}.Readers()
}

const columns = `id, parent, depth, room, user, private, objective, context, mode, tools, timeout, status,
	result, reason, rounds, event, tries, created, ended, integrity`

func scanJob(row store.Row) (n Job, err error) {
	var timeout, created, ended int64
	if err := row.Scan(&n.id, &n.parent, &n.depth, &n.room, &n.user, &n.private, &n.Objective, &n.context, &n.mode, store.JSON(&n.tools),
		&timeout, &n.status, &n.Result, &n.reason, &n.rounds, &n.event, &n.tries, &created, &ended, &n.integrity); err != nil {
		return n, err
	}
	if n.mode == "full" {
		n.mode = "" // the conversation's
	}
	n.timeout = time.Duration(timeout) * time.Millisecond
	n.created, n.ended = time.UnixMilli(created), time.UnixMilli(ended)
	return n, nil
}

// read reads the sub-sessions that what, the rest of a query after FROM, is true of.
func read(ctx context.Context, from store.DBTX, what string, args ...any) ([]Job, error) {
	out, err := store.List(ctx, from, scanJob, `SELECT `+columns+` FROM sub_session AS n `+what, args...)
	return out, store.Wrap(err, "subsession: read sub-sessions")
}

// change runs one UPDATE and says how many sub-sessions it changed.
func change(ctx context.Context, in store.DBTX, text string, args ...any) (int64, error) {
	done, err := in.ExecContext(ctx, `UPDATE sub_session SET `+text, args...)
	if err != nil {
		return 0, fmt.Errorf("subsession: store a sub-session: %w", err)
	}
	return done.RowsAffected()
}

// needless is why a sub-session cannot begin, by the state of one that it needs.
var needless = map[string]string{Failed: "why.needed_failed", Cancelled: "why.needed_cancelled"}

// failDependents ends what can never begin: it needs one that has failed or was
// cancelled. That goes on along the chain.
func (r *Runner) failDependents(ctx context.Context) error {
	for {
		dead, err := read(ctx, r.cfg.DB, `WHERE n.status IN ('failed', 'cancelled') AND EXISTS (
			SELECT 1 FROM sub_session_need AS w JOIN sub_session AS p ON p.id = w.node WHERE w.needs = n.id AND p.status = 'pending')`)
		if err != nil || len(dead) == 0 {
			return err
		}
		for _, d := range dead {
			why := i18n.New(needless[d.status], "id", d.id, "why", d.reason)
			if _, err := change(ctx, r.cfg.DB, `status = 'failed', ended = ?, reason = ?
				WHERE status = 'pending' AND id IN (SELECT node FROM sub_session_need WHERE needs = ?)`,
				r.millis(), why, d.id); err != nil {
				return err
			}
		}
	}
}

func (r *Runner) millis() int64 { return r.cfg.Now().UnixMilli() }

// startable are those that may be worked on, the oldest first: what was interrupted
// by the end of the program, and what waits for nothing.
func (r *Runner) startable(ctx context.Context) ([]Job, error) {
	return read(ctx, r.cfg.DB, `WHERE reported_at = 0 AND (status = 'running' OR status = 'pending'
		AND NOT EXISTS (SELECT 1 FROM sub_session_need AS w JOIN sub_session AS d ON d.id = w.needs
			WHERE w.node = n.id AND d.status <> 'completed'))
		ORDER BY created, rowid`)
}

// one finds a sub-session by its id; false if there is none.
func one(ctx context.Context, from store.DBTX, id string) (Job, bool, error) {
	found, err := read(ctx, from, `WHERE id = ?`, id)
	if err != nil || len(found) == 0 {
		return Job{}, false, err
	}
	return found[0], true, nil
}

// needed are those whose results n works with.
func (r *Runner) needed(ctx context.Context, n Job) ([]Job, error) {
	return read(ctx, r.cfg.DB, `JOIN sub_session_need AS w ON w.needs = n.id WHERE w.node = ? ORDER BY n.created, n.rowid`, n.id)
}

// Open reports whether it has not ended.
func (n Job) Open() bool {
	return n.status == Pending || n.status == Running || n.status == Waiting
}

// told is how it ended, with each line of what it said marked as its own: nothing
// in it can be taken for words of the program or of a person.
func (n Job) told(say i18n.Say, most int) string {
	head := fmt.Sprintf("%s (%s)", n.id, history.OneLine(n.Objective, 200))
	if n.status != Completed {
		return fmt.Sprintf("%s %s: %s", head, say("state."+n.status), history.OneLine(n.reason.In(say), 600))
	}
	return head + ":\n" + quoted(say, n.Result, most)
}

// kind is the kind of event that tells of its end.
func (n Job) kind() chat.EventKind {
	if n.status == Completed {
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

// Forget takes texts out of what sub-sessions were given and brought, in tx.
func Forget(ctx context.Context, tx *sql.Tx, texts []string) error {
	for _, t := range texts {
		if t == "" {
			continue
		}
		for _, column := range []string{"objective", "context", "result", "reason"} {
			if _, err := tx.ExecContext(ctx, `UPDATE sub_session SET `+column+` = replace(`+column+`, ?1, '[forgotten]')
				WHERE instr(`+column+`, ?1) > 0`, t); err != nil {
				return fmt.Errorf("subsession: forget in sub-sessions: %w", err)
			}
		}
	}
	return nil
}
