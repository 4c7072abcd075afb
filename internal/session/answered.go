package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// noteAnswered notes which messages the reply to answers is about to answer: what people
// do to one of them concerns it from now on.
func (s *Session) noteAnswered(ctx context.Context, answers string) error {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return err
	}
	i := len(past) - 1
	for i >= 0 && past[i].Role != llm.User {
		i--
	}
	if i < 0 {
		return nil
	}
	g, reply := groupOf(past, past[i].EventID), replyID(answers)
	s.takeInHand(reply)
	if !g.known {
		return nil
	}
	s.asked = past[g.last].EventID
	for _, m := range past[g.first : g.last+1] {
		s.takeInHand(m.EventID)
		if history.TakenBack(m) {
			continue
		}
		if _, err := s.cfg.DB.ExecContext(ctx, `INSERT INTO answered (question, reply) VALUES (?, ?) ON CONFLICT DO NOTHING`, m.EventID, reply); err != nil {
			return fmt.Errorf("session: note what is answered: %w", err)
		}
	}
	return nil
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

func (s *Session) answered(ctx context.Context, query, id string) (ids []string, err error) {
	rows, err := s.cfg.DB.QueryContext(ctx, query, id)
	if err != nil {
		return nil, fmt.Errorf("session: read what is answered: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("session: read what is answered: %w", err)
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
