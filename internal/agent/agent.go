// Package agent is the loop of a model and its tools: request, run the calls, request again, until
// the model answers in words. Turns and sub-sessions implement Work.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/trust"
)

// Errors that end a loop without an answer.
var (
	ErrRounds    = errors.New("agent: no answer within the limit of tool rounds")
	ErrStopped   = errors.New("agent: stopped by a person")
	ErrWithdrawn = errors.New("agent: the message or its answer was redacted meanwhile")
)

// Work is what a loop works on.
type Work interface {
	// Ready is called before each request; an error ends the loop.
	Ready(ctx context.Context) error
	// Infer makes one request. In the last one the model may call no tools.
	Infer(ctx context.Context, last bool) (llm.Reply, error)
	// Shorten shortens a request that the server refused as too large, and reports whether it
	// could.
	Shorten(ctx context.Context) bool
	// Act stores the calls of reply, runs them, and stores their results.
	Act(ctx context.Context, reply llm.Reply) error
}

// Loop runs w until the model answers in words, within most requests. done of them are made
// already.
func Loop(ctx context.Context, w Work, done, most int) (llm.Reply, error) {
	shortened := false // once: if the shorter request is refused, too, the cause is another
	for round := done + 1; ; round++ {
		if err := w.Ready(ctx); err != nil {
			return llm.Reply{}, err
		}
		last := round >= most
		reply, err := w.Infer(ctx, last)
		var refused *llm.Error
		if errors.As(err, &refused) && refused.Kind == llm.TooLarge && !shortened {
			if shortened = true; w.Shorten(ctx) {
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

// FirstModel returns the model that a role asks first.
func FirstModel(models *llm.Models, role string) string {
	if names := models.Role(role); len(names) > 0 {
		return names[0]
	}
	return ""
}

// CatchPanic runs f and converts a panic to an error, so that a message cannot end its room.
func CatchPanic(log *slog.Logger, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("agent: panic: %v", p)
		}
	}()
	return f()
}

// CloseCalls stores a result for every interrupted call of talk. A model must see each call
// answered. Only the newest calls of past can be open.
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

// Offer lists the tools that a model is offered.
type Offer struct {
	Specs  []llm.ToolSpec
	Names  []string
	Tokens int // size of their descriptions
}

// Add appends a tool.
func (o *Offer) Add(s llm.ToolSpec) {
	o.Specs = append(o.Specs, s)
	o.Names = append(o.Names, s.Name)
	o.Tokens += DescriptionTokens(s)
}

// Without returns o without the named tools.
func (o Offer) Without(names []string) Offer {
	if !slices.ContainsFunc(o.Names, func(name string) bool { return slices.Contains(names, name) }) {
		return o
	}
	var left Offer
	for _, s := range o.Specs {
		if !slices.Contains(names, s.Name) {
			left.Add(s)
		}
	}
	return left
}

// DescriptionTokens returns the size of a tool's description in tokens.
func DescriptionTokens(s llm.ToolSpec) int {
	return llm.EstimateTokens(s.Name) + llm.EstimateTokens(s.Description) + llm.EstimateTokens(string(s.Parameters))
}
