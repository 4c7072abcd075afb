package memory

import (
	"context"
	"fmt"

	"reverie/internal/store"
)

// A member is an active entry that means the same as another one, its head; By names the head.
// Prompts and files show only the head, and a search returns one hit for both. The member stays
// active, because the model that grouped them may be wrong: when the head is no longer shown, the
// member is shown again.

// memberCondition selects members among active entries of a query FROM memory.
const memberCondition = `(successor <> '' AND EXISTS (SELECT 1 ` + fromHead + `))`

// fromHead selects from the head of an active entry of a query FROM memory, if it is a member.
const fromHead = `FROM memory AS head WHERE head.id = memory.successor AND head.state = 'active' AND head.successor = ''
	AND head.scope = memory.scope AND head.conversation = '' AND memory.state = 'active'`

// updateWithMembers is update for e and its members. A person who changes a line means all of them.
// Members of an entry that is merged into another become members of that one.
func (c *change) updateWithMembers(e, after Entry, op string) error {
	members, err := selectEntries(c.ctx, c.tx, `WHERE successor = ? AND state = 'active' AND `+memberCondition+` ORDER BY n`, e.ID)
	if err != nil {
		return err
	}
	if err := c.update(e, after, op); err != nil {
		return err
	}
	for _, m := range members {
		next := m
		switch {
		case after.State != Merged:
			next.State, next.ValidTo = after.State, after.ValidTo
			if after.By != "" {
				next.By = after.By
			}
		case m.ID == after.By:
			next.By = ""
		default:
			next.By = after.By
		}
		if err := c.update(m, next, op); err != nil {
			return err
		}
	}
	return nil
}

// withMembers returns ids with the head and members of each.
func withMembers(ctx context.Context, db store.DBTX, ids []string) ([]string, error) {
	all := append([]string(nil), ids...)
	for _, id := range ids {
		more, err := store.Column[string](ctx, db, `WITH head (id) AS (
				SELECT iif(state = 'active' AND `+memberCondition+`, successor, id) FROM memory WHERE id = ?)
			SELECT id FROM head
			UNION SELECT id FROM memory WHERE state = 'active' AND successor IN (SELECT id FROM head) AND `+memberCondition, id)
		if err != nil {
			return nil, fmt.Errorf("read memory: %w", err)
		}
		all = append(all, more...)
	}
	return sortedUnique(all), nil
}

// LoadOriginalSources sets the Source of merged entries in all to their first stored one. It tells
// whose words they are.
func (s *Store) LoadOriginalSources(ctx context.Context, all []Entry) error {
	for i, e := range all {
		if e.Source != DreamingMerge {
			continue
		}
		from, err := store.Column[Source](ctx, s.db, `SELECT json_extract(after, '$.source') FROM memory_op
			WHERE entry = ? AND op = 'add' AND after <> ''`, e.ID)
		if err != nil {
			return fmt.Errorf("read the journal of memory: %w", err)
		}
		if len(from) > 0 {
			all[i].Source = from[0]
		}
	}
	return nil
}
