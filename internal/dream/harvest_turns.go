package dream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reverie/internal/store"
)

// Reasons for a rest: the first and the longest one after a request that came to nothing.
const (
	harvestRest     = time.Minute
	harvestLongRest = time.Hour
)

// turns reads conversations to their end, by one request of each in turn, so that where much is
// said keeps nobody waiting. One that fails rests and is left out; so many that fail in a row end
// it, as do errEnough and ctx. The error is the first.
func (h *Harvester) turns(ctx context.Context, rooms []string, ask asking, failures int) (sum Harvested, first error) {
	smaller := map[string]int{} // halvings, because somebody wrote in the middle
	failed := 0
	for len(rooms) > 0 && ctx.Err() == nil {
		room := rooms[0]
		rooms = rooms[1:]
		done, more, err := h.part(ctx, room, smaller[room], ask)
		sum.add(done)
		if done.Messages > 0 {
			h.log.Info("harvested", "room", room, "messages", done.Messages, "added", done.Added, "known", done.Known, "refused", done.Refused, "left", done.Left)
		}
		switch {
		case errors.Is(err, errGaveWay):
			smaller[room]++
			rooms = append(rooms, room)
			continue
		case err == nil && more:
			failed = 0
			rooms = append(rooms, room)
			continue
		}
		h.ended(ctx, room, err)
		if err == nil {
			continue
		}
		if first == nil {
			first = fmt.Errorf("harvest %s: %w", room, err)
		}
		if failed++; errors.Is(err, errEnough) || failed >= failures {
			return sum, first
		}
	}
	if first == nil && len(rooms) > 0 {
		first = ctx.Err()
	}
	return sum, first
}

// ended notes how reading a conversation ended: it rests if that came to nothing.
func (h *Harvester) ended(ctx context.Context, room string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.due, room)
		delete(h.rests, room)
		return
	}
	if ctx.Err() != nil || errors.Is(err, errEnough) {
		return
	}
	r := h.rests[room]
	wait := min(harvestRest<<min(r.failed, 10), harvestLongRest)
	h.rests[room] = harvested{failed: r.failed + 1, until: h.cfg.Now().Add(wait)}
	h.log.Warn("not harvested; nothing is lost, it is tried again", "room", room, "in", wait, "err", err)
}

// silent lists the conversations with messages to be read in which nobody has said anything
// since then, those that failed last at the end, and how many messages are to be read in all.
func (h *Harvester) silent(ctx context.Context, since time.Time) (rooms []string, messages int, err error) {
	all, err := h.waiting(ctx)
	for _, w := range all {
		messages += w.messages
		if !w.heard.After(since) {
			rooms = append(rooms, w.room)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortStableFunc(rooms, func(a, b string) int { return h.rests[a].failed - h.rests[b].failed })
	return rooms, messages, err
}

// harvestDay is how long a request counts for how many there may be.
const harvestDay = 24 * time.Hour

// byDay asks, as long as not too much was asked in the last 24 hours, as far as messages tell: those
// read by one request were read at one moment.
func (h *Harvester) byDay(ctx context.Context, prompt string) (string, error) {
	now := h.cfg.Now()
	asked, err := store.Column[int64](ctx, h.cfg.DB, `SELECT DISTINCT at FROM harvest WHERE state = 'done' AND reason = '' AND at > ? AND at <= ? ORDER BY at`,
		now.Add(-harvestDay).UnixMilli(), now.UnixMilli())
	if err != nil {
		return "", fmt.Errorf("count the requests of the last day: %w", err)
	}
	if enough := len(asked) >= h.cfg.Calls; enough {
		if !h.enough {
			h.log.Warn("as much was asked to read conversations as there may be in 24 hours (harvest.calls); nothing is lost, the rest is read later",
				"requests", len(asked), "again", time.UnixMilli(asked[0]).Add(harvestDay))
		}
		h.enough = true
		return "", errEnough
	}
	h.enough = false
	return h.ask(ctx, prompt)
}
