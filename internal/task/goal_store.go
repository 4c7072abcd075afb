package task

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/store"
)

// Goals keeps the goals of rooms in the database. It is safe for concurrent use,
// also by several processes. Where an id is asked for, "" is the active goal. What may not be
// read at the place of a call does not exist for it.
type Goals struct {
	db  *sql.DB
	now func() time.Time
}

// Goals returns the goals beside the tasks.
func (s *Store) Goals() *Goals { return &Goals{db: s.db, now: s.now} }

// Create makes a new active goal; the one that was active is paused. A goal that
// is active already under this description is returned as it is, so that saying
// the same again changes nothing but the priority. Priority "" is medium.
func (g *Goals) Create(ctx context.Context, c Caller, description, priority string) (Goal, error) {
	return g.do(ctx, c, "create goal", func(e *edit) error { return e.create(description, priority) })
}

// Update changes what p names of an open goal.
func (g *Goals) Update(ctx context.Context, c Caller, id string, p GoalPatch) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error { return e.update(p) })
}

// Pause sets an active goal aside.
func (g *Goals) Pause(ctx context.Context, c Caller, id string) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error {
		if e.goal.Status != Active {
			return refuse(nil, "why.goal_not_paused", "id", e.goal.ID, "state", e.goal.Status.text())
		}
		return e.status(Paused, "")
	})
}

// Resume makes a paused goal active again, "" being the one that was paused last;
// the one that was active is paused.
func (g *Goals) Resume(ctx context.Context, c Caller, id string) (Goal, error) {
	return g.do(ctx, c, "resume goal", func(e *edit) error {
		where, args := `status = 'paused' ORDER BY updated DESC, `+lastEvent+` DESC LIMIT 1`, []any(nil)
		if bareID(id) != "" {
			where, args = `id = ?`, []any{bareID(id)}
		}
		paused, err := e.find(where, args...)
		switch {
		case errors.Is(err, sql.ErrNoRows) && bareID(id) == "":
			return refuse(ErrNotFound, "why.no_paused_goal")
		case errors.Is(err, sql.ErrNoRows):
			return noGoal(id)
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
func (g *Goals) Complete(ctx context.Context, c Caller, id, summary string) (Goal, error) {
	return g.end(ctx, c, id, Completed, "summary", summary, "The release is out and announced")
}

// Abandon gives an open goal up. reason is required.
func (g *Goals) Abandon(ctx context.Context, c Caller, id, reason string) (Goal, error) {
	return g.end(ctx, c, id, Abandoned, "reason", reason, "It is not needed any more")
}

func (g *Goals) end(ctx context.Context, c Caller, id string, status Status, name, why, example string) (Goal, error) {
	why, err := goalText(name, why, maxSummary, example)
	if err != nil {
		return Goal{}, err
	}
	return g.change(ctx, c, id, func(e *edit) error { return e.status(status, i18n.Text(why)) })
}

// SetCheckpoint sets the state of a checkpoint of an open goal, which is named by
// its description or its number; a description that is new makes a new one.
func (g *Goals) SetCheckpoint(ctx context.Context, c Caller, id, which string, status Step) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error { return e.checkpoint(which, status, false) })
}

// Decide records a decision of an open goal, or locks one that is there; d.N is
// not looked at. What contradicts a locked decision is kept as a conflict in the
// goal's events, changes nothing and is an ErrLocked.
func (g *Goals) Decide(ctx context.Context, c Caller, id string, d Decision) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error { return e.decide(d, false) })
}

// ChangeDecision gives decision n of an open goal other words. A locked one stays
// as it is: that is a conflict as in Decide.
func (g *Goals) ChangeDecision(ctx context.Context, c Caller, id string, n int, d Decision) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error { return e.redecide(n, d) })
}

// Unlock asks for the lock of a decision, named by its words or its number, to be
// taken away. There is no way to: a locked one makes it a conflict as in Decide, and
// one that is not locked, or not there, has nothing to take away.
func (g *Goals) Unlock(ctx context.Context, c Caller, id, which string) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error {
		for _, d := range e.goal.Decisions {
			if d.Locked && (sameness(d.Description) == sameness(which) || strconv.Itoa(d.N) == which) {
				return e.conflict(d, d, true)
			}
		}
		return nil
	})
}

// RecordArtifact notes what became of a file; Type "" is guessed from the path.
func (g *Goals) RecordArtifact(ctx context.Context, c Caller, id string, a Artifact) (Goal, error) {
	return g.change(ctx, c, id, func(e *edit) error { return e.artifact(a) })
}

// edit is one change of a room's goals, within one transaction that holds the
// write lock, so that nothing it read can be otherwise.
type edit struct {
	ctx  context.Context
	tx   *sql.Tx
	by   Caller
	now  time.Time
	goal *Goal // the one that is changed; nil = none yet
}

// do runs f within a transaction. A conflict is kept although it is an error.
func (g *Goals) do(ctx context.Context, c Caller, what string, f func(*edit) error) (Goal, error) {
	if c.Room == "" {
		return Goal{}, fmt.Errorf("%s: no room given", what)
	}
	var goal Goal
	var conflict error
	err := store.InTx(ctx, g.db, func(tx *sql.Tx) error {
		e := &edit{ctx: ctx, tx: tx, by: c, now: g.now()}
		if conflict = f(e); conflict != nil && !errors.Is(conflict, ErrLocked) {
			return conflict
		}
		if e.goal == nil {
			return nil
		}
		err := e.reload()
		goal = *e.goal
		return err
	})
	var b *broken
	switch {
	case errors.As(err, &b):
		return Goal{}, err
	case err != nil:
		return Goal{}, fmt.Errorf("%s: %w", what, err)
	}
	return goal, conflict
}

