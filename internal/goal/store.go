package goal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Store keeps goals in the database. It is safe for concurrent use, also by several processes. An empty ID
// means the active goal. Goals that may not be read at the caller's place do not exist for it.
type Store struct {
	db  *store.DB
	now func() time.Time
}

// NewStore returns a Store on db, which must have this package's tables.
func NewStore(db *store.DB, now func() time.Time) *Store { return &Store{db: db, now: now} }

// Create creates an active goal and pauses the previous one. An active goal with the same
// description is returned instead, with only its priority changed. Priority "" is medium.
func (g *Store) Create(ctx context.Context, c trust.Caller, description, priority string) (Goal, error) {
	return g.inTx(ctx, c, "create goal", func(e *edit) error { return e.create(description, priority) })
}

// Update applies p to an open goal.
func (g *Store) Update(ctx context.Context, c trust.Caller, id string, p Patch) (Goal, error) {
	return g.editOpen(ctx, c, id, func(e *edit) error { return e.update(p) })
}

// Pause pauses an active goal.
func (g *Store) Pause(ctx context.Context, c trust.Caller, id string) (Goal, error) {
	return g.editOpen(ctx, c, id, func(e *edit) error {
		if e.goal.Status != Active {
			return refuse(nil, "why.goal_not_paused", "id", e.goal.ID, "state", e.goal.Status.text())
		}
		return e.setStatus(Paused, "")
	})
}

// Resume reactivates a paused goal and pauses the active one; "" means the one paused last.
func (g *Store) Resume(ctx context.Context, c trust.Caller, id string) (Goal, error) {
	return g.inTx(ctx, c, "resume goal", func(e *edit) error {
		paused, err := e.goalToEdit(id, `status = 'paused' ORDER BY updated DESC LIMIT 1`, "why.no_paused_goal")
		switch {
		case err != nil:
			return err
		case paused.Status == Active: // said twice
			e.goal = paused
			return nil
		case paused.Status != Paused:
			return refuse(nil, "why.goal_not_resumed", "id", paused.ID, "state", paused.Status.text())
		}
		return e.resume(paused)
	})
}

// Complete ends an open goal. summary says what was achieved and is required.
func (g *Store) Complete(ctx context.Context, c trust.Caller, id, summary string) (Goal, error) {
	return g.endGoal(ctx, c, id, Completed, "summary", summary, "The release is out and announced")
}

// Abandon ends an open goal without success. reason is required.
func (g *Store) Abandon(ctx context.Context, c trust.Caller, id, reason string) (Goal, error) {
	return g.endGoal(ctx, c, id, Abandoned, "reason", reason, "It is not needed any more")
}

func (g *Store) endGoal(ctx context.Context, c trust.Caller, id string, status Status, name, why, example string) (Goal, error) {
	why, err := checkText(name, why, maxSummary, example)
	if err != nil {
		return Goal{}, err
	}
	return g.editOpen(ctx, c, id, func(e *edit) error { return e.setStatus(status, i18n.Text(why)) })
}

// SetCheckpoint sets the state of a checkpoint of an open goal. which is its description or number;
// a new description adds one. Status "" is Pending for a new one, and changes no other.
func (g *Store) SetCheckpoint(ctx context.Context, c trust.Caller, id, which string, status CheckpointStatus) (Goal, error) {
	return g.editOpen(ctx, c, id, func(e *edit) error { return e.setCheckpoint(which, status) })
}

// Decide records a decision of an open goal, or locks an existing one. With d.N it replaces that one;
// empty fields stay as they are. Contradicting or changing a locked decision is an error.
func (g *Store) Decide(ctx context.Context, c trust.Caller, id string, d Decision) (Goal, error) {
	return g.editOpen(ctx, c, id, func(e *edit) error { return e.decide(d) })
}

// RecordArtifact records what happened to a file.
func (g *Store) RecordArtifact(ctx context.Context, c trust.Caller, id string, a Artifact) (Goal, error) {
	return g.editOpen(ctx, c, id, func(e *edit) error { return e.recordArtifact(a) })
}

// edit is one change of a room's goals in a transaction. The transaction holds the write lock.
type edit struct {
	ctx  context.Context
	tx   *sql.Tx
	by   trust.Caller
	now  time.Time
	goal *Goal // the goal being changed; nil = none yet
}

