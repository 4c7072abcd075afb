package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"reverie/internal/store"
	"reverie/internal/text"
)

// byDream is the actor of dreaming's changes.
const byDream = "dreaming"

// StepKind is the kind of a Step. No kind changes a text or removes a row.
type StepKind string

// The kinds of steps.
const (
	MergeStep     StepKind = "merge"     // By includes it and replaces it
	SupersedeStep StepKind = "supersede" // By corrects it, from By.Since() on
	ArchiveStep   StepKind = "archive"   // it is no longer needed, but can be searched for
	GroupStep     StepKind = "group"     // it becomes a member of By, which means the same
)

// Step is one change of a plan. Rev and ByRev are the revisions that it was planned for: if an
// entry has changed since, the step is skipped.
type Step struct {
	Kind  StepKind `json:"kind"`
	ID    string   `json:"id"`
	Rev   int      `json:"rev"`
	By    string   `json:"by,omitempty"`
	ByRev int      `json:"by_rev,omitempty"`
}

// Skipped is a step that was not done, with the reason.
type Skipped struct {
	Step
	Reason string `json:"why"`
}

// Applied is the result of Apply.
type Applied struct {
	Batch   string    `json:"batch"`
	Done    []Step    `json:"done"`
	Skipped []Skipped `json:"left"`
}

// Apply does steps in order, in one transaction. They become the batch of that name, which must be
// new. Each step is checked again first; one that does not fit the current entries is skipped.
// also, unless nil, is called at the end of the transaction, so that its writes and the steps
// commit together.
func (s *Store) Apply(
	ctx context.Context, batch string, steps []Step, also func(context.Context, *sql.Tx, Applied) error,
) (Applied, error) {
	if batch == "" {
		return Applied{}, errors.New("memory: a plan needs a name")
	}
	ids := store.Map(steps, func(step Step) string { return step.ID })
	scopes, err := scopesOf(ctx, s.db, `(SELECT value FROM json_each(?))`, store.Array(ids))
	if err != nil {
		return Applied{}, err
	}
	var done Applied
	_, err = s.write(ctx, byDream, scopes, func(c *change) error {
		done, c.batch = Applied{Batch: batch}, batch
		var there int
		if err := c.tx.QueryRowContext(ctx, `SELECT count(*) FROM memory_op WHERE batch = ?`, batch).Scan(&there); err != nil || there > 0 {
			return errors.Join(err, fmt.Errorf("memory: %d operations are called %s already", there, batch))
		}
		for _, step := range steps {
			why, err := c.applyStep(step)
			switch {
			case err != nil:
				return err
			case why != "":
				done.Skipped = append(done.Skipped, Skipped{step, why})
			default:
				done.Done = append(done.Done, step)
			}
			s.fault("step")
		}
		if also == nil {
			return nil
		}
		return also(ctx, c.tx, done)
	})
	if err != nil {
		return Applied{}, err
	}
	return done, nil
}

// applyStep does s, or returns the reason why not.
func (c *change) applyStep(s Step) (why string, err error) {
	e, why, err := c.readPlanned(s.ID, s.Rev)
	if why != "" || err != nil {
		return why, err
	}
	var by Entry
	if s.Kind != ArchiveStep {
		if by, why, err = c.readPlanned(s.By, s.ByRev); why != "" || err != nil {
			return why, err
		}
		if by.ID == e.ID || by.Scope != e.Scope || by.Conversation != e.Conversation {
			return "the two do not belong together", nil
		}
	}
	if s.Kind != ArchiveStep && by.Integrity < e.Integrity {
		return "the other is trusted less", nil
	}
	switch s.Kind {
	case MergeStep:
		return c.mergeInto(e, by)
	case SupersedeStep:
		if e.Pinned || !by.Since().After(e.Since()) {
			return "it is pinned, or not older", nil
		}
		return "", c.update(e, supersededBy(e, by), "supersede")
	case ArchiveStep:
		own, err := statedByPerson(c.ctx, c.tx, e.ID)
		if err != nil || e.Pinned || own {
			return "a person wanted it to be known", err
		}
		after := e
		after.State = Archived
		return "", c.update(e, after, "archive")
	case GroupStep:
		return c.group(e, by)
	}
	return "", fmt.Errorf("memory: %q is no step of a plan", s.Kind)
}

