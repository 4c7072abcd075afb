package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// Spawn implements tool.Spawner.
func (h *helpers) Spawn(ctx context.Context, scope tool.Scope, job tool.Job) (id, waits string, err error) {
	tools := h.grant(scope, job)
	id = "sub_" + strings.ToLower(rand.Text()[:8])
	if scope.Key != "" {
		id = "sub_" + scope.Key
		if n, known, err := h.one(ctx, h.cfg.DB, id); err != nil || known { // before an interruption
			return n.id, "", err
		}
	}
	timeout := cmp.Or(job.Timeout, h.cfg.Helpers.Timeout)
	err = store.InTx(ctx, h.cfg.DB, func(tx *sql.Tx) error {
		depth, err := h.mayAsk(ctx, tx, scope)
		if err != nil {
			return err
		}
		needs, err := h.needs(ctx, tx, scope, job)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO sub_session (id, parent, depth, room, user, private, asked, objective, context, mode, tools, timeout, status, created, integrity)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)`, id, scope.Helper, depth, scope.Room, scope.User, scope.Private,
			scope.Event, job.Objective, job.Context, job.Mode, store.JSON(&tools), timeout.Milliseconds(), h.millis(), scope.Label.Integrity); err != nil {
			return fmt.Errorf("session: store a sub-session: %w", err)
		}
		var open []string
		for _, d := range needs {
			if _, err := tx.ExecContext(ctx, `INSERT INTO sub_session_need (node, needs) VALUES (?, ?)`, id, d.id); err != nil {
				return fmt.Errorf("session: store a sub-session: %w", err)
			}
			if d.status != helperCompleted {
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
	h.look()
	return id, waits, nil
}

// grant is the tools that a sub-session gets: of those of whoever asks, what the job
// names. What only a conversation can use is not among them.
func (h *helpers) grant(scope tool.Scope, job tool.Job) []string {
	wanted := tool.Policy{Allow: job.Tools}
	names := []string{}
	for _, name := range h.cfg.Tools.Names() {
		if wanted.Allows(name) && scope.Policy.Allows(name) && name != tool.StaySilent && name != tool.SetMode {
			names = append(names, name)
		}
	}
	return names
}

// mayAsk refuses what would be too deep or too many, and says how deep it is.
func (h *helpers) mayAsk(ctx context.Context, tx *sql.Tx, scope tool.Scope) (depth int, err error) {
	if scope.Helper != "" {
		parent, _, err := h.one(ctx, tx, scope.Helper)
		if err != nil {
			return 0, err
		}
		if parent.status != helperRunning {
			return 0, errors.New("this sub-session has ended")
		}
		depth = parent.depth
	}
	if depth >= h.cfg.Helpers.Depth {
		return 0, fmt.Errorf("sub-sessions of sub-sessions go %d deep at most; do it yourself", h.cfg.Helpers.Depth)
	}
	open, err := h.read(ctx, tx, `WHERE room = ? AND status IN ('pending', 'running', 'waiting')`, scope.Room)
	if err != nil {
		return 0, err
	}
	if len(open) >= mostOpen {
		return 0, fmt.Errorf("there are %d open sub-sessions here already; wait for some of them", len(open))
	}
	return depth + 1, nil
}

// needs finds those that a job depends on, or says why it cannot.
func (h *helpers) needs(ctx context.Context, tx *sql.Tx, scope tool.Scope, job tool.Job) ([]helper, error) {
	var found []helper
	if job.OnPrevious {
		var err error
		if found, err = h.read(ctx, tx, `WHERE room = ? AND parent = ? AND asked = ? ORDER BY created, rowid`, scope.Room, scope.Helper, scope.Event); err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, errors.New("depends_on_previous: nothing was spawned before it in this turn; spawn that first, or leave it out")
		}
	}
	for _, id := range job.Needs {
		n, err := h.owned(ctx, tx, scope, id)
		if err != nil {
			return nil, fmt.Errorf("depends_on: %w", err)
		}
		if !slices.ContainsFunc(found, func(o helper) bool { return o.id == n.id }) {
			found = append(found, n)
		}
	}
	for _, n := range found {
		switch {
		case n.status == helperFailed, n.status == helperCancelled:
			return nil, fmt.Errorf("depends_on: %s has %s: %s", n.id, n.status, n.reason)
		case n.parent != scope.Helper && n.status != helperCompleted: // else two could wait for each other
			return nil, fmt.Errorf("depends_on: %s was not spawned by you; leave it out", n.id)
		}
	}
	return found, nil
}

// owned finds a sub-session of the scope's room by its id. What was asked for in a
// direct chat is nobody's once others are in the room.
func (h *helpers) owned(ctx context.Context, from store.DBTX, scope tool.Scope, id string) (helper, error) {
	n, ok, err := h.one(ctx, from, strings.ToLower(strings.TrimSpace(id)))
	if err != nil {
		return n, err
	}
	if !ok || n.room != scope.Room || !scope.Place().MayRead(n.readers()) {
		return n, fmt.Errorf("there is no sub-session %s here; action status lists them", history.OneLine(id, 30))
	}
	return n, nil
}

const shownHelpers = 15

// Status implements tool.Spawner.
func (h *helpers) Status(ctx context.Context, scope tool.Scope, id string) (string, error) {
	if id != "" {
		n, err := h.owned(ctx, h.cfg.DB, scope, id)
		if err != nil {
			return "", err
		}
		line := h.line(n, i18n.English)
		scope.Shows(n.integrity)
		if n.result != "" {
			line += "\n" + quoted(i18n.English, n.result, tool.MaxResult-1000)
		}
		return line, nil
	}
	all, err := h.latest(ctx, scope.Place())
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "There are no sub-sessions in this room.", nil
	}
	var lines []string
	for _, n := range all {
		lines = append(lines, h.line(n, i18n.English))
		scope.Shows(n.integrity)
	}
	return strings.Join(lines, "\n"), nil
}

// latest are the sub-sessions of a room that may be known of at p: the open ones, and the last
// that ended.
func (h *helpers) latest(ctx context.Context, p trust.Place) ([]helper, error) {
	all, err := h.read(ctx, h.cfg.DB, `WHERE room = ? ORDER BY n.status NOT IN ('pending', 'running', 'waiting'), max(created, ended) DESC, rowid DESC LIMIT ?`,
		p.Room, 10*shownHelpers)
	all = slices.DeleteFunc(all, func(n helper) bool { return !p.MayRead(n.readers()) })
	return all[:min(len(all), shownHelpers)], err
}

// Cancel implements tool.Spawner.
func (h *helpers) Cancel(ctx context.Context, scope tool.Scope, id string) (string, error) {
	n, err := h.owned(ctx, h.cfg.DB, scope, id)
	if err != nil {
		return "", err
	}
	if !n.open() {
		return "", fmt.Errorf("%s has ended already: it is %s", n.id, n.status)
	}
	if scope.Helper != "" && n.parent != scope.Helper {
		return "", errors.New("a sub-session cancels only what it has spawned")
	}
	count, err := h.cancel(ctx, []helper{n}, i18n.New("why.helper_cancelled"))
	if err != nil {
		return "", err
	}
	if count > 1 {
		return fmt.Sprintf("%s is cancelled, with %d that it had asked for.", n.id, count-1), nil
	}
	return n.id + " is cancelled.", nil
}

// listHelpers is the command !helpers.
func (s *Session) listHelpers(ctx context.Context, in chat.Inbound, _ string) (string, error) {
	if s.helpers == nil {
		return s.text(ctx, "helpers.off"), nil
	}
	all, err := s.helpers.latest(ctx, s.place(in))
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return s.text(ctx, "helpers.none"), nil
	}
	var b strings.Builder
	say := s.cfg.Messages.For(ctx, s.room)
	for _, n := range all {
		b.WriteString("- " + s.helpers.line(n, say) + "\n")
	}
	return b.String() + "\n" + s.text(ctx, "helpers.stop"), nil
}
