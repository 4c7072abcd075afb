package subsession

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// Spawn implements tool.Spawner.
func (r *Runner) Spawn(ctx context.Context, scope tool.Scope, job tool.Job) (id, waits string, err error) {
	tools := r.grantTools(scope, job)
	id = "sub_" + strings.ToLower(rand.Text()[:8])
	if scope.Key != "" {
		id = "sub_" + scope.Key
		if n, known, err := findJob(ctx, r.cfg.DB, id); err != nil || known { // before an interruption
			return n.id, "", err
		}
	}
	timeout := cmp.Or(job.Timeout, r.cfg.Limits.Timeout)
	err = store.InTx(ctx, r.cfg.DB, func(tx *sql.Tx) error {
		depth, err := r.checkLimits(ctx, tx, scope)
		if err != nil {
			return err
		}
		needs, err := findDependencies(ctx, tx, scope, job)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO sub_session
			(id, parent, depth, room, user, private, origin, objective, context, mode, tools, timeout, status, created, integrity)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)`, id, scope.SubSession,
			depth, scope.Room, scope.User, scope.Private,
			scope.Event, job.Objective, job.Context, job.Mode, store.JSON(&tools),
			timeout.Milliseconds(), r.nowMillis(), scope.Label.Integrity); err != nil {
			return fmt.Errorf("subsession: store a sub-session: %w", err)
		}
		var open []string
		for _, d := range needs {
			if _, err := tx.ExecContext(ctx, `INSERT INTO sub_session_need (node, needs) VALUES (?, ?)`, id, d.id); err != nil {
				return fmt.Errorf("subsession: store a sub-session: %w", err)
			}
			if d.status != Completed {
				open = append(open, d.id)
			}
		}
		if len(open) > 0 {
			waits = "when " + strings.Join(open, ", ") + " is done"
		}
		return nil
	})
	if err != nil {
		return "", "", err
	}
	r.Wake()
	return id, waits, nil
}

// conversational are tools that need a conversation.
var conversational = []string{tool.StaySilent, tool.SetMode, tool.SetModel, tool.ShellStatus}

// grantTools returns the tools of a sub-session: those that the job names and its spawner may use,
// without tools that need a conversation.
func (r *Runner) grantTools(scope tool.Scope, job tool.Job) []string {
	wanted := tool.Policy{Allow: job.Tools}
	names := []string{}
	for _, name := range r.cfg.Tools.Names() {
		if wanted.Allows(name) && scope.Policy.Allows(name) && !slices.Contains(conversational, name) && !tool.AsksEachTime(name) {
			names = append(names, name)
		}
	}
	return names
}

// checkLimits refuses a sub-session over the limits of depth or number. It returns the new one's depth.
func (r *Runner) checkLimits(ctx context.Context, tx *sql.Tx, scope tool.Scope) (depth int, err error) {
	if scope.SubSession != "" {
		parent, _, err := findJob(ctx, tx, scope.SubSession)
		if err != nil {
			return 0, err
		}
		if parent.status != Running {
			return 0, errors.New("this sub-session has ended")
		}
		depth = parent.depth
	}
	if depth >= r.cfg.Limits.Depth {
		return 0, fmt.Errorf("sub-sessions of sub-sessions go %d deep at most; do it yourself", r.cfg.Limits.Depth)
	}
	open, err := queryJobs(ctx, tx, `WHERE room = ? AND status IN ('pending', 'running', 'waiting')`, scope.Room)
	if err != nil {
		return 0, err
	}
	if len(open) >= maxOpen {
		return 0, fmt.Errorf("there are %d open sub-sessions here already; wait for some of them", len(open))
	}
	return depth + 1, nil
}

// findDependencies finds the sub-sessions that a job depends on. Its errors are for the model.
func findDependencies(ctx context.Context, tx *sql.Tx, scope tool.Scope, job tool.Job) ([]Job, error) {
	var found []Job
	if job.OnPrevious {
		var err error
		if found, err = queryJobs(ctx, tx, `WHERE room = ? AND parent = ? AND origin = ? ORDER BY created, rowid`,
			scope.Room, scope.SubSession, scope.Event); err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, errors.New("depends_on_previous: nothing was spawned before it in this turn; spawn that first, or leave it out")
		}
	}
	for _, id := range job.Needs {
		n, err := findVisible(ctx, tx, scope, id)
		if err != nil {
			return nil, fmt.Errorf("depends_on: %w", err)
		}
		if !slices.ContainsFunc(found, func(o Job) bool { return o.id == n.id }) {
			found = append(found, n)
		}
	}
	for _, n := range found {
		switch {
		case n.status == Failed, n.status == Cancelled:
			return nil, fmt.Errorf("depends_on: %s has %s: %s", n.id, n.status, n.reason)
		case n.parent != scope.SubSession && n.status != Completed: // prevents cycles
			return nil, fmt.Errorf("depends_on: %s was not spawned by you; leave it out", n.id)
		}
	}
	return found, nil
}

// findVisible finds a sub-session of the scope's room by its id. One spawned in a direct chat is not
// visible once others are in the room.
func findVisible(ctx context.Context, from store.DBTX, scope tool.Scope, id string) (Job, error) {
	n, ok, err := findJob(ctx, from, strings.ToLower(strings.TrimSpace(id)))
	if err != nil {
		return n, err
	}
	if !ok || n.room != scope.Room || !scope.Place().MayRead(n.readers()) {
		return n, fmt.Errorf("there is no sub-session %s here; action status lists them", history.OneLine(id, 30))
	}
	return n, nil
}

const maxShown = 15

// Status implements tool.Spawner.
func (r *Runner) Status(ctx context.Context, scope tool.Scope, id string) (string, error) {
	if id != "" {
		n, err := findVisible(ctx, r.cfg.DB, scope, id)
		if err != nil {
			return "", err
		}
		scope.MarkShown(n.integrity)
		if n.Result == "" {
			return n.line(i18n.English, scope.Now.Location()), nil
		}
		return n.line(i18n.English, scope.Now.Location()) + "\n" + quoteLines(i18n.English, n.Result, tool.MaxResult-1000), nil
	}
	all, err := r.listVisible(ctx, scope.Place())
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "There are no sub-sessions in this room.", nil
	}
	var lines []string
	for _, n := range all {
		lines = append(lines, n.line(i18n.English, scope.Now.Location()))
		scope.MarkShown(n.integrity)
	}
	return strings.Join(lines, "\n"), nil
}

// listVisible returns the sub-sessions visible at p: open ones first, then the last that ended.
func (r *Runner) listVisible(ctx context.Context, p trust.Place) ([]Job, error) {
	all, err := queryJobs(ctx, r.cfg.DB, `WHERE room = ?
		ORDER BY n.status NOT IN ('pending', 'running', 'waiting'), max(created, ended) DESC, rowid DESC LIMIT ?`,
		p.Room, 10*maxShown)
	all = slices.DeleteFunc(all, func(n Job) bool { return !p.MayRead(n.readers()) })
	return all[:min(len(all), maxShown)], err
}

// Cancel implements tool.Spawner.
func (r *Runner) Cancel(ctx context.Context, scope tool.Scope, id string) (string, error) {
	n, err := findVisible(ctx, r.cfg.DB, scope, id)
	if err != nil {
		return "", err
	}
	if !n.Open() {
		return "", fmt.Errorf("%s has ended already: it is %s", n.id, n.status)
	}
	if scope.SubSession != "" && n.parent != scope.SubSession {
		return "", errors.New("a sub-session cancels only what it has spawned")
	}
	ended, err := r.cancel(ctx, []Job{n}, i18n.New("why.helper_cancelled"))
	if err == nil && ended == 0 {
		return "", fmt.Errorf("%s has ended already", n.id)
	}
	return n.id + " is cancelled, with all that it had asked for.", err
}
