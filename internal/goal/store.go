package goal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Store keeps the goals of rooms in the database. It is safe for concurrent use,
// also by several processes. Where an id is asked for, "" is the active goal. What may not be
// read at the place of a call does not exist for it.
type Store struct {
	db  *sql.DB
	now func() time.Time
}

// NewStore returns the goals in db, which has this package's tables. now tells the time.
func NewStore(db *sql.DB, now func() time.Time) *Store { return &Store{db: db, now: now} }

// Create makes a new active goal; the one that was active is paused. A goal that
// is active already under this description is returned as it is, so that saying
// the same again changes nothing but the priority. Priority "" is medium.
func (g *Store) Create(ctx context.Context, c trust.Caller, description, priority string) (Goal, error) {
	return g.do(ctx, c, "create goal", func(e *edit) error { return e.create(description, priority) })
}

// Update changes what p names of an open goal.
func (g *Store) Update(ctx context.Context, c trust.Caller, id string, p Patch) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error { return e.update(p) })
}

// Pause sets an active goal aside.
func (g *Store) Pause(ctx context.Context, c trust.Caller, id string) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error {
		if e.goal.Status != Active {
			return refuse(nil, "why.goal_not_paused", "id", e.goal.ID, "state", e.goal.Status.text())
		}
		return e.status(Paused, "")
	})
}

// Resume makes a paused goal active again, "" being the one that was paused last;
// the one that was active is paused.
func (g *Store) Resume(ctx context.Context, c trust.Caller, id string) (Goal, error) {
	return g.do(ctx, c, "resume goal", func(e *edit) error {
		paused, err := e.pick(id, `status = 'paused' ORDER BY updated DESC LIMIT 1`, "why.no_paused_goal")
		switch {
		case err != nil:
			return err
		case paused.Status == Active: // said twice
			e.goal = &paused
			return nil
		case paused.Status != Paused:
			return refuse(nil, "why.goal_not_resumed", "id", paused.ID, "state", paused.Status.text())
		}
		return e.resume(paused)
	})
}

// Complete ends an open goal. summary says what was achieved and is required.
func (g *Store) Complete(ctx context.Context, c trust.Caller, id, summary string) (Goal, error) {
	return g.end(ctx, c, id, Completed, "summary", summary, "The release is out and announced")
}

// Abandon gives an open goal up. reason is required.
func (g *Store) Abandon(ctx context.Context, c trust.Caller, id, reason string) (Goal, error) {
	return g.end(ctx, c, id, Abandoned, "reason", reason, "It is not needed any more")
}

func (g *Store) end(ctx context.Context, c trust.Caller, id string, status Status, name, why, example string) (Goal, error) {
	why, err := goalText(name, why, maxSummary, example)
	if err != nil {
		return Goal{}, err
	}
	return g.change(ctx, c, id, func(e *edit) error { return e.status(status, i18n.Text(why)) })
}

// SetCheckpoint sets the state of a checkpoint of an open goal, which is named by
// its description or its number; a description that is new makes a new one.
func (g *Store) SetCheckpoint(ctx context.Context, c trust.Caller, id, which string, status Step) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error { return e.checkpoint(which, status, false) })
}

// Decide records a decision of an open goal, or locks one that is there; d.N is
// not looked at. What contradicts a locked decision changes nothing and is an error.
func (g *Store) Decide(ctx context.Context, c trust.Caller, id string, d Decision) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error { return e.decide(d, false) })
}

// ChangeDecision gives decision n of an open goal other words. A locked one stays
// as it is: that is an error as in Decide.
func (g *Store) ChangeDecision(ctx context.Context, c trust.Caller, id string, n int, d Decision) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error { return e.redecide(n, d) })
}

// Unlock asks for the lock of a decision, named by its words or its number, to be
// taken away. There is no way to: a locked one makes it an error as in Decide, and
// one that is not locked, or not there, has nothing to take away.
func (g *Store) Unlock(ctx context.Context, c trust.Caller, id, which string) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error {
		for _, d := range e.goal.Decisions {
			if d.Locked && (sameness(d.Description) == sameness(which) || strconv.Itoa(d.N) == which) {
				return e.conflict(d)
			}
		}
		return nil
	})
}

