package prompt

import "context"

// gatherClock gathers the local time, to the minute.
func gatherClock(_ context.Context, r *request) (*content, error) {
	now := r.turn.Now.In(r.a.cfg.Location).Format("Monday, 2006-01-02 15:04 MST")
	a := r.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clock == nil || a.clock.lines[0] != now {
		a.clock = newContent(content{source: "clock", lines: []string{now}})
	}
	return a.clock, nil
}
