package prompt

import (
	"slices"
	"strings"
	"testing"

	"reverie/internal/trust"
)

// TestRoomContext: what a room is about stands once in the system text of every layout, as
// its owner's words; another text begins an epoch, and none says nothing.
func TestRoomContext(t *testing.T) {
	const summer, winter = "This room plans the school's summer fair.", "This room plans the winter ball."
	for _, layout := range Layouts() {
		w := newWorld(t, layout)
		w.context = summer
		w.says("Hello")
		p := w.send()
		if got := strings.Count(p.Prefix, "# About This Room\n"+summer); got != 1 || strings.Contains(p.Prefix, `source="context"`) {
			t.Errorf("%s: it stands %d times:\n%s", layout, got, p.Prefix)
		}
		at := slices.IndexFunc(p.Report.Sections, func(s SectionReport) bool { return s.ID == "context" })
		if at < 0 || p.Report.Sections[at].Integrity != trust.Owner {
			t.Errorf("%s: its section is %+v", layout, p.Report.Sections)
		}
		w.answers("Hello.")
		if reason := w.asks("And now?"); layout == Stable && reason != "" {
			t.Errorf("the same words begin an epoch: %s", reason)
		}
		w.answers("Still.")
		w.context = winter
		if reason := w.asks("And now?"); layout == Stable && reason != "context changed" {
			t.Errorf("other words: epoch %q", reason)
		}
		w.expect(true, winter)
		w.expect(false, summer)
		w.context = ""
		w.asks("And now?")
		w.expect(false, "About This Room")
	}
}

// TestRoomContextOfJobs: a job that a room is given is done with what the room is about.
func TestRoomContextOfJobs(t *testing.T) {
	w := newWorld(t, Stable)
	w.context = "This room plans the school's summer fair."
	w.says("Do it.")
	turn := w.turn()
	turn.Job()
	p := w.assembles(turn)
	if !slices.ContainsFunc(p.Report.Sections, func(s SectionReport) bool { return s.ID == "context" }) {
		t.Errorf("a job is not told:\n%s", p.Prefix)
	}
}
