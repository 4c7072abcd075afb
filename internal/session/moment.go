package session

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"reverie/internal/history"
	"reverie/internal/store"
)

// A commit waits for the disk, and all rooms write one after the other. So what belongs to
// one moment of a turn is one transaction: what is heard, what is sent to the model, and
// what is answered.

// storing stores something in a transaction of somebody else's.
type storing func(ctx context.Context, tx *sql.Tx) error

// together stores what f stores, and what has waited for the next transaction. f may be nil.
func (s *Session) together(ctx context.Context, f storing) error {
	if f == nil && len(s.along) == 0 {
		return nil
	}
	err := store.InTx(ctx, s.cfg.DB, func(tx *sql.Tx) error {
		for _, f := range append(s.along[:len(s.along):len(s.along)], f) {
			if f == nil {
				continue
			}
			if err := f(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.along = nil
	}
	return err
}

// concluder is a Transport that stores an answer together with what else is true from then on.
type concluder interface {
	// Conclude is Say of the final message m and Handled of the messages done, in one
	// transaction with what also stores: all of it or nothing.
	Conclude(ctx context.Context, room string, m Outgoing, done []string, also func(context.Context, *sql.Tx) error) error
}

// conclude stores the answer to in and says it. The messages done need no more work then.
func (s *Session) conclude(ctx context.Context, in Inbound, answer history.Message, done []string) error {
	markers, _ := markersOf(answer.Text)
	m := s.answerTo(ctx, in, answer.Text)
	if t, ok := s.cfg.Transport.(concluder); ok && len(markers) == 0 && strings.TrimSpace(m.Text) != "" {
		stored := answer
		err := t.Conclude(ctx, s.room, m, done, func(ctx context.Context, tx *sql.Tx) error {
			if err := s.cfg.History.AppendIn(ctx, tx, &stored); err != nil {
				return err
			}
			return s.openApproval(ctx, tx, in.ID)
		})
		if !errors.Is(err, history.ErrKnown) {
			if err == nil {
				s.taken = max(s.taken, stored.ID)
				s.settled = append(s.settled, done...)
				err = s.askApprovals(ctx, in.ID)
			}
			return err
		}
	}
	// An answer that is there already is said as it is, and the goal hears of it first.
	if err := s.cfg.History.Append(ctx, &answer); err != nil && !errors.Is(err, history.ErrKnown) {
		return err
	}
	if err := s.takeIn(ctx, s.reporter(in), answer); err != nil {
		return err
	}
	if err := s.say(ctx, in, answer.Text); err != nil {
		return err
	}
	return s.askGathered(ctx, in.ID)
}

// askGathered opens what was gathered for event, and asks it.
func (s *Session) askGathered(ctx context.Context, event string) error {
	if err := s.openApproval(ctx, s.cfg.DB, event); err != nil {
		return err
	}
	return s.askApprovals(ctx, event)
}
