package task

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// down is what a run comes to while no model answers.
func down(tries *int) func(Run) error {
	return func(r Run) error {
		if r.Notice {
			return nil
		}
		*tries++
		return fmt.Errorf("%w: connection refused", ErrOutage)
	}
}

// through lets the time pass until the given day and hour, ten minutes at a time.
func (p *post) through(day, hour int) {
	for end := time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC); p.now.Before(end); {
		p.now = p.now.Add(10 * time.Minute)
		p.look()
		p.work()
	}
}

// TestOutage: while no model can be reached, a run is tried every half an hour, and
// its task is not paused for it, nor are its own failures forgotten or added to.
func TestOutage(t *testing.T) {
	p := newPost(t)
	tea := p.add("tea", "", Schedule{Type: daily, At: "09:00"})
	tries := 0
	p.fail = down(&tries)
	p.through(21, 20)
	if tries != 23 { // 09:00, 09:30, … 20:00
		t.Errorf("tried %d times, want 23", tries)
	}
	if got := p.task(tea.ID); got.Status != Active || got.Failures != 0 || got.Runs != 0 {
		t.Errorf("in the outage: %+v", got)
	}
	p.heard()
	p.fail = nil
	p.through(21, 21)
	p.heard("tea 21 09:00")
	if got := p.task(tea.ID); got.Runs != 1 || got.LastResult != "⏰ Reminder: tea" {
		t.Errorf("after the outage: %+v", got)
	}

	// Other failures count as before, with an outage between them.
	p.fail = func(Run) error { return errors.New("no such folder") }
	p.at(22, 9, 0)
	p.fail = down(&tries)
	p.at(22, 9, 1)
	p.at(22, 9, 31)
	if got := p.task(tea.ID); got.Failures != 1 {
		t.Errorf("an outage among failures: %+v", got)
	}
}

// TestLongOutage: after a day a run is given up, and the room hears of it once, not
// every day. What has no other time is paused, so that it can be resumed.
func TestLongOutage(t *testing.T) {
	p := newPost(t)
	tea := p.add("tea", "", Schedule{Type: daily, At: "09:00"})
	call := p.add("call", "", Schedule{Type: once, At: "09:10"})
	tries := 0
	p.fail = down(&tries)
	p.through(22, 9)
	p.at(22, 9, 1)
	p.heard("tea 21 09:00")
	if tries != 49+48 { // the last one of tea at 09:00, of call at 08:40
		t.Errorf("tried %d times, want 97", tries)
	}
	p.through(25, 12)
	p.heard("call 21 09:10")
	want := map[string]string{
		tea.ID: "⚠️ For a day I could reach no language model to work on a task: tea\n" +
			"I leave this time out (Sat 2026-11-21 09:00 UTC); it is due again on Mon 2026-11-23 09:00 UTC.",
		call.ID: "⚠️ For a day I could reach no language model to work on a task: call\n" +
			"I paused it. Ask me to resume it, with a new time if its own has passed.",
	}
	for id, text := range p.said {
		if task, _, _, err := parseRunID(id); err != nil || want[task] != text {
			t.Errorf("%s: %q, want %q", id, text, want[task])
		}
	}
	if got := p.task(call.ID); got.Status != Paused || !strings.Contains(got.Reason.String(), "for a day") {
		t.Errorf("with one time only: %+v", got)
	}
	if got := p.task(tea.ID); got.Status != Active || got.Failures != 0 {
		t.Errorf("with more times: %+v", got)
	}

	// It answers again, and the next outage is another one.
	p.fail = nil
	p.through(26, 12)
	p.order, p.said = nil, map[string]string{}
	p.fail = down(&tries)
	p.through(28, 12)
	p.heard("tea 27 09:00")
}
