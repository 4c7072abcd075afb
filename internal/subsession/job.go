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

// The states of a sub-session. The last three are final.
const (
	Pending   = "pending"   // waits for dependencies, or for a free slot
	Running   = "running"   // runs, or was interrupted by the program's end
	Waiting   = "waiting"   // has answered, but its own sub-sessions still run
	Completed = "completed" // has a result
	Failed    = "failed"
	Cancelled = "cancelled"
)

// Job is one sub-session, a row of sub_session.
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
	integrity          trust.Integrity // the least of all that it was given and has read
}

// talk names the conversation that holds its messages.
func (n *Job) talk() history.Timeline { return history.Timeline(n.Event()) }

// Event is the source ID of what the sub-session makes, such as tasks.
func (n *Job) Event() string { return Prefix + n.id }

// readers returns who may know of the sub-session.
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

// queryJobs reads sub-sessions. rest is the query after FROM.
func queryJobs(ctx context.Context, from store.DBTX, rest string, args ...any) ([]Job, error) {
	return store.List(ctx, from, scanJob, `SELECT `+columns+` FROM sub_session AS n `+rest, args...)
}

// updateJobs runs one UPDATE and returns how many sub-sessions it changed.
func updateJobs(ctx context.Context, in store.DBTX, text string, args ...any) (int64, error) {
	done, err := in.ExecContext(ctx, `UPDATE sub_session SET `+text, args...)
	if err != nil {
		return 0, fmt.Errorf("subsession: store a sub-session: %w", err)
	}
	return done.RowsAffected()
}

// unmetReasons are the reasons why a sub-session cannot start, by the state of a dependency.
var unmetReasons = map[string]string{Failed: "why.needed_failed", Cancelled: "why.needed_cancelled"}

// failDependents fails pending sub-sessions with a failed or cancelled dependency, transitively.
func (r *Runner) failDependents(ctx context.Context) error {
	for {
		dead, err := queryJobs(ctx, r.cfg.DB, `WHERE n.status IN ('failed', 'cancelled') AND EXISTS (
			SELECT 1 FROM sub_session_need AS w JOIN sub_session AS p ON p.id = w.node WHERE w.needs = n.id AND p.status = 'pending')`)
		if err != nil || len(dead) == 0 {
			return err
		}
		for _, d := range dead {
			why := i18n.New(unmetReasons[d.status], "id", d.id, "why", d.reason)
			if _, err := updateJobs(ctx, r.cfg.DB, `status = 'failed', ended = ?, reason = ?
				WHERE status = 'pending' AND id IN (SELECT node FROM sub_session_need WHERE needs = ?)`,
				r.nowMillis(), why, d.id); err != nil {
				return err
			}
		}
	}
}

func (r *Runner) nowMillis() int64 { return r.cfg.Now().UnixMilli() }

// findJob finds a sub-session by its id; false if it does not exist.
func findJob(ctx context.Context, from store.DBTX, id string) (Job, bool, error) {
	found, err := queryJobs(ctx, from, `WHERE id = ?`, id)
	if err != nil || len(found) == 0 {
		return Job{}, false, err
	}
	return found[0], true, nil
}

// Open reports whether it has not ended.
func (n Job) Open() bool {
	return n.status == Pending || n.status == Running || n.status == Waiting
}

// outcome describes how it ended. Each line of the result is quoted, so that it cannot pass for text of
// the program or of a person.
func (n Job) outcome(say i18n.Say, maxRunes int) string {
	head := fmt.Sprintf("%s (%s)", n.id, history.OneLine(n.Objective, 200))
	if n.status != Completed {
		return fmt.Sprintf("%s %s: %s", head, say("state."+n.status), history.OneLine(n.reason.In(say), 600))
	}
	return head + ":\n" + quoteLines(say, n.Result, maxRunes)
}

// eventKind returns the kind of the event that reports its end.
func (n Job) eventKind() chat.EventKind {
	if n.status == Completed {
		return chat.SubSessionResult
	}
	return chat.SubSessionFailed
}

// quoteLines cuts text to maxRunes and puts "> " before each line.
func quoteLines(say i18n.Say, text string, maxRunes int) string {
	text = strings.TrimSpace(text)
	if r := []rune(text); len(r) > maxRunes {
		text = string(r[:maxRunes]) + "\n" + say("helpers.cut", "count", fmt.Sprint(len(r)))
	}
	return "> " + strings.ReplaceAll(strings.ReplaceAll(text, "\r", ""), "\n", "\n> ")
}

// Forget replaces texts in the inputs and results of sub-sessions, in tx.
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
