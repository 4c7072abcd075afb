package session

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/memory"
	"reverie/internal/subsession"
)

// unsay follows the redaction of a message: it leaves history, search and memory, with the answers to it
// and the open work that it asked for. An answer to others as well is given anew without it.
func (c *change) unsay(ctx context.Context, in chat.Redaction) error {
	if strings.HasPrefix(in.Target, replyID("")) {
		return c.forgetAnswer(ctx, in.Target)
	}
	if err := c.cfg.History.Redact(ctx, in.Target); err != nil {
		return err
	}
	if err := c.cfg.History.RedactToolRounds(ctx, in.Target); err != nil {
		return err
	}
	replies, err := c.repliesTo(ctx, in.Target)
	if err != nil {
		return err
	}
	if err := c.undoWork(ctx, in, replies); err != nil {
		return err
	}
	quotes, err := c.cfg.Memory.RedactTurn(ctx, in.Target) // it may have been kept meanwhile
	if err != nil {
		return err
	}
	if err := c.cfg.History.RemoveQuotes(ctx, quotes); err != nil {
		return err
	}
	// A tool may have noted it meanwhile.
	if _, err := c.cfg.Memory.ForgetEvent(ctx, memory.Access{Actor: "redaction", All: true}, in.Target); err != nil {
		return err
	}
	for _, reply := range replies {
		if err := c.withdraw(ctx, in, reply); err != nil {
			return err
		}
	}
	return nil
}

// withdraw removes the answer reply to a message that was taken back. If it is the newest
// answer, and answers others too, it is given anew.
func (c *change) withdraw(ctx context.Context, in chat.Redaction, reply string) error {
	questions, err := c.questionsOf(ctx, reply)
	if err != nil {
		return err
	}
	past, err := c.cfg.History.Load(ctx, c.talk)
	if err != nil {
		return err
	}
	for _, q := range slices.Backward(questions) {
		g := groupOf(past, q)
		if q == in.Target || !g.known {
			continue
		}
		if i := slices.IndexFunc(past, func(m history.Message) bool { return m.EventID == q }); history.IsRedacted(past[i]) {
			continue
		}
		if g.answer >= 0 && past[g.answer].EventID != reply || !g.end {
			break
		}
		for g.last > g.first && history.IsRedacted(past[g.last]) { // the answer is to what stands
			g.last--
		}
		return c.regenerate(ctx, in, past, g)
	}
	if err := c.forgetAnswer(ctx, reply); err != nil {
		return err
	}
	return c.cfg.Transport.Redact(ctx, c.room, reply)
}

// forgetAnswer takes the words of the answer reply out of history and search.
func (s *Session) forgetAnswer(ctx context.Context, reply string) error {
	if err := s.cfg.History.RedactAnswer(ctx, reply); err != nil {
		return err
	}
	quotes, err := s.cfg.Memory.RedactTurn(ctx, reply)
	if err != nil {
		return err
	}
	return s.cfg.History.RemoveQuotes(ctx, quotes)
}

// leastWords is from how many characters on the words of a task are looked for in what the
// model was shown: shorter ones stand in other words, too.
const leastWords = 8

// undoWork ends the open tasks and sub-sessions that the redacted message in.Target asked for, and says how
// many. What was answered together with others that stand is theirs as well, and stays.
func (c *change) undoWork(ctx context.Context, in chat.Redaction, replies []string) error {
	var events []string
	for _, reply := range replies {
		questions, err := c.questionsOf(ctx, reply)
		if err != nil {
			return err
		}
		stands, err := c.oneStands(ctx, questions)
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
	work, err := c.helpers.MadeFor(ctx, c.room, events)
	if err != nil {
		return err
	}
	open := 0
	for _, n := range work {
		events = append(events, n.Event())
		if n.Open() {
			open++
		}
	}
	tasks, words, err := c.cfg.Tasks.FromMessages(ctx, c.place(in.Head), events)
	if err != nil {
		return err
	}
	if tasks+open > 0 { // said first: after an interruption there may be fewer of them
		if err := c.cfg.Transport.Send(ctx, c.room, chat.Outgoing{ID: "undone:" + in.Target, Thread: c.thread, Notice: true,
			Text: c.text(ctx, "unsaid.work", "tasks", strconv.Itoa(tasks), "work", strconv.Itoa(open))}); err != nil {
			return err
		}
	}
	for _, n := range work {
		short, shorter := history.OneLine(n.Objective, 200), history.OneLine(n.Objective, 120) // as lists cut them
		words = append(words, n.Objective, short, shorter, n.Result)
	}
	words = slices.DeleteFunc(words, func(w string) bool { return utf8.RuneCountInString(w) < leastWords || w == subsession.Unasked })
	if err := c.cfg.History.RemoveQuotes(ctx, words); err != nil { // lists of them stand beside later messages
		return err
	}
	if err := c.cfg.Tasks.DeleteFromMessages(ctx, c.room, events); err != nil {
		return err
	}
	return c.helpers.TakeBack(ctx, work)
}

// oneStands reports whether somebody still wants an answer to one of questions.
func (s *Session) oneStands(ctx context.Context, questions []string) (bool, error) {
	for _, q := range questions {
		m, known, err := s.cfg.History.Find(ctx, s.talk, q)
		if err != nil {
			return false, err
		}
		if known && !history.IsRedacted(m) {
			return true, nil
		}
	}
	return false, nil
}
