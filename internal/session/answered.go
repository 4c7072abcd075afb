package session

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/store"
)

// takeUp notes which messages the answer that is begun is about to answer: what people do
// to one of them concerns it from now on. It is stored when the model is asked.
func (s *Session) takeUp(past []history.Message) {
	i := len(past) - 1
	for i >= 0 && past[i].Role != llm.User {
		i--
	}
	if i < 0 || s.answering == "" {
		return
	}
	g := groupOf(past, past[i].EventID)
	s.takeInHand(replyID(s.answering))
	s.questions = nil
	if !g.known {
		return
	}
	for _, m := range past[g.first : g.last+1] {
		s.takeInHand(m.EventID)
		if !history.TakenBack(m) {
			s.questions = append(s.questions, m.EventID)
		}
	}
}

// noting stores what takeUp noted.
func (s *Session) noting() []func(context.Context, *sql.Tx) error {
	if len(s.questions) == 0 {
		return nil
	}
	return []func(context.Context, *sql.Tx) error{func(ctx context.Context, tx *sql.Tx) error {
		for _, question := range s.questions {
			if _, err := tx.ExecContext(ctx, `INSERT INTO answered (question, reply) VALUES (?, ?) ON CONFLICT DO NOTHING`, question, replyID(s.answering)); err != nil {
				return fmt.Errorf("session: note what is answered: %w", err)
			}
		}
		return nil
	}}
}

// repliesTo lists the replies to the message question, the newest last. There is always
// the one that bears its name.
func (s *Session) repliesTo(ctx context.Context, question string) ([]string, error) {
	replies, err := s.answered(ctx, `SELECT reply FROM answered WHERE question = ? ORDER BY seq`, question)
	if own := replyID(question); err == nil && !slices.Contains(replies, own) {
		replies = append([]string{own}, replies...)
	}
	return replies, err
}

// questionsOf lists the messages that reply answers, in the order they were written. There
// is always the one that it is named after.
func (s *Session) questionsOf(ctx context.Context, reply string) ([]string, error) {
	questions, err := s.answered(ctx, `SELECT question FROM answered WHERE reply = ? ORDER BY seq`, reply)
	if len(questions) == 0 {
		questions = []string{strings.TrimPrefix(reply, replyID(""))}
	}
	return questions, err
}

func (s *Session) answered(ctx context.Context, query, id string) ([]string, error) {
	ids, err := store.Column[string](ctx, s.cfg.DB, query, id)
	if err != nil {
		return nil, fmt.Errorf("session: read what is answered: %w", err)
	}
	return ids, nil
}
