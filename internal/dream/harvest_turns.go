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

// visit is a conversation that is being read.
type visit struct {
	room    string
	smaller int // halvings, because somebody wrote in the middle
	done    Harvested
}

// turns reads conversations to their end, by one request of each in turn, so that where much is
// said keeps nobody waiting. One that fails rests and is left out; so many that fail in a row end
// it, as do errEnough and ctx. The error is the first.
func (h *Harvester) turns(ctx context.Context, rooms []string, ask asking, failures int) (Harvested, error) {
	left := make([]visit, len(rooms))
	for i, room := range rooms {
		left[i].room = room
	}
	var sum Harvested
	var first error
	failed := 0
	for len(left) > 0 && ctx.Err() == nil {
		v := left[0]
		left = left[1:]
		done, more, err := h.part(ctx, v.room, v.smaller, ask)
		v.done.add(done)
		sum.add(done)
		switch {
		case errors.Is(err, errGaveWay):
			v.smaller++
			left = append(left, v)
			continue
		case err == nil && more:
			failed = 0
			left = append(left, v)
			continue
		}
		h.ended(ctx, v, err)
		if err == nil {
			continue
		}
		if first == nil {
			first = fmt.Errorf("harvest %s: %w", v.room, err)
		}
		if failed++; errors.Is(err, errEnough) || failed >= failures {
			break
		}
	}
	for _, v := range left {
		v.tell(h)
	}
	if first == nil && len(left) > 0 {
		first = ctx.Err()
	}
	return sum, first
}

func (v visit) tell(h *Harvester) {
	if d := v.done; d.Messages > 0 {
		h.log.Info("harvested", "room", v.room, "messages", d.Messages, "requests", d.Requests, "added", d.Added, "known", d.Known, "refused", d.Refused, "left", d.Left)
	}
}

// ended notes how reading a conversation ended: it rests if that came to nothing.
func (h *Harvester) ended(ctx context.Context, v visit, err error) {
	v.tell(h)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.due, v.room)
		delete(h.rests, v.room)
		return
	}
	if ctx.Err() != nil || errors.Is(err, errEnough) {
		return
	}
	r := h.rests[v.room]
	wait := min(harvestRest<<min(r.failed, 10), harvestLongRest)
	h.rests[v.room] = harvested{failed: r.failed + 1, until: h.cfg.Now().Add(wait)}
	h.log.Warn("not harvested; nothing is lost, it is tried again", "room", v.room, "in", wait, "err", err)
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

// recall counts the requests of the last day that a program before this one made, as far as
// messages tell: those read by one request were read at one moment.
func (h *Harvester) recall(ctx context.Context) error {
	now := h.cfg.Now()
	asked, err := store.List(ctx, h.cfg.DB, func(row store.Row) (time.Time, error) {
		var at int64
		err := row.Scan(&at)
		return time.UnixMilli(at), err
	}, `SELECT DISTINCT at FROM harvest WHERE state = 'done' AND reason = '' AND at > ? AND at <= ? ORDER BY at`, now.Add(-harvestDay).UnixMilli(), now.UnixMilli())
	if err != nil {
		return fmt.Errorf("harvest: count the requests of the last day: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = asked
	return nil
}

// byDay asks, as long as not too much was asked in the last 24 hours.
func (h *Harvester) byDay(ctx context.Context, prompt string) (string, error) {
	if !h.mayAsk() {
		return "", errEnough
	}
	return h.ask(ctx, prompt)
}

// mayAsk counts one more request, unless there were too many.
func (h *Harvester) mayAsk() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.cfg.Now()
	h.asked = slices.DeleteFunc(h.asked, func(at time.Time) bool { return now.Sub(at) >= harvestDay || at.After(now) }) // the clock may have been wrong
	if len(h.asked) < h.cfg.Calls {
		h.asked, h.enough = append(h.asked, now), false
		return true
	}
	if !h.enough {
		h.enough = true
		h.log.Warn("as much was asked to read conversations as there may be in 24 hours (harvest.calls); nothing is lost, the rest is read later", "requests", len(h.asked), "again", h.asked[0].Add(harvestDay))
	}
	return false
}