// inTx runs f in a transaction and returns the goal it changed.
func (g *Store) inTx(ctx context.Context, c trust.Caller, what string, f func(*edit) error) (Goal, error) {
	var goal Goal
	err := store.InTx(ctx, g.db, func(tx *sql.Tx) error {
		e := &edit{ctx: ctx, tx: tx, by: c, now: g.now().UTC().Truncate(time.Millisecond)}
		err := f(e)
		if err == nil && e.goal != nil {
			goal = *e.goal
		}
		return err
	})
	var b *refusalError
	switch {
	case errors.As(err, &b):
		return Goal{}, err
	case err != nil:
		return Goal{}, fmt.Errorf("%s: %w", what, err)
	}
	return goal, nil
}

func (g *Store) editOpen(ctx context.Context, c trust.Caller, id string, f func(*edit) error) (Goal, error) {
	return g.inTx(ctx, c, "change goal", func(e *edit) error {
		found, err := e.goalToEdit(id, activeGoal, "why.no_active_goal")
		if err != nil {
			return err
		}
		if found.Status != Active && found.Status != Paused {
			return modelRefusal("goal #%s cannot be changed, it is %s already (%s): create a new goal instead",
				found.ID, found.Status, found.Summary)
		}
		e.goal = found
		return f(e)
	})
}

// goalToEdit returns the goal id, or without one the goal that matches where. noneKey is the
// message if no goal matches.
func (e *edit) goalToEdit(id, where, noneKey string) (*Goal, error) {
	missing, args := refuse(errNotFound, noneKey), []any(nil)
	if id = store.NormalizeID(id); id != "" {
		missing, where, args = unknownGoal(id), `id = ?`, []any{id}
	}
	goal, err := e.find(where, args...)
	if err == nil && goal == nil {
		err = missing
	}
	return goal, err
}

func unknownGoal(id string) error {
	return refuse(errNotFound, "why.goal_unknown", "id", store.NormalizeID(id))
}

func (e *edit) create(description, priority string) error {
	description, err := checkText("description", description, maxGoal, "Ship the release by Friday")
	if err != nil {
		return err
	}
	given := priority != ""
	if priority, err = checkPriority(priority); err != nil {
		return err
	}
	active, err := e.find(activeGoal)
	if err != nil {
		return err
	}
	if active != nil && foldText(active.Description) == foldText(description) {
		e.goal = active
		if !given {
			return nil
		}
		return e.update(Patch{Priority: priority})
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
	return e.saveChange(true)
}

func (e *edit) pauseActive() error {
	active, err := e.find(activeGoal)
	if err != nil || active == nil {
		return err
	}
	return e.setOtherStatus(active, Paused)
}

// setOtherStatus sets the state of a goal other than e.goal.
func (e *edit) setOtherStatus(goal *Goal, to Status) error {
	other := *e
	other.goal = goal
	return other.setStatus(to, "")
}

func (e *edit) resume(paused *Goal) error {
	if err := e.pauseActive(); err != nil {
		return err
	}
	e.goal = paused
	return e.setStatus(Active, "")
}

// setStatus sets the state of the goal; why is its summary when it ends.
func (e *edit) setStatus(to Status, why i18n.Text) error {
	e.goal.Status, e.goal.Summary, e.goal.Ended = to, why, time.Time{}
	if to == Completed || to == Abandoned {
		e.goal.Next, e.goal.Ended = "", e.now
	}
	return e.saveChange(why != "")
}

func (e *edit) update(p Patch) (err error) {
	if p == (Patch{}) {
		return modelRefusal("nothing to update: give a description, a priority or what is next")
	}
	if p.Description != "" {
		if p.Description, err = checkText("description", p.Description, maxGoal, "Ship the release by Friday"); err != nil {
			return err
		}
	}
	if p.Priority != "" {
		if p.Priority, err = checkPriority(p.Priority); err != nil {
			return err
		}
	}
	if p.Next != "" {
		if p.Next, err = checkText("next", p.Next, maxCheckpoint, "Write the announcement"); err != nil {
			return err
		}
	}
	before := *e.goal
	e.goal.Description, e.goal.Priority = cmp.Or(p.Description, before.Description), cmp.Or(p.Priority, before.Priority)
	e.goal.Next = cmp.Or(p.Next, before.Next)
	if e.goal.Description == before.Description && e.goal.Priority == before.Priority && e.goal.Next == before.Next {
		return nil
	}
	return e.saveChange(true)
}

// saveChange stores the goal and its parts. If the caller's words went into it, the caller's integrity
// caps its own. A locked decision is left as it is.
func (e *edit) saveChange(words bool) error {
	g := e.goal
	if words {
		g.Label.Integrity = min(g.Label.Integrity, e.by.Integrity)
	}
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
	return store.Exec(e.ctx, e.tx, query, args...)
}
