package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/memory"
)

// unsay follows that a message, or one of ours, was taken back: nothing of it is left, nor
// of the answers to it, nor what was learned from it, nor what it asked for and is still to
// come. An answer to others as well is given anew without it.
func (s *Session) unsay(ctx context.Context, in chat.Inbound) error {
	if strings.HasPrefix(in.Target, replyID("")) {
		return s.forgetAnswer(ctx, in.Target)
	}
	if err := s.cfg.History.Redact(ctx, in.Target); err != nil {
		return err
	}
	if err := s.cfg.History.UnsayWork(ctx, in.Target); err != nil {
		return err
	}
	replies, err := s.repliesTo(ctx, in.Target)
	if err != nil {
		return err
	}
	for _, reply := range replies {
		if err := s.withdraw(ctx, in, reply); err != nil {
			return err
		}
	}
	if err := s.undoWork(ctx, in, replies); err != nil {
		return err
	}
	quotes, err := s.cfg.Memory.Unhear(ctx, in.Target) // it may have been kept meanwhile
	if err != nil {
		return err
	}
	if err := s.cfg.History.Unquote(ctx, quotes); err != nil {
		return err
	}
	_, err = s.cfg.Memory.ForgetEvent(ctx, memory.Access{Actor: "redaction", All: true}, in.Target) // a tool may have noted it meanwhile
	return err
}

// withdraw removes the answer reply to a message that was taken back. If it is the newest
// answer, and answers others too, it is given anew.
func (s *Session) withdraw(ctx context.Context, in chat.Inbound, reply string) error {
	questions, err := s.questionsOf(ctx, reply)
	if err != nil {
		return err
	}
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return err
	}
	for _, q := range slices.Backward(questions) {
		g := groupOf(past, q)
		if q == in.Target || !g.known || history.TakenBack(past[slices.IndexFunc(past, func(m history.Message) bool { return m.EventID == q })]) {
			continue
		}
		if g.answer >= 0 && past[g.answer].EventID != reply || !g.end {
			break
		}
		for g.last > g.first && history.TakenBack(past[g.last]) { // the answer is to what stands
			g.last--
		}
		in.Target = past[g.last].EventID
		return s.regenerate(ctx, in, past, g)
	}
	if err := s.forgetAnswer(ctx, reply); err != nil {
		return err
	}
	return s.cfg.Transport.Redact(ctx, s.room, reply)
}

// forgetAnswer takes the words of the answer reply out of history and search.
func (s *Session) forgetAnswer(ctx context.Context, reply string) error {
	if err := s.cfg.History.Unsay(ctx, reply); err != nil {
		return err
	}
	quotes, err := s.cfg.Memory.Unhear(ctx, reply)
	if err != nil {
		return err
	}
	return s.cfg.History.Unquote(ctx, quotes)
}

// unasked is the reason of sub-sessions that ended because what asked for them was taken
// back, and what stands in the place of their words.
const unasked = "[taken back]"

// leastWords is from how many characters on the words of a task are looked for in what the
// model was shown: shorter ones stand in other words, too.
const leastWords = 8

// undoWork ends what the message in.Target, which was taken back, had set going and is still to
// come, open tasks and sub-sessions, and says how many: a reminder that does not come is missed.
// What was answered together with others that stand is theirs as well, and stays.
func (s *Session) undoWork(ctx context.Context, in chat.Inbound, replies []string) error {
	var events []string
	for _, reply := range replies {
		questions, err := s.questionsOf(ctx, reply)
		if err != nil {
			return err
		}
		stands, err := s.oneStands(ctx, questions)
		if err != nil {
			return err
		}
		if !stands { // !retry gives answers names of its own
			events = append(append(events, questions...), strings.TrimPrefix(reply, replyID("")))
		}
	}
	if len(events) == 0 {
		return nil
	}
	work, err := s.workFor(ctx, events)
	if err != nil {
		return err
	}
	var open []helper
	for _, n := range work {
		events = append(events, subPrefix+n.id)
		if n.open() {
			open = append(open, n)
		}
	}
	tasks, words, err := s.cfg.Tasks.MadeFor(ctx, s.place(in), events)
	if err != nil {
		return err
	}
	if tasks+len(open) > 0 { // said first: after an interruption there may be fewer of them
		if err := s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{ID: "undone:" + in.Target, Thread: s.thread, Notice: true,
			Text: s.text(ctx, "unsaid.work", "tasks", strconv.Itoa(tasks), "work", strconv.Itoa(len(open)))}); err != nil {
			return err
		}
	}
	for _, n := range work {
		words = append(words, n.objective, history.OneLine(n.objective, 120), history.OneLine(n.objective, 200), n.result) // as lists cut them
	}
	words = slices.DeleteFunc(words, func(w string) bool { return utf8.RuneCountInString(w) < leastWords || w == unasked })
	if err := s.cfg.History.Unquote(ctx, words); err != nil { // lists of them stand beside later messages
		return err
	}
	if err := s.cfg.Tasks.TakeBack(ctx, s.room, events); err != nil {
		return err
	}
	if len(open) > 0 {
		if _, err := s.helpers.cancel(ctx, open, unasked); err != nil {
			return err
		}
	}
	return s.emptyWork(ctx, work)
}

// oneStands reports whether somebody still wants an answer to one of questions.
func (s *Session) oneStands(ctx context.Context, questions []string) (bool, error) {
	for _, q := range questions {
		m, known, err := s.cfg.History.Find(ctx, s.talk, q)
		if err != nil {
			return false, err
		}
		if known && !history.TakenBack(m) {
			return true, nil
		}
	}
	return false, nil
}

// workFor lists the sub-sessions of the room that were made for one of events, and those
// that they asked for.
func (s *Session) workFor(ctx context.Context, events []string) ([]helper, error) {
	if s.helpers == nil {
		return nil, nil
	}
	list, err := json.Marshal(events)
	if err != nil {
		return nil, fmt.Errorf("session: work for a message: %w", err)
	}
	return s.helpers.read(ctx, s.cfg.DB, `WHERE id IN (WITH RECURSIVE mine(id) AS (
		SELECT id FROM sub_session WHERE room = ? AND asked IN (SELECT value FROM json_each(?))
		UNION SELECT c.id FROM sub_session AS c JOIN mine ON c.parent = mine.id) SELECT id FROM mine) ORDER BY created, rowid`, s.room, string(list))
}

// emptyWork takes the words out of sub-sessions, and has nothing told of those that have
// ended and were not told yet.
func (s *Session) emptyWork(ctx context.Context, work []helper) error {
	for _, n := range work {
		if _, err := s.helpers.change(ctx, s.cfg.DB, `objective = ?1, context = '', result = '', told = iif(told = 0, ?2, told) WHERE id = ?3`, unasked, s.helpers.millis(), n.id); err != nil {
			return err
		}
		if _, err := s.cfg.DB.ExecContext(ctx, `UPDATE message SET text = ?2, short = '', tail = '', calls = iif(calls = '', '', '[]') WHERE room = ?3 || ?1`,
			n.id, unasked, subPrefix); err != nil {
			return fmt.Errorf("session: take back work: %w", err)
		}
	}
	return nil
}