// ResolveConflict supersedes drop by keep, because a person of a.Integrity decided so now. Dates
// and sources do not matter; Undo reverts it. If the two are not both active in scope, it returns
// ErrNotFound. also is called as by Apply. It returns both entries as they were before.
func (s *Store) ResolveConflict(
	ctx context.Context, a Access, scope Scope, keep, drop string, also func(context.Context, *sql.Tx) error,
) (kept, other Entry, err error) {
	_, err = s.write(ctx, a.Actor, []Scope{scope}, func(c *change) error {
		for _, e := range []struct {
			id string
			to *Entry
		}{{keep, &kept}, {drop, &other}} {
			var err error
			if *e.to, err = entryByID(ctx, c.tx, e.id); err != nil {
				return err
			}
			if e.to.State != Active || e.to.Scope != scope {
				return ErrNotFound
			}
		}
		if err := c.updateWithMembers(other, supersededBy(other, kept), "supersede"); err != nil {
			return err
		}
		now := kept
		now.Integrity = max(kept.Integrity, a.Integrity)
		if c.now.After(kept.ObservedAt) {
			now.ObservedAt = c.now
		}
		if now != kept {
			if err := c.update(kept, now, "note"); err != nil {
				return err
			}
		}
		return also(ctx, c.tx)
	})
	return kept, other, err
}

// supersededBy returns e as superseded by next. It ends when next began, or, if next is older, when
// e itself began.
func supersededBy(e, next Entry) Entry {
	e.State, e.By = Superseded, next.ID
	if !e.ValidTo.IsZero() {
		return e
	}
	if e.ValidTo = e.Since(); next.Since().After(e.Since()) {
		e.ValidTo = next.Since()
	}
	return e
}

// statedByPerson reports whether a person stated the entry id, or a part merged into it. To state
// means to ask for remembering it or to write it into a file.
func statedByPerson(ctx context.Context, db store.DBTX, id string) (own bool, err error) {
	err = db.QueryRowContext(ctx, `WITH RECURSIVE part (id) AS (
			VALUES (?) UNION SELECT m.id FROM part JOIN memory AS m ON m.successor = part.id AND m.state = 'merged')
		SELECT EXISTS (SELECT 1 FROM part JOIN memory_op ON entry = part.id AND op = 'add'
			WHERE iif(after = '', '', json_extract(after, '$.source')) IN ('user_explicit', 'file'))`, id).Scan(&own)
	return own, store.Wrap(err, "read the journal of memory")
}

// readPlanned reads an active entry at the planned revision. The revision that an earlier step gave
// it is right too. Else it returns the reason to skip the step.
func (c *change) readPlanned(id string, rev int) (Entry, string, error) {
	e, err := entryByID(c.ctx, c.tx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return Entry{}, "it is not there", nil
	case err != nil:
		return Entry{}, "", err
	case e.State != Active:
		return Entry{}, "it does not count any more", nil
	case e.Rev != rev && e.Rev != c.revs[id]:
		return Entry{}, "it was changed meanwhile", nil
	}
	return e, "", nil
}

func (c *change) mergeInto(e, by Entry) (string, error) {
	if e.Pinned && !by.Pinned {
		return "it is pinned", nil
	}
	if lost := text.LostProtected(e.Text, by.Text); len(lost) > 0 {
		return "the other does not say all of it", nil
	}
	after := e
	after.State, after.By = Merged, by.ID
	if err := c.updateWithMembers(e, after, "merge"); err != nil {
		return "", err
	}
	by, err := entryByID(c.ctx, c.tx, by.ID) // it changed if it was a member of e
	if err != nil {
		return "", err
	}
	next := by
	next.Source = DreamingMerge
	next.Hits += e.Hits
	if e.LastHit.After(next.LastHit) {
		next.LastHit = e.LastHit
	}
	if e.Integrity >= by.Integrity && e.ObservedAt.After(next.ObservedAt) {
		next.ObservedAt = e.ObservedAt
	}
	if next == by {
		return "", nil
	}
	return "", c.update(by, next, "note")
}

func (c *change) group(e, by Entry) (string, error) {
	if e.Pinned && !by.Pinned {
		return "it is pinned", nil
	}
	if len(text.Missing(e.Text, by.Text)) > 0 {
		return "the other does not say all of it", nil
	}
	hidden, err := store.Value[bool](c.ctx, c.tx, `SELECT `+memberCondition+` FROM memory WHERE id = ?`, by.ID)
	if err != nil || hidden {
		return "the other does not stand for itself", err
	}
	after := e
	after.By = by.ID
	if err := c.update(e, after, "note"); err != nil {
		return "", err
	}
	next := by
	next.By, next.Source = "", DreamingMerge
	if next == by {
		return "", nil
	}
	return "", c.update(by, next, "note")
}

// Since is the time from which e is known to hold: ValidFrom, or else ObservedAt.
func (e Entry) Since() time.Time {
	if !e.ValidFrom.IsZero() {
		return e.ValidFrom
	}
	return e.ObservedAt
}
