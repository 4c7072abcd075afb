package memory

import (
	"context"
	"slices"
	"strings"

	"reverie/internal/store"
	"reverie/internal/text"
)

// addSource records that known was also said in another message. So it survives the redaction of
// the one it was learned from.
func (c *change) addSource(known *Entry, said Entry) error {
	if said.Event == "" || said.Event == known.Event {
		return nil
	}
	insert := `INSERT INTO memory_source (entry, event, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
	return store.Exec(c.ctx, c.tx, insert, known.ID, said.Event, c.now.UnixMilli())
}

// reassignSource moves entries learned from the message event to another message that said the
// same. Their quotes of event are deleted. keep, if not nil, selects entries that event still
// supports; they stay as they are.
func (s *Store) reassignSource(ctx context.Context, event string, keep func(Entry) bool) error {
	_, err := s.write(ctx, "redaction", nil, func(c *change) error {
		if keep == nil {
			if _, err := c.tx.ExecContext(ctx, `DELETE FROM memory_source WHERE event = ?`, event); err != nil {
				return err
			}
		}
		both, err := selectEntries(ctx, c.tx, `WHERE event = ?1 AND state <> 'forgotten'
			AND id IN (SELECT entry FROM memory_source WHERE event <> ?1)`, event)
		if err != nil {
			return err
		}
		for _, e := range both {
			if keep != nil && keep(e) {
				continue
			}
			var n int64
			err := c.tx.QueryRowContext(ctx, `UPDATE memory SET quote = '', rev = rev + 1,
				event = (SELECT event FROM memory_source WHERE entry = ?1 AND event <> ?2 ORDER BY at, event LIMIT 1)
				WHERE id = ?1 RETURNING n`, e.ID, event).Scan(&n)
			if err != nil {
				return err
			}
			c.touch(n, e.Scope)
		}
		return store.Exec(ctx, c.tx, `DELETE FROM memory_source WHERE event = (SELECT event FROM memory WHERE id = entry)`)
	})
	return store.Wrap(err, "redact a message")
}

// ApplyEdit forgets what was learned from the message event but is not in now. now is its new text.
// Entries that another message supports stay. Unlike after a redaction, the same facts, and others
// from this message, may be learned again.
func (s *Store) ApplyEdit(ctx context.Context, a Access, event, now string) error {
	if event == "" {
		return nil
	}
	supported := func(e Entry) bool {
		words := e.Quote
		if strings.TrimSpace(words) == "" {
			words = e.Text
		}
		return strings.Contains(text.PlainWords(now), text.PlainWords(words))
	}
	if err := s.reassignSource(ctx, event, supported); err != nil {
		return err
	}
	learned, err := selectEntries(ctx, s.db, `WHERE event = ? AND state <> 'forgotten'`, event)
	if err != nil {
		return err
	}
	learned = slices.DeleteFunc(learned, supported)
	if len(learned) == 0 {
		return nil
	}
	ids := store.Map(learned, func(e Entry) string { return e.ID })
	if _, err := s.forget(ctx, a, func(store.DBTX) ([]string, error) { return ids, nil }); err != nil {
		return err
	}
	_, err = s.write(ctx, a.Actor, nil, func(c *change) error {
		for _, e := range learned {
			if err := c.removeTombstone(e.Scope, e.Text); err != nil {
				return err
			}
			if _, err := c.tx.ExecContext(ctx, `UPDATE memory SET event = '' WHERE id = ? AND state = 'forgotten'`, e.ID); err != nil {
				return err
			}
		}
		return nil
	})
	return store.Wrap(err, "forget what an edit removed")
}

// ResetTurns removes the messages events, and the answers to them, like RedactTurn. Unlike that, it
// lets new texts be indexed under the same ids. It returns the forms in which they may be quoted.
func (s *Store) ResetTurns(ctx context.Context, events ...string) (quotes []string, err error) {
	for _, event := range events {
		some, err := s.RedactTurn(ctx, event)
		if err != nil {
			return nil, err
		}
		quotes = append(quotes, some...)
	}
	_, err = s.write(ctx, "redaction", nil, func(c *change) error {
		for _, event := range events {
			if err := s.index.ClearRedaction(ctx, c.tx, event); err != nil {
				return err
			}
		}
		return nil
	})
	return quotes, store.Wrap(err, "reset messages")
}
