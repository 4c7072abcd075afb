package dream

import (
	"context"
	"fmt"

	"reverie/internal/harvest"
	"reverie/internal/llm"
)

// readShare is the divisor of the budget for reading conversations: half of it.
const readShare = 2

// read harvests facts from quiet conversations before the plan. Failures become notes, because unread
// messages are read later. Only the end of ctx is an error.
func (r *run) read(ctx context.Context) error {
	h := r.d.cfg.Harvester
	if !r.has(Harvest) {
		return nil
	}
	if h == nil {
		if len(r.o.Phases) > 0 {
			r.note("conversations are not read here: there is no model, or harvest.enabled is false")
		}
		return nil
	}
	since := r.now.Add(-settled)
	if r.o.Now {
		since = r.now.AddDate(1, 0, 0)
	}
	rooms, messages, err := h.IdleRooms(ctx, since)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		r.note("what is to be read is not known: %v", err)
		return nil
	case r.o.DryRun && messages > 0:
		r.note("messages that were not read yet: %d; a dry run reads none, so what they say is not part of it", messages)
		return nil
	case len(rooms) == 0:
		return nil
	}
	within, cancel := context.WithTimeout(ctx, r.models.timeLeft()/readShare)
	defer cancel()
	read, err := h.Read(within, rooms, r.readPart, failures)
	r.report.Harvested = &read
	if err := ctx.Err(); err != nil {
		return err
	}
	if err != nil && within.Err() != nil {
		err = fmt.Errorf("half of the time for questions to the model is used up; %w", harvest.ErrLimit)
	}
	if err != nil {
		r.note("not all that was said is read: %v", err)
	}
	return nil
}

// readPart sends a harvest prompt if the budget allows it.
func (r *run) readPart(ctx context.Context, prompt string) (string, error) {
	cost, most := &r.report.Cost, r.d.cfg.Budget
	size := llm.EstimateTokens(prompt)
	switch {
	case cost.Calls >= most.Calls/readShare:
		return "", fmt.Errorf("half of the requests are used up (%d of %d); %w", cost.Calls, most.Calls, harvest.ErrLimit)
	case cost.Tokens+size > most.Tokens/readShare:
		return "", fmt.Errorf("half of the tokens are used up (%d of %d, and the next request has %d); %w",
			cost.Tokens, most.Tokens, size, harvest.ErrLimit)
	}
	within, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	cost.Calls++
	cost.Read++
	cost.Tokens += size
	answer, err := r.d.cfg.Harvester.Ask(within, prompt)
	if err != nil && within.Err() != nil && ctx.Err() == nil { // outside a dream there is no timeout
		return "", fmt.Errorf("no answer within %s; %w", callTime, harvest.ErrLimit)
	}
	cost.Tokens += llm.EstimateTokens(answer)
	return answer, err
}
