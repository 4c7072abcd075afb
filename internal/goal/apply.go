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

// ApplyMarkers applies the markers of a message of a conversation in the caller's room. It is
// idempotent: a message not newer than the last applied one changes nothing. The caller is the person on
// whose behalf the model spoke. refused has a sentence for each marker that could not be applied.
func (g *Store) ApplyMarkers(ctx context.Context, c trust.Caller, conversation string, message int64, markers []Marker,
) (refused []string, err error) {
	_, err = g.inTx(ctx, c, "apply markers", func(e *edit) error {
		done, err := e.tx.ExecContext(ctx, `INSERT INTO goal_cursor (room, message) VALUES (?, ?)
			ON CONFLICT (room) DO UPDATE SET message = excluded.message WHERE message < excluded.message`, conversation, message)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err
		}
		if e.goal, err = e.find(activeGoal); err != nil {
			return err
		}
		lastStepDone, hasNext := false, false
		for _, m := range markers {
			open := e.openSteps()
			err := e.applyMarker(m)
			var b *refusalError
			switch {
			case errors.As(err, &b):
				refused = append(refused, b.Error())
			case err != nil:
				return err
			}
			lastStepDone = lastStepDone || m.Kind == "CHECKPOINT" && e.openSteps() < open
			hasNext = hasNext || m.Kind == "NEXT"
		}
		if e.goal != nil && e.goal.Status == Active && lastStepDone && !hasNext && e.openSteps() == 0 {
			return e.setStatus(Completed, i18n.New("why.all_steps"))
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

// applyMarker applies one marker. Texts too long for the goal are cut; the message keeps them whole.
func (e *edit) applyMarker(m Marker) error {
	if m.Kind == "GOAL" {
		return e.applyGoal(m)
	}
	if e.goal == nil || e.goal.Status != Active {
		return modelRefusal("[%s] %s: no goal is active", m.Kind, m.Text)
	}
	switch m.Kind {
	case "CHECKPOINT":
		return e.setCheckpoint(text.Cut(m.Text, maxCheckpoint), CheckpointStatus(m.State))
	case "DECISION":
		return e.decide(Decision{Description: text.Cut(m.Text, maxDecision), Locked: m.State == "locked"})
	case "ARTIFACT":
		return e.recordArtifact(Artifact{Path: m.Text, Action: m.State})
	}
	return e.setNext(text.Cut(m.Text, maxCheckpoint))
}

// setNext stores the next step; the number of a checkpoint stands for its description.
func (e *edit) setNext(text string) error {
	if m := numberPattern().FindStringSubmatch(text); m != nil {
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

// applyGoal applies a GOAL marker: it ends, resumes or creates a goal. The goal completed last is
// not created again.
func (e *edit) applyGoal(m Marker) error {
	named, err := e.findByDescription(m.Text)
	active, state := e.goal != nil && e.goal.Status == Active, Status(m.State)
	switch {
	case err != nil:
		return err
	case named == nil && state != "":
		return modelRefusal("[GOAL] %s: there is no such goal", m.Text)
	case named == nil, named.Status == Completed && state == "" && active:
		return e.create(text.Cut(m.Text, maxGoal), "")
	case named.Status == Paused && state == "":
		return e.resume(named)
	case state == "", named.Status == state, named.Status == Completed:
		return nil
	case active && named.ID == e.goal.ID:
		return e.setStatus(state, "")
	}
	return e.setOtherStatus(named, state)
}

// findByDescription returns the goal with this description: the active one, a paused one, or the one
// completed last. Otherwise it returns nil.
func (e *edit) findByDescription(description string) (*Goal, error) {
	found, err := store.Column[string](e.ctx, e.tx, `SELECT id FROM goal
		WHERE `+trust.Readable+` AND (status IN ('active', 'paused')
			OR id = (SELECT id FROM goal WHERE `+trust.Readable+` AND status = 'completed' ORDER BY ended DESC LIMIT 1))
		ORDER BY status = 'active' DESC, status = 'paused' DESC, updated DESC`,
		append(e.by.Place.ReadableArgs(), e.by.Place.ReadableArgs()...)...)
	for _, id := range found {
		goal, err := e.find(`id = ?`, id)
		if err != nil || foldText(goal.Description) == foldText(text.Cut(description, maxGoal)) {
			return goal, err
		}
	}
	return nil, err
}

// Move moves the goals of room from, and their marker positions, to room to. If both have an active
// goal for the same readers, the moved one is paused. It is idempotent.
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
