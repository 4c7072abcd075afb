package memory

import (
	"context"
	"fmt"

	"reverie/internal/store"
)

// A member is an active entry that another one, its head, says in other words: By names the
// head. Prompts and files show the head for both, and a search finds either, as one hit. The
// member stays active, because a model may be wrong when it says that both mean the same:
// whenever its head is not shown itself, the member is shown again.

// hidden is the condition that an active entry of a query FROM memory is a member.
const hidden = `(successor <> '' AND EXISTS (SELECT 1 FROM memory AS head
	WHERE head.id = memory.successor AND head.state = 'active' AND head.successor = ''
		AND head.scope = memory.scope AND head.conversation = ''))`

// isMember reports whether the active entry id is a member.
func isMember(ctx context.Context, db store.DBTX, id string) (is bool, err error) {
	if err := db.QueryRowContext(ctx, `SELECT `+hidden+` FROM memory WHERE id = ?`, id).Scan(&is); err != nil {
		return false, fmt.Errorf("read memory: %w", err)
	}
	return is, nil
}

// membersOf lists the members of the entry id, the oldest first.
func membersOf(ctx context.Context, db store.DBTX, id string) ([]Entry, error) {
	return entries(ctx, db, `WHERE successor = ? AND state = 'active' AND `+hidden+` ORDER BY n`, id)
}

// setAll is set for e and its members: what a person says of a line holds for all that it
// stands for. Members of an entry that is merged into another become members of that one.
func (c *change) setAll(e, after Entry, op string) error {
	members, err := membersOf(c.ctx, c.tx, e.ID)
	if err != nil {
		return err
	}
	if err := c.set(e, after, op, 0); err != nil {
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
		if err := c.set(m, next, op, 0); err != nil {
			return err
		}
	}
	return nil
}

// withMembers is ids with the entries that mean the same: heads and members of each.
func withMembers(ctx context.Context, db store.DBTX, ids []string) ([]string, error) {
	all := append([]string(nil), ids...)
	for _, id := range ids {
		more, err := store.Column[string](ctx, db, `WITH head (id) AS (
				SELECT iif(state = 'active' AND `+hidden+`, successor, id) FROM memory WHERE id = ?)
			SELECT id FROM head UNION SELECT id FROM memory WHERE state = 'active' AND successor IN (SELECT id FROM head) AND `+hidden, id)
		if err != nil {
			return nil, fmt.Errorf("read memory: %w", err)
		}
		all = append(all, more...)
	}
	return sorted(all), nil
}

// Origins gives those of all in which others were put together the source that each was
// stored with: it says whose words they are.
func (s *Store) Origins(ctx context.Context, all []Entry) error {
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