// RecordArtifact notes what became of a file.
func (g *Store) RecordArtifact(ctx context.Context, c trust.Caller, id string, a Artifact) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error { return e.artifact(a) })
}

// edit is one change of a room's goals, within one transaction that holds the
// write lock, so that nothing it read can be otherwise.
type edit struct {
	ctx  context.Context
	tx   *sql.Tx
	by   trust.Caller
	now  time.Time
	goal *Goal // the one that is changed; nil = none yet
}

// do runs f within a transaction.
func (g *Store) do(ctx context.Context, c trust.Caller, what string, f func(*edit) error) (Goal, error) {
	var goal Goal
	err := store.InTx(ctx, g.db, func(tx *sql.Tx) error {
		e := &edit{ctx: ctx, tx: tx, by: c, now: g.now().UTC().Truncate(time.Millisecond)}
		err := f(e)
		if err == nil && e.goal != nil {
			goal = *e.goal
		}
		return err
	})
	var b *broken
	switch {
	case errors.As(err, &b):
		return Goal{}, err
	case err != nil:
		return Goal{}, fmt.Errorf("%s: %w", what, err)
	}
	return goal, nil
}

// change runs f on an open goal.
func (g *Store) change(ctx context.Context, c trust.Caller, id string, f func(*edit) error) (Goal, error) {
	return g.do(ctx, c, "change goal", func(e *edit) error {
		found, err := e.pick(id, activeGoal, "why.no_active_goal")
		if err != nil {
			return err
		}
		if found.Status != Active && found.Status != Paused {
			return breaks("goal #%s cannot be changed, it is %s already (%s): create a new goal instead",
				found.ID, found.Status, found.Summary)
		}
		e.goal = &found
		return f(e)
	})
}

// pick finds the goal id, or without one that which where finds; none = what is said if there is none.
func (e *edit) pick(id, where, none string) (Goal, error) {
	missing, args := refuse(errNotFound, none), []any(nil)
	if id = store.NormalizeID(id); id != "" {
		missing, where, args = noGoal(id), `id = ?`, []any{id}
	}
	goal, err := e.find(where, args...)
	if errors.Is(err, sql.ErrNoRows) {
		err = missing
	}
	return goal, err
}

func noGoal(id string) error {
	return refuse(errNotFound, "why.goal_unknown", "id", store.NormalizeID(id))
}

func (e *edit) create(description, priority string) error {
	description, err := goalText("description", description, maxGoal, "Ship the release by Friday")
	if err != nil {
		return err
	}
	given := priority != ""
	if priority, err = checkGoalPriority(priority); err != nil {
		return err
	}
	active, err := e.find(activeGoal)
	switch {
	case err == nil && sameness(active.Description) == sameness(description):
		e.goal = &active
		if !given {
			return nil
		}
		return e.update(Patch{Priority: priority})
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return err
	}
	open, err := store.Value[int](e.ctx, e.tx, `SELECT count(*) FROM goal WHERE `+trust.Readable+` AND status IN ('active', 'paused')`,
		e.by.ReadableArgs()...)
	if err != nil {
		return err
	}
	if open >= maxOpenGoals {
		return refuse(nil, "why.goals_many", "count", open)
	}
	if err := e.pauseActive(); err != nil {
		return err
	}
	e.goal = &Goal{ID: store.NewID("goal"), Room: e.by.Room, User: e.by.Person, Label: e.by.Label(),
		Description: description, Priority: priority, Status: Active, Created: e.now}
	return e.changed(true)
}

// pauseActive makes room for another active goal.
func (e *edit) pauseActive() error {
	active, err := e.find(activeGoal)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.endOther(&active, Paused)
}

