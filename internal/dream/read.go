package dream

import (
	"context"
	"fmt"

	"reverie/internal/harvest"
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
	within, cancel := context.WithTimeout(ctx, r.timeLeft()/readShare)
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
	if why := r.spent(prompt, readShare); why != "" {
		return "", fmt.Errorf("%s; %w", why, harvest.ErrLimit)
	}
	r.report.Cost.Read++
	return r.request(ctx, prompt, r.d.cfg.Harvester.Ask)
}
