package session

import (
	"cmp"
	"context"
	"slices"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/trust"
)

// aside gives the answer reply to question anew, while what was said since stands: the
// model sees the conversation as it was up to the question. It may look things up, and
// changes nothing by tools: what it did the first time is done. Nothing is stored but the
// answer, so that an interruption begins it anew.
func (s *Session) aside(ctx context.Context, in Inbound, question, reply string) error {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return err
	}
	g := groupOf(past, question)
	if !g.known {
		return nil
	}
	ask := s.asking
	now, err := s.mode(ctx)
	if err != nil {
		return err
	}
	done, err := s.begin(ctx, now)
	if err != nil {
		return err
	}
	defer done()
	s.takeInHand(reply)
	answer, err := s.askAside(ctx, ask, past[:g.last+1])
	if err != nil {
		return err
	}
	text := answer.Text
	if answer.Finish == "length" {
		text += cutOff
	}
	if err := s.cfg.History.Reanswer(ctx, s.talk, reply, text, s.label.Integrity); err != nil {
		return err
	}
	if m, known, err := s.cfg.History.Find(ctx, s.talk, reply); err != nil {
		return err
	} else if known {
		if err := s.hearAgain(ctx, m, past[g.last]); err != nil {
			return err
		}
	}
	return s.say(ctx, ask, text)
}

// askAside asks the model about what stands last in past, with tools that only read.
func (s *Session) askAside(ctx context.Context, ask Inbound, past []history.Message) (llm.Reply, error) {
	how, err := s.manner(ctx, s.place(ask), past, true)
	if err != nil {
		return llm.Reply{}, err
	}
	p, err := s.cfg.Prompt.Assemble(ctx, s.promptTurn(ask, past, how))
	if err != nil {
		return llm.Reply{}, err
	}
	s.label = trust.Label{Integrity: p.Integrity, Readers: s.place(ask).Readers()}
	req := llm.Request{Messages: slices.Clone(p.Messages()), Fit: s.cfg.Tools.Fit, Think: how.think, Temperature: &how.mode.temperature, Marks: p.Marks()}
	for _, spec := range s.offer(how).specs {
		if slices.Contains(reading, spec.Name) {
			req.Tools = append(req.Tools, spec)
		}
	}
	scope := s.toolScope(ask, how.mode)
	scope.Event, scope.Quote, scope.At, scope.Files = ask.ID, ask.Text, ask.At, came(past)
	for round := 1; ; round++ {
		if wanted, err := s.wanted(ctx, ask); err != nil || !wanted {
			return llm.Reply{}, cmp.Or(err, errWithdrawn)
		}
		req.NoCalls = round >= s.cfg.MaxRound
		reply, err := s.cfg.Models.Complete(ctx, how.mode.role, req, nil)
		if err != nil || len(reply.ToolCalls) == 0 {
			return reply, err
		}
		if req.NoCalls {
			return reply, errRounds
		}
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Content: reply.Text, ToolCalls: reply.ToolCalls})
		for _, c := range reply.ToolCalls {
			result := "error: this tool is not offered here."
			if slices.Contains(reading, c.Name) {
				got := s.cfg.Tools.Run(ctx, scope, c)
				result, s.label.Integrity = got.Content, min(s.label.Integrity, got.Integrity)
			}
			req.Messages = append(req.Messages, llm.Message{Role: llm.Tool, Content: result, ToolCallID: c.ID})
		}
	}
}
