package dream

import (
	"context"
	"fmt"

	"reverie/internal/harvest"
	"reverie/internal/llm"
)

// readShare is the part of what a dream may ask that it may spend on reading conversations:
// however much was said, the rest of the dream has as much.
const readShare = 2

// read has the conversations read in which nobody talks at the moment, so that what was said
// since the last time is part of this dream. Whatever goes wrong is a note: what is not read
// now is read by day, or the next night. Only the end of ctx is an error.
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

// readPart asks what in a part of a conversation is worth remembering, if there is enough left.
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
	if err != nil && within.Err() != nil && ctx.Err() == nil { // by day it has the time that it needs
		return "", fmt.Errorf("no answer within %s; %w", callTime, harvest.ErrLimit)
	}
	cost.Tokens += llm.EstimateTokens(answer)
	return answer, err
}
