// Package agent asks a model, runs the tools that it calls, and asks again, until it answers in
// words. Turns and sub-sessions work with it.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/trust"
)

// Why a loop ends without an answer.
var (
	ErrRounds    = errors.New("agent: no answer within the limit of tool rounds")
	ErrStopped   = errors.New("agent: stopped by a person")
	ErrWithdrawn = errors.New("agent: the message or its answer was taken back while it was being answered")
)

// Work is what a loop works on.
type Work interface {
	// Ready is called before each request; an error ends the loop.
	Ready(ctx context.Context) error
	// Infer makes one request. In the last one the model may call no tools.
	Infer(ctx context.Context, last bool) (llm.Reply, error)
	// Relieve makes the request shorter that a server has refused, and says whether it did.
	Relieve(ctx context.Context) bool
	// Act stores the calls of reply, runs them, and stores their results.
	Act(ctx context.Context, reply llm.Reply) error
}

// Loop has w answered in words, with at most so many requests, of which done are made already.
func Loop(ctx context.Context, w Work, done, most int) (llm.Reply, error) {
	relieved := false
	for round := done + 1; ; round++ {
		if err := w.Ready(ctx); err != nil {
			return llm.Reply{}, err
		}
		last := round >= most
		reply, err := w.Infer(ctx, last)
		if Overflowed(err) && !relieved { // once: a server that refuses what is much shorter too means something else
			if relieved = true; w.Relieve(ctx) {
				reply, err = w.Infer(ctx, last)
			}
		}
		if err != nil || len(reply.ToolCalls) == 0 {
			return reply, err
		}
		if last {
			return reply, ErrRounds
		}
		if err := w.Act(ctx, reply); err != nil {
			return reply, err
		}
	}
}

// Overflowed reports whether err means that the server found a request too large.
func Overflowed(err error) bool {
	var model *llm.Error
	return errors.As(err, &model) && model.Kind == llm.TooLarge
}

// FirstModel is the model that a role asks first.
func FirstModel(models *llm.Models, role string) string {
	if names := models.Role(role); len(names) > 0 {
		return names[0]
	}
	return ""
}

// Recovered runs f and turns a panic into an error, so that one message cannot end the room.
func Recovered(log *slog.Logger, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("agent: panic: %v", p)
		}
	}()
	return f()
}

// CloseCalls gives every tool call of talk that an interruption left without a result one that says
// so: a model must see each call answered. Only the newest calls of past can be open.
func CloseCalls(ctx context.Context, h *history.Store, talk history.Timeline, past []history.Message, now time.Time) error {
	done := map[string]bool{}
	for i := len(past) - 1; i >= 0; i-- {
		if past[i].Role == llm.Tool {
			done[past[i].CallID] = true
			continue
		}
		for _, c := range past[i].Calls {
			if done[c.ID] {
				continue
			}
			row := history.Message{Room: talk, Role: llm.Tool, CallID: c.ID, Failed: true, At: now,
				Label: trust.Label{Integrity: trust.Owner, Readers: past[i].Label.Readers},
				Text:  "error: the program was interrupted while this ran. Check whether it took effect before trying again."}
			if err := h.Append(ctx, &row); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// Offer is the tools that a model is told about.
type Offer struct {
	Specs  []llm.ToolSpec
	Names  []string
	Tokens int // what the descriptions take
}

// Add puts one more tool at the end.
func (o *Offer) Add(s llm.ToolSpec) {
	o.Specs = append(o.Specs, s)
	o.Names = append(o.Names, s.Name)
	o.Tokens += Describing(s)
}

// Describing is how many tokens the description of a tool takes.
func Describing(s llm.ToolSpec) int {
	return llm.EstimateTokens(s.Name) + llm.EstimateTokens(s.Description) + llm.EstimateTokens(string(s.Parameters))
}
