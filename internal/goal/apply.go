package goal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// Heard returns up to which message of a conversation markers have been taken in: of a
// room's own, which goes by the room's name, or of a thread in it.
func (g *Store) Heard(ctx context.Context, conversation string) (int64, error) {
	message, err := store.Value[int64](ctx, g.db, `SELECT message FROM goal_cursor WHERE room = ?`, conversation)
	return message, store.Wrap(err, "read markers taken in")
}

// ApplyIn takes in what the model said of its goal in a message of a conversation in the caller's
// room, once: a message that is not newer than the last one of that conversation changes nothing.
// The caller is on whose behalf the model spoke. What cannot be done is told in refused, a sentence each.
func (g *Store) ApplyIn(ctx context.Context, c trust.Caller, conversation string, message int64, markers []Marker,
) (refused []string, err error) {
	_, err = g.do(ctx, c, "take in markers", func(e *edit) error {
		done, err := e.tx.ExecContext(ctx, `INSERT INTO goal_cursor (room, message) VALUES (?, ?)
			ON CONFLICT (room) DO UPDATE SET message = excluded.message WHERE message < excluded.message`, conversation, message)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err
		}
		switch active, err := e.find(activeGoal); {
		case err == nil:
			e.goal = &active
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		closes, goesOn := false, false
		for _, m := range markers {
			open := e.openSteps()
			err := e.apply(m)
			var b *broken
			switch {
			case errors.As(err, &b):
				refused = append(refused, b.Error())
			case err != nil:
				return err
			}
			closes = closes || m.Kind == "CHECKPOINT" && e.openSteps() < open
			goesOn = goesOn || m.Kind == "NEXT"
		}
		if e.goal != nil && e.goal.Status == Active && closes && !goesOn && e.openSteps() == 0 {
			return e.status(Completed, i18n.New("why.all_steps"))
		}
		return nil
	})
	return refused, err
}

// openSteps counts the checkpoints that are not done.
func (e *edit) openSteps() int {
	if e.goal == nil {
		return 0
	}
	p := e.goal.Progress()
	return p.Total - p.Completed
}

// apply does what one marker says. Texts that are too long for the goal are cut:
// the message itself keeps them whole.
func (e *edit) apply(m Marker) error {
	if m.Kind == "GOAL" {
		return e.applyGoal(m)
	}
	if e.goal == nil || e.goal.Status != Active {
		return breaks("[%s] %s: no goal is active", m.Kind, m.Text)
	}
	switch m.Kind {
	case "CHECKPOINT":
		return e.checkpoint(text.Cut(m.Text, maxCheckpoint), m.Status, m.Implied)
	case "DECISION":
		return e.decide(Decision{Description: text.Cut(m.Text, maxDecision), Locked: m.Locked}, m.Unlocked)
	case "ARTIFACT":
		return e.artifact(Artifact{Path: m.Text, Action: m.Action})
	}
	return e.next(text.Cut(m.Text, maxCheckpoint))
}

// next notes the step that comes now: for a known number, its description.
func (e *edit) next(text string) error {
	if m := numberForm.FindStringSubmatch(text); m != nil {
		for _, c := range e.goal.Checkpoints {
			if fmt.Sprint(c.N) == strings.TrimLeft(m[1], "0") {
				text = c.Description
			}
		}
	}
	if text == e.goal.Next {
		return nil
	}
	return e.update(Patch{Next: text})
}

// applyGoal takes up the goal that a marker names: the active one, a paused one, or
// a new one. The goal that was completed last is not begun anew for being named.
func (e *edit) applyGoal(m Marker) error {
	description := text.Cut(m.Text, maxGoal)
	active := e.goal != nil && e.goal.Status == Active
	if active && sameness(e.goal.Description) == sameness(description) {
		if m.Ended == "" {
			return nil
		}
		return e.status(m.Ended, "")
	}
	known, err := e.named(description)
	switch {
	case err != nil:
		return err
	case m.Ended != "":
		switch {
		case known == nil:
			return breaks("[GOAL] %s: there is no such goal", m.Text)
		case known.Status == m.Ended || known.Status == Completed:
			return nil
		}
		return e.endOther(known, m.Ended)
	case known != nil && known.Status == Paused:
		return e.resume(*known)
	case known != nil && !active:
		return nil
	}
	return e.create(description, "")
}

// named finds the paused goal of this description, or the one that was completed
// last if it has it; nil if there is neither.
func (e *edit) named(text string) (*Goal, error) {
	found, err := store.Column[string](e.ctx, e.tx, `SELECT id FROM goal WHERE `+trust.Readable+` AND (status = 'paused' OR id =
		(SELECT id FROM goal WHERE `+trust.Readable+` AND status = 'completed' ORDER BY ended DESC LIMIT 1))
		ORDER BY status = 'paused' DESC, updated DESC`,
		append(e.by.Place.ReadableArgs(), e.by.Place.ReadableArgs()...)...)
	if err != nil {
		return nil, err
	}
	for _, id := range found {
		goal, err := e.find(`id = ?`, id)
		if err != nil {
			return nil, err
		}
		if sameness(goal.Description) == sameness(text) {
			return &goal, nil
		}
	}
	return nil, nil
}

// Move gives the goals of the room from, and what was heard of them, to the room
// to. A goal that is active there for the same readers stays so, and the one that comes is
// paused. It can be repeated.
func (g *Store) Move(ctx context.Context, from, to string) error {
	if from == to {
		return nil
	}
	err := store.InTx(ctx, g.db, func(tx *sql.Tx) error {
		for _, query := range []string{
			`UPDATE goal SET ` + trust.MovedReaders + ` WHERE room = ?1`,
			`UPDATE goal SET status = 'paused' WHERE room = ?1 AND status = 'active'
			AND EXISTS (SELECT 1 FROM goal AS o WHERE o.room = ?2 AND o.readers = goal.readers AND o.status = 'active')`,
			`UPDATE goal SET room = ?2 WHERE room = ?1`,
			`INSERT INTO goal_cursor (room, message) SELECT ?2, message FROM goal_cursor WHERE room = ?1
			ON CONFLICT (room) DO UPDATE SET message = max(message, excluded.message)`,
		} {
			if _, err := tx.ExecContext(ctx, query, from, to); err != nil {
				return err
			}
		}
		return nil
	})
	return store.Wrap(err, "move goals")
}
