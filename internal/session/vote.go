package session

import (
	"context"
	"slices"
	"strings"

	"reverie/internal/approval"
	"reverie/internal/ask"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/memory"
	"reverie/internal/questions"
	"reverie/internal/trust"
)

// applyVote applies a vote in one of our polls: an approval, a question about memory, or one of the model.
func (c *change) applyVote(ctx context.Context, in chat.Vote) (err error) {
	thread, text, code := c.thread, "", approval.CodeOf(in.Target)
	switch {
	case strings.HasPrefix(in.Target, chat.ReplyID(questions.EventPrefix)):
		text, err = c.answerMemoryQuestion(ctx, in)
	case code == "":
		return c.answerQuestion(ctx, in)
	case slices.Contains([]string{approval.Once, approval.Wide, approval.No}, in.Option):
		var a approval.Approval
		if text, err = c.answerApproval(ctx, in.Head, code, in.Option); err == nil {
			a, err = c.approvals.Find(ctx, c.cfg.DB, code)
		}
		thread = a.Talk.Thread() // a vote does not name its poll's thread
	}
	if err != nil || text == "" {
		return err
	}
	return c.cfg.Transport.Send(ctx, c.room, chat.Outgoing{ID: "vote:" + in.ID, Thread: thread, Text: text, Notice: true})
}

// answerQuestion makes a vote the voter's next message, if the model's question is still open. Its words are
// never a command.
func (c *change) answerQuestion(ctx context.Context, in chat.Vote) error {
	if err := c.splitOnNewReaders(ctx, c.place(in.Head).Readers()); err != nil {
		return err
	}
	past, err := c.cfg.History.Load(ctx, c.talk)
	if err != nil || c.senderIntegrity(in.Head) < trust.User {
		return err
	}
	m, answer, ok := ask.Open(past, in.ID).Message(in)
	closing := chat.Outgoing{ID: in.Target, Closed: true, Text: c.text(ctx, "ask.closed")}
	if ok {
		closing.Text = c.text(ctx, "ask.answered", "answer", answer)
	}
	if err := c.cfg.Transport.Send(ctx, c.room, closing); err != nil || !ok {
		return err
	}
	c.question, c.lastHandled = m.Head, m.Head
	return c.dispatch(ctx, []chat.Message{m})
}

// answerMemoryQuestion answers a question about memory with the command !memory, and closes its poll.
func (c *change) answerMemoryQuestion(ctx context.Context, in chat.Vote) (string, error) {
	call := c.newCommandCall(chat.Message{Head: in.Head})
	text, err := command.Run(ctx, call, "memory", "keep "+in.Option)
	if err != nil {
		return "", err
	}
	open, err := call.Questions.Questions(ctx, memory.Access{All: true})
	if err != nil || slices.ContainsFunc(open, func(q questions.Question) bool { return chat.ReplyID(q.Event) == in.Target }) {
		return text, err // not theirs to decide
	}
	return text, c.cfg.Transport.Send(ctx, c.room, chat.Outgoing{ID: in.Target, Closed: true, Text: c.text(ctx, "ask.closed")})
}

// closeQuestion closes the poll of the model's open question, and returns the question; nil = none is open.
// The message answer does not count as its answer.
func (s *Session) closeQuestion(ctx context.Context, answer string) (*ask.Question, error) {
	past, err := s.cfg.History.Load(ctx, s.talk)
	q := ask.Open(past, answer)
	if err != nil || q == nil {
		return nil, err
	}
	return q, s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{ID: q.ID, Closed: true, Text: s.text(ctx, "ask.closed")})
}
