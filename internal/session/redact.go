package session

import (
	"context"
	"slices"
	"strconv"
	"unicode/utf8"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/recall"
	"reverie/internal/subsession"
)

// applyRedaction removes a redacted message from history, search and memory. Its answers and the open
// work that it asked for go, too; an answer that also answers others is regenerated.
func (c *change) applyRedaction(ctx context.Context, in chat.Redaction) error {
	if chat.IsReply(in.Target) {
		return c.forgetAnswer(ctx, in.Target)
	}
	// The transport did this before, but indexing or a tool may have run meanwhile.
	if err := recall.Redact(ctx, c.cfg.History, c.cfg.Memory, c.cfg.Manner, in.Target); err != nil {
		return err
	}
	if err := c.cfg.History.RedactToolRounds(ctx, in.Target); err != nil {
		return err
	}
	replies, err := c.repliesTo(ctx, in.Target)
	if err != nil {
		return err
	}
	if err := c.cancelWork(ctx, in, replies); err != nil {
		return err
	}
	for _, reply := range replies {
		if err := c.redactAnswer(ctx, in, reply); err != nil {
			return err
		}
	}
	return nil
}

// redactAnswer removes the answer reply to a redacted message. The newest answer is regenerated instead,
// if it also answers other messages.
func (c *change) redactAnswer(ctx context.Context, in chat.Redaction, reply string) error {
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
		for history.IsRedacted(past[g.last]) || past[g.last].Role != llm.User { // answer the newest remaining message
			g.last--
		}
		first, err := c.answeredAs(ctx, past[g.last].EventID)
		if err == nil && g.answer < 0 && chat.ReplyID(first) != reply { // the new answer is another message
			err = c.cfg.Transport.Redact(ctx, c.room, reply)
		}
		if err != nil {
			return err
		}
		return c.regenerate(ctx, in, past, g)
	}
	if err := c.forgetAnswer(ctx, reply); err != nil {
		return err
	}
	return c.cfg.Transport.Redact(ctx, c.room, reply)
}

// forgetAnswer deletes the text of the answer reply from history and search.
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

// minSearchRunes is the minimum length of task texts to search for in the history. They are removed
// there. Shorter ones are parts of other words.
const minSearchRunes = 8

// cancelWork cancels the open tasks and sub-sessions of a redacted message. It tells the room how
// many. Work of an answer that also answers other messages stays.
func (c *change) cancelWork(ctx context.Context, in chat.Redaction, replies []string) error {
	var events []string
	for _, reply := range replies {
		questions, err := c.questionsOf(ctx, reply)
		if err != nil {
			return err
		}
		switch wanted, err := c.anyUnredacted(ctx, questions); {
		case err != nil:
			return err
		case !wanted: // !retry gives answers IDs of their own
			events = append(append(events, questions...), chat.RepliedTo(reply))
		}
	}
	if len(events) == 0 {
		return nil
	}
	work, err := c.subSessions.MadeFor(ctx, c.room, events)
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
	if tasks+open > 0 { // first: after an interruption there would be fewer to report
		if err := c.cfg.Transport.Send(ctx, c.room, chat.Outgoing{ID: "undone:" + in.Target, Thread: c.thread, Notice: true,
			Text: c.text(ctx, "unsaid.work", "tasks", strconv.Itoa(tasks), "work", strconv.Itoa(open))}); err != nil {
			return err
		}
	}
	for _, n := range work {
		short, shorter := history.OneLine(n.Objective, 200), history.OneLine(n.Objective, 120) // as lists shorten them
		words = append(words, n.Objective, short, shorter, n.Result)
	}
	words = slices.DeleteFunc(words, func(w string) bool { return utf8.RuneCountInString(w) < minSearchRunes || w == subsession.Redacted })
	if err := c.cfg.History.RemoveQuotes(ctx, words); err != nil { // lists of them are stored with later messages
		return err
	}
	if err := c.cfg.Tasks.DeleteFromMessages(ctx, c.room, events); err != nil {
		return err
	}
	return c.subSessions.Redact(ctx, work)
}

// anyUnredacted reports whether one of questions is still in the history and not redacted.
func (c *change) anyUnredacted(ctx context.Context, questions []string) (bool, error) {
	for _, q := range questions {
		m, known, err := c.cfg.History.Find(ctx, c.talk, q)
		if err != nil {
			return false, err
		}
		if known && !history.IsRedacted(m) {
			return true, nil
		}
	}
	return false, nil
}
