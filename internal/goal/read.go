package goal

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// activeGoal selects the active goal of a place: its own before a shared one.
const activeGoal = `status = 'active' ORDER BY readers = 'shared' LIMIT 1`

// Active returns the active goal at a place; ok is false without one.
func (g *Store) Active(ctx context.Context, at trust.Place) (goal Goal, ok bool, err error) {
	return g.findOne(ctx, at, activeGoal)
}

// ForPrompt returns the goal for prompts: the active one, else the one completed last if it ended after
// since and no newer goal exists.
func (g *Store) ForPrompt(ctx context.Context, at trust.Place, since time.Time) (goal Goal, ok bool, err error) {
	goal, ok, err = g.findOne(ctx, at, `status <> 'paused'
		AND NOT EXISTS (SELECT 1 FROM goal later
			WHERE later.room = goal.room AND later.readers = goal.readers AND later.created > goal.ended)
		ORDER BY status = 'active' DESC, ended DESC LIMIT 1`)
	if err != nil || !ok || goal.Status == Active || goal.Status == Completed && !since.IsZero() && goal.Ended.After(since) {
		return goal, ok, err
	}
	return Goal{}, false, nil
}

// Get returns the goal id in any state, if it is readable at a place.
func (g *Store) Get(ctx context.Context, at trust.Place, id string) (Goal, error) {
	goal, ok, err := g.findOne(ctx, at, `id = ?`, store.NormalizeID(id))
	if err == nil && !ok {
		err = unknownGoal(id)
	}
	return goal, err
}

func (g *Store) findOne(ctx context.Context, at trust.Place, where string, args ...any) (Goal, bool, error) {
	goal, err := findGoal(ctx, g.db, at, where, args...)
	if err != nil || goal == nil {
		return Goal{}, false, store.Wrap(err, "read goal")
	}
	return *goal, true, nil
}

// List returns at most most goals that may be read at a place: active, paused, then ended ones, newest first.
func (g *Store) List(ctx context.Context, at trust.Place, most int) ([]Goal, error) {
	ids, err := store.Column[string](ctx, g.db, `SELECT id FROM goal WHERE `+trust.Readable+`
		ORDER BY CASE status WHEN 'active' THEN 0 WHEN 'paused' THEN 1 ELSE 2 END, updated DESC LIMIT ?`,
		append(at.ReadableArgs(), most)...)
	if err != nil {
		return nil, fmt.Errorf("list goals: %w", err)
	}
	goals := make([]Goal, 0, len(ids))
	for _, id := range ids {
		goal, err := g.Get(ctx, at, id)
		if err != nil {
			return nil, err
		}
		goals = append(goals, goal)
	}
	return goals, nil
}

func (e *edit) find(where string, args ...any) (*Goal, error) {
	return findGoal(e.ctx, e.tx, e.by.Place, where, args...)
}

// findGoal reads one goal with all its parts; nil = it does not exist. Every query requires that it may be
// read at the place.
func findGoal(ctx context.Context, db store.DBTX, at trust.Place, where string, args ...any) (*Goal, error) {
	g := &Goal{}
	var created, updated int64
	var ended sql.NullInt64
	err := db.QueryRowContext(ctx, `SELECT id, room, user, description, priority, status,
			summary, next, created, updated, ended, integrity, readers
		FROM goal WHERE `+trust.Readable+` AND `+where, append(at.ReadableArgs(), args...)...).Scan(
		&g.ID, &g.Room, &g.User, &g.Description, &g.Priority, &g.Status,
		&g.Summary, &g.Next, &created, &updated, &ended, &g.Label.Integrity, &g.Label.Readers)
	if found, err := store.Found(err); !found {
		return nil, err
	}
	g.Created, g.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	if ended.Valid {
		g.Ended = time.UnixMilli(ended.Int64).UTC()
	}
	g.Checkpoints, err = store.List(ctx, db, func(row store.Row) (c Checkpoint, err error) {
		var changed int64
		err = row.Scan(&c.N, &c.Description, &c.Status, &changed)
		c.Changed = time.UnixMilli(changed).UTC()
		return c, err
	}, `SELECT n, description, status, changed FROM goal_checkpoint WHERE goal = ? ORDER BY n`, g.ID)
	if err != nil {
		return g, err
	}
	g.Decisions, err = store.List(ctx, db, func(row store.Row) (d Decision, err error) {
		err = row.Scan(&d.N, &d.Description, &d.Rationale, &d.Locked)
		return d, err
	}, `SELECT n, description, rationale, locked FROM goal_decision WHERE goal = ? ORDER BY n`, g.ID)
	if err != nil {
		return g, err
	}
	g.Artifacts, err = store.List(ctx, db, func(row store.Row) (a Artifact, err error) {
		err = row.Scan(&a.Action, &a.Path)
		return a, err
	}, `SELECT action, path FROM goal_artifact WHERE goal = ? ORDER BY n`, g.ID)
	return g, err
}
