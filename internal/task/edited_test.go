package task

import (
	"errors"
	"testing"
	"time"
)

// TestEditedInFlight: a schedule that is changed while a run of the old one is worked on
// holds from then on: the run is told, and when it fails it is not tried again, does not
// count against the new schedule, and does not end it.
func TestEditedInFlight(t *testing.T) {
	for _, c := range []struct {
		name   string
		to     *Schedule
		failed error
		next   string // when it is due then
	}{
		{"told", &Schedule{Type: daily, At: "10:00"}, nil, "21 10:00"},
		{"failed", &Schedule{Type: daily, At: "10:00"}, errors.New("garbled"), "21 10:00"},
		{"no model", &Schedule{Type: once, At: "2026-11-22T07:00:00Z"}, ErrOutage, "22 07:00"},
		{"no schedule any more", nil, errors.New("garbled"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPost(t)
			call := p.add("call", "", Schedule{Type: once, At: "2026-11-21 09:00"})
			for range maxFailed - 1 { // as if it had failed before
				must(p.store.db.Exec(`UPDATE task SET failures = failures + 1 WHERE id = ?`, call.ID))(t)
			}
			p.fail = func(r Run) error {
				p.now = p.now.Add(time.Second)
				must(p.store.Update(t.Context(), in(here), r.Task.ID, Patch{Schedule: c.to, ClearSchedule: c.to == nil}))(t)
				p.fail = nil
				return c.failed
			}
			p.at(21, 9, 0)
			p.at(21, 9, 45)
			if c.failed == nil {
				p.heard("call 21 09:00")
			} else {
				p.heard()
			}
			got := p.task(call.ID)
			if got.Status != Active || got.Failures != 0 {
				t.Errorf("%+v", got)
			}
			if next := got.NextDue; next.IsZero() != (c.next == "") || c.next != "" && next.Format("02 15:04") != c.next {
				t.Errorf("due next: %s, want %s", next, c.next)
			}
			if c.next == "" {
				return
			}
			p.now = got.NextDue
			p.look()
			p.work()
			p.heard("call " + c.next)
		})
	}
}