// endOther moves a goal that is not the one that is changed to another state.
func (e *edit) endOther(goal *Goal, to Status) error {
	other := *e
	other.goal = goal
	return other.status(to, "")
}

func (e *edit) resume(paused Goal) error {
	if err := e.pauseActive(); err != nil {
		return err
	}
	e.goal = &paused
	return e.status(Active, "")
}

// status moves the goal to another state; why is for the last ones.
func (e *edit) status(to Status, why i18n.Text) error {
	e.goal.Status, e.goal.Summary, e.goal.Ended = to, why, time.Time{}
	if to == Completed || to == Abandoned {
		e.goal.Next, e.goal.Ended = "", e.now
	}
	return e.changed(why != "")
}

func (e *edit) update(p Patch) (err error) {
	if p == (Patch{}) {
		return breaks("nothing to update: give a description, a priority or what is next")
	}
	if p.Description != "" {
		if p.Description, err = goalText("description", p.Description, maxGoal, "Ship the release by Friday"); err != nil {
			return err
		}
	}
	if p.Priority != "" {
		if p.Priority, err = checkGoalPriority(p.Priority); err != nil {
			return err
		}
	}
	if p.Next != "" {
		if p.Next, err = goalText("next", p.Next, maxCheckpoint, "Write the announcement"); err != nil {
			return err
		}
	}
	before := *e.goal
	e.goal.Description, e.goal.Priority = cmp.Or(p.Description, before.Description), cmp.Or(p.Priority, before.Priority)
	e.goal.Next = cmp.Or(p.Next, before.Next)
	if e.goal.Description == before.Description && e.goal.Priority == before.Priority && e.goal.Next == before.Next {
		return nil
	}
	return e.changed(true)
}

// changed stores the goal as it is now. With words of the caller it is trusted no further than the caller.
func (e *edit) changed(words bool) error {
	if words {
		e.goal.Label.Integrity = min(e.goal.Label.Integrity, e.by.Integrity)
	}
	return e.save()
}

// save stores the goal and its parts, of which there are few. A locked decision is left as it is.
func (e *edit) save() error {
	g := e.goal
	g.Updated = e.now
	var ended any
	if !g.Ended.IsZero() {
		ended = g.Ended.UnixMilli()
	}
	err := e.exec(`INSERT INTO goal
		(id, room, user, description, priority, status, summary, next, created, updated, ended, integrity, readers)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET description = excluded.description, priority = excluded.priority, status = excluded.status,
			summary = excluded.summary, next = excluded.next,
			updated = excluded.updated, ended = excluded.ended, integrity = excluded.integrity`,
		g.ID, g.Room, g.User, g.Description, g.Priority, g.Status, g.Summary, g.Next,
		g.Created.UnixMilli(), g.Updated.UnixMilli(), ended, g.Label.Integrity, g.Label.Readers)
	for _, c := range g.Checkpoints {
		err = errors.Join(err, e.exec(`INSERT INTO goal_checkpoint (goal, n, description, status, changed) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (goal, n) DO UPDATE SET status = excluded.status, changed = excluded.changed`,
			g.ID, c.N, c.Description, c.Status, c.Changed.UnixMilli()))
	}
	for _, d := range g.Decisions {
		err = errors.Join(err, e.exec(`INSERT INTO goal_decision (goal, n, description, rationale, locked) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (goal, n) DO UPDATE
			SET description = excluded.description, rationale = excluded.rationale, locked = excluded.locked WHERE locked = 0`,
			g.ID, d.N, d.Description, d.Rationale, d.Locked))
	}
	for i, a := range g.Artifacts {
		err = errors.Join(err, e.exec(`INSERT INTO goal_artifact (goal, n, type, action, path) VALUES (?, ?, 'file', ?, ?)
			ON CONFLICT (goal, n) DO UPDATE SET action = excluded.action`, g.ID, i+1, a.Action, a.Path))
	}
	return err
}

func (e *edit) exec(query string, args ...any) error {
	_, err := e.tx.ExecContext(e.ctx, query, args...)
	return err
}
