package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/store"
	"reverie/internal/text"
)

// again notes that what known says was said once more, in another message: when the one
// it was learned from is taken back, it stays.
func (c *change) again(known *Entry, said Entry) error {
	if said.Event == "" || said.Event == known.Event {
		return nil
	}
	insert := `INSERT INTO memory_source (entry, event, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
	_, err := c.tx.ExecContext(c.ctx, insert, known.ID, said.Event, c.now.UnixMilli())
	if err != nil {
		return fmt.Errorf("note that it was said again: %w", err)
	}
	return nil
}

// disown parts the entries that were learned from the message event, and said in another
// one too, from it: they count from then on as learned from the other one, and what they
// quote of the message is gone. Entries that only said the same as it lose nothing. keep,
// if not nil, says which entries the message still stands for; those are left alone.
func (s *Store) disown(ctx context.Context, event string, keep func(Entry) bool) error {
	_, err := s.write(ctx, "redaction", nil, func(c *change) error {
		if keep == nil {
			if _, err := c.tx.ExecContext(ctx, `DELETE FROM memory_source WHERE event = ?`, event); err != nil {
				return err
			}
		}
		both, err := entries(ctx, c.tx, `WHERE event = ?1 AND state <> 'forgotten'
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
		_, err = c.tx.ExecContext(ctx, `DELETE FROM memory_source WHERE event = (SELECT event FROM memory WHERE id = entry)`)
		return err
	})
	if err != nil {
		return fmt.Errorf("take a message back: %w", err)
	}
	return nil
}

// Reword forgets what was learned from the message event and does not stand in now,
// its new words, any more. What another message says too stays. Unlike after a redaction,
// the same may be learned again, and more from this message.
func (s *Store) Reword(ctx context.Context, a Access, event, now string) error {
	if event == "" {
		return nil
	}
	stands := func(e Entry) bool {
		words := e.Quote
		if strings.TrimSpace(words) == "" {
			words = e.Text
		}
		return strings.Contains(text.PlainWords(now), text.PlainWords(words))
	}
	if err := s.disown(ctx, event, stands); err != nil {
		return err
	}
	learned, err := entries(ctx, s.db, `WHERE event = ? AND state <> 'forgotten'`, event)
	if err != nil {
		return err
	}
	learned = slices.DeleteFunc(learned, stands)
	if len(learned) == 0 {
		return nil
	}
	ids := make([]string, len(learned))
	for i, e := range learned {
		ids[i] = e.ID
	}
	if _, err := s.forget(ctx, a, func(store.DBTX) ([]string, error) { return ids, nil }); err != nil {
		return err
	}
	_, err = s.write(ctx, a.Actor, nil, func(c *change) error {
		for _, e := range learned {
			if err := c.unforget(e.Scope, e.Text); err != nil {
				return err
			}
			if _, err := c.tx.ExecContext(ctx, `UPDATE memory SET event = '' WHERE id = ? AND state = 'forgotten'`, e.ID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("forget what was edited away: %w", err)
	}
	return nil
}

// Unsay takes the messages events back like Unhear, with the answers to them, so that
// other words can be heard under the same names. It returns how they may be quoted.
func (s *Store) Unsay(ctx context.Context, events ...string) (quotes []string, err error) {
	for _, event := range events {
		some, err := s.Unhear(ctx, event)
		if err != nil {
			return nil, err
		}
		quotes = append(quotes, some...)
	}
	_, err = s.write(ctx, "redaction", nil, func(c *change) error {
		for _, event := range events {
			if err := s.index.Unknow(ctx, c.tx, event); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("take messages back: %w", err)
	}
	return quotes, nil
}