// change runs f on an open goal.
func (g *Goals) change(ctx context.Context, c Caller, id string, f func(*edit) error) (Goal, error) {
	return g.do(ctx, c, "change goal", func(e *edit) error {
		if err := e.open(id); err != nil {
			return err
		}
		return f(e)
	})
}

// open finds the goal to be changed.
func (e *edit) open(id string) error {
	where, args := activeGoal, []any(nil)
	if bareID(id) != "" {
		where, args = `id = ?`, []any{bareID(id)}
	}
	found, err := e.find(where, args...)
	switch {
	case errors.Is(err, sql.ErrNoRows) && bareID(id) == "":
		return refuse(ErrNotFound, "why.no_active_goal")
	case errors.Is(err, sql.ErrNoRows):
		return noGoal(id)
	case err != nil:
		return err
	case found.Status != Active && found.Status != Paused:
		return breaks("goal #%s cannot be changed, it is %s already (%s): create a new goal instead", found.ID, found.Status, found.Summary)
	}
	e.goal = &found
	return nil
}

func noGoal(id string) error { return refuse(ErrNotFound, "why.goal_unknown", "id", bareID(id)) }

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
		return e.update(GoalPatch{Priority: priority})
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return err
	}
	var open int
	if err := e.tx.QueryRowContext(e.ctx,
		`SELECT count(*) FROM goal WHERE `+readable+` AND status IN ('active', 'paused')`, readableAt(e.by.Place)...).Scan(&open); err != nil {
		return err
	}
	if open >= maxOpenGoals {
		return refuse(nil, "why.goals_many", "count", open)
	}
	if err := e.pauseActive(); err != nil {
		return err
	}
	made := Goal{ID: newGoalID(), Room: e.by.Room, Status: Active}
	label := e.by.Label()
	if err := e.exec(`INSERT INTO goal (id, room, user, description, priority, status, created, updated, integrity, readers)
		VALUES (?, ?, ?, ?, ?, 'active', ?, ?, ?, ?)`,
		made.ID, made.Room, e.by.Person, description, priority, e.now.UnixMilli(), e.now.UnixMilli(),
		label.Integrity, label.Readers); err != nil {
		return err
	}
	e.goal = &made
	return e.event("created", description)
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
	before := e.goal
	e.goal = &active
	err = e.status(Paused, "")
	e.goal = before
	return err
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
	var ended any
	if to == Completed || to == Abandoned {
		ended = e.now.UnixMilli()
	}
	err := e.exec(`UPDATE goal SET status = ?, summary = ?, ended = ?, next = CASE WHEN ? IS NULL THEN next ELSE '' END, updated = ? WHERE id = ?`,
		to, why, ended, ended, e.now.UnixMilli(), e.goal.ID)
	if err != nil {
		return err
	}
	e.goal.Status, e.goal.Summary = to, why
	kind := map[Status]string{Active: "resumed", Paused: "paused", Completed: "completed", Abandoned: "abandoned"}[to]
	return e.event(kind, string(why))
}

func (e *edit) update(p GoalPatch) error {
	if p == (GoalPatch{}) {
		return breaks("nothing to update: give a description, a priority or what is next")
	}
	var err error
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
	err = e.exec(`UPDATE goal SET description = coalesce(nullif(?, ''), description), priority = coalesce(nullif(?, ''), priority),
		next = coalesce(nullif(?, ''), next), updated = ? WHERE id = ?`, p.Description, p.Priority, p.Next, e.now.UnixMilli(), e.goal.ID)
	if err != nil {
		return err
	}
	if p.Description != "" && p.Description != e.goal.Description {
		err = errors.Join(err, e.event("updated", p.Description))
	}
	if p.Priority != "" && p.Priority != e.goal.Priority {
		err = errors.Join(err, e.event("updated", "priority "+p.Priority))
	}
	if p.Next != "" && p.Next != e.goal.Next {
		err = errors.Join(err, e.event("next", p.Next))
	}
	return err
}

func (e *edit) exec(query string, args ...any) error {
	_, err := e.tx.ExecContext(e.ctx, query, args...)
	return err
}

// touch notes that the goal was changed just now.
func (e *edit) touch() error {
	return e.exec(`UPDATE goal SET updated = ? WHERE id = ?`, e.now.UnixMilli(), e.goal.ID)
}

// event adds to what happened to the goal; the oldest give way. A goal with words of the
// caller is trusted no further than the caller.
func (e *edit) event(kind, detail string) error {
	if detail != "" {
		if err := e.exec(`UPDATE goal SET integrity = min(integrity, ?) WHERE id = ?`, e.by.Integrity, e.goal.ID); err != nil {
			return err
		}
	}
	err := e.exec(`INSERT INTO goal_event (goal, at, kind, detail) VALUES (?, ?, ?, ?)`, e.goal.ID, e.now.UnixMilli(), kind, detail)
	if err != nil {
		return err
	}
	return e.exec(`DELETE FROM goal_event WHERE goal = ?1 AND id <= (SELECT id FROM goal_event WHERE goal = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`,
		e.goal.ID, maxEvents)
}

// newGoalID is as good as unique; should it ever be taken, the insert fails.
func newGoalID() string {
	b := make([]byte, 5)
	rand.Read(b) // never fails
	return "goal_" + ids.EncodeToString(b)
}
