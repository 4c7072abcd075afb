package session

import (
	"context"
	"errors"
	"slices"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/trust"
)

// runCommand runs the command in and sends its answer.
func (s *Session) runCommand(ctx context.Context, in chat.Message, name, args string) error {
	text, err := command.Run(ctx, s.newCommandCall(in), name, args)
	switch {
	case errors.Is(err, command.ErrAnswered):
		return nil
	case err != nil:
		return err
	}
	return s.sendNotice(ctx, in.ID, text)
}

// newCommandCall makes the command call of the message in.
func (s *Session) newCommandCall(in chat.Message) *command.Call {
	return &command.Call{Config: &s.cfg.Config, Session: s, In: in, Talk: s.talk, Place: s.place(in.Head), Access: s.access(in.Head),
		Caller: s.caller(item{Message: in}), Zone: s.cfg.Profiles.PersonalOrUsualZone(s.place(in.Head).Readers()), Log: s.log}
}

// access returns what the sender of in may see and change in memory.
func (s *Session) access(in chat.Head) memory.Access {
	integrity := s.senderIntegrity(in)
	return memory.Access{Actor: in.Sender, Scopes: s.scopes(in), Owner: integrity == trust.Owner, Integrity: integrity}
}

// StartNew starts a new conversation without a summary.
func (s *Session) StartNew(ctx context.Context) error {
	s.indexMessages(ctx)
	if _, err := s.closeQuestion(ctx, ""); err != nil {
		return err
	}
	s.cfg.BeforeEvict(string(s.talk))
	if err := s.objective().Clear(ctx, s.talk); err != nil {
		return err
	}
	_, err := s.cfg.History.StartNew(ctx, s.talk)
	return err
}

// Retry answers a person's last message again. Rows of the earlier answer are retired, not deleted.
func (s *Session) Retry(ctx context.Context, m chat.Message) error {
	in := item{Message: m}
	clear(s.loopDetectors) // a person asks
	if _, err := s.closeQuestion(ctx, ""); err != nil {
		return err
	}
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(past) {
		if m.EventID == chat.ReplyID(in.ID) { // answered before an interruption
			return s.sendStoredAnswer(ctx, in, m.Text)
		}
		if m.Role != llm.User || m.Sender == "" || history.IsRedacted(m) { // a system event has no sender
			continue
		}
		if err := s.cfg.History.Retire(ctx, s.talk, m.ID); err != nil {
			return err
		}
		return s.respond(ctx, in)
	}
	return s.sendNotice(ctx, in.ID, s.text(ctx, "retry.nothing"))
}

// Preview returns the prompt that in would get now, and its tools. It changes nothing.
func (s *Session) Preview(ctx context.Context, in chat.Message) (prompt.Prompt, []llm.ToolSpec, error) {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return prompt.Prompt{}, nil, err
	}
	set, err := s.turnSettings(ctx, s.place(in.Head), past, true)
	if err != nil {
		return prompt.Prompt{}, nil, err
	}
	t := s.promptTurn(item{Message: in}, past, set)
	t.Preview = true
	p, err := s.cfg.Prompt.Assemble(ctx, t)
	return p, s.offer(set).Specs, err
}
