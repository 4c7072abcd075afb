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
	"reverie/internal/questions"
	"reverie/internal/trust"
)

// command does what in, a command, says, and answers it.
func (s *Session) command(ctx context.Context, in chat.Message, name, args string) error {
	text, err := command.Run(ctx, s.call(in), name, args)
	switch {
	case errors.Is(err, command.ErrAnswered):
		return nil
	case err != nil:
		return err
	}
	return s.notice(ctx, in.ID, text)
}

// call is in as a command.
func (s *Session) call(in chat.Message) *command.Call {
	asked := questions.Store{DB: s.cfg.DB, Memory: s.cfg.Memory}
	c := &command.Config{Memory: s.cfg.Memory, Questions: asked, Tasks: s.cfg.Tasks, Goals: s.goals,
		Skills: s.cfg.Skills, History: s.cfg.History, Models: s.cfg.Models, Settings: s.settings(), Messages: s.cfg.Messages,
		Location: s.cfg.Location, Began: s.began, Now: s.cfg.Now, Hooks: s.cfg.Hooks}
	if s.helpers != nil {
		c.Helpers = s.helpers
	}
	return &command.Call{Config: c, Session: s, In: in, Talk: s.talk, Place: s.place(in.Head), Access: s.access(in.Head),
		Caller: s.caller(item{Message: in}), Log: s.log}
}

// access is what the sender of in may see and change here.
func (s *Session) access(in chat.Head) memory.Access {
	return memory.Access{Actor: in.Sender, Scopes: s.scopes(in), Owner: s.level(in) == trust.Owner, Integrity: s.level(in)}
}

// StartNew begins a new conversation, without a summary.
func (s *Session) StartNew(ctx context.Context) error {
	s.recallable(ctx)
	s.cfg.Leaving(string(s.talk))
	if err := s.objective().Clear(ctx, s.talk); err != nil {
		return err
	}
	_, err := s.cfg.History.StartNew(ctx, s.talk)
	return err
}

// Retry answers the last message of a person anew. What the model had said or
// done since is set aside, not deleted.
func (s *Session) Retry(ctx context.Context, m chat.Message) error {
	in := item{Message: m}
	clear(s.paces) // a person asks
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(past) {
		if m.EventID == replyID(in.ID) { // answered before an interruption
			return s.catchUp(ctx, in, m.Text)
		}
		if m.Role != llm.User || m.Sender == "" || history.IsRedacted(m) { // nobody wrote a system event
			continue
		}
		if err := s.cfg.History.Retire(ctx, s.talk, m.ID); err != nil {
			return err
		}
		return s.respond(ctx, in)
	}
	return s.notice(ctx, in.ID, s.text(ctx, "retry.nothing"))
}

// Preview is the prompt that in would get now.
func (s *Session) Preview(ctx context.Context, in chat.Message) (prompt.Prompt, error) {
	p, _, err := s.preview(ctx, in)
	return p, err
}

// preview is the prompt that in would get now, and the tools.
func (s *Session) preview(ctx context.Context, in chat.Message) (prompt.Prompt, []llm.ToolSpec, error) {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return prompt.Prompt{}, nil, err
	}
	how, err := s.manner(ctx, s.place(in.Head), past, true)
	if err != nil {
		return prompt.Prompt{}, nil, err
	}
	t := s.promptTurn(item{Message: in}, past, how)
	t.Preview = true
	p, err := s.cfg.Prompt.Assemble(ctx, t)
	return p, s.offer(how).Specs, err
}

// tidy has what has outgrown its cap put in order, at the next quiet moment.
func (s *Session) tidy(over []prompt.Oversize) {
	if s.cfg.Dreams == nil || s.cfg.Dreams.Tidy == nil {
		return
	}
	for _, o := range over {
		s.cfg.Dreams.Tidy(o.Contributor)
	}
}
