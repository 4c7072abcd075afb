package tool

import (
	"regexp"
	"strings"
	"testing"

	"reverie/internal/task"
)

var goalID = regexp.MustCompile(`goal_[a-z2-7]{8}`)

func TestGoal(t *testing.T) {
	w := newWorkshop(t)
	here := direct()
	wants(t, w.ok(t, here, "goal", `{"action": "list"}`), "There are no goals in this room. create makes one.")
	made := w.ok(t, here, "goal", `{"action": "create", "text": "Ship the release", "priority": "High"}`)
	wants(t, made, ": Ship the release [high priority, active]")
	first := goalID.FindString(made)
	wants(t, w.ok(t, here, "goal", `{"action": "checkpoint", "text": "Plan it"}`), "1 steps done]", "\n⏳ 1. Plan it")
	wants(t, w.ok(t, here, "goal", `{"action": "checkpoint", "text": "Build it", "status": "in_progress"}`), "\n🔄 2. Build it (IN PROGRESS)")
	wants(t, w.ok(t, here, "goal", `{"action": "checkpoint", "number": 1, "status": "done"}`), "1 of 2 steps done", "\n✅ 1. Plan it")
	wants(t, w.ok(t, here, "goal", `{"action": "decision", "text": "Use SQLite"}`), "\nDecision 1: Use SQLite")
	wants(t, w.ok(t, here, "goal", `{"action": "decision", "number": "1", "reason": "one file", "locked": true}`), "\nDecision 1: 🔒 Use SQLite (locked)")
	wants(t, w.ok(t, here, "goal", `{"action": "artifact", "path": "docs/plan.md", "change": "created"}`), "Ship")
	wants(t, w.ok(t, here, "goal", `{"action": "update", "next": "Build it", "priority": "low"}`), "[low priority, active")
	wants(t, w.ok(t, here, "goal", `{"action": "checkpoint", "number": 2, "status": "done"}`), "2 of 2 steps done", "All steps are done: complete the goal")

	wants(t, w.ok(t, here, "goal", `{"action": "create", "text": "Write the book"}`), "[medium priority, active]")
	list := w.ok(t, here, "goal", `{"action": "list"}`)
	wants(t, list, "Write the book [medium priority, active]\n", first+": Ship the release [low priority, paused, 2 of 2 steps done]")
	wants(t, w.ok(t, here, "goal", `{"action": "resume", "goal_id": "#`+first+`"}`), "active")
	wants(t, w.ok(t, here, "goal", `{"action": "pause"}`), "paused")
	wants(t, w.ok(t, here, "goal", `{"action": "complete", "goal_id": "`+first+`", "reason": "It is out"}`), "completed")
	wants(t, w.ok(t, here, "goal", `{"action": "resume"}`), "Write the book [medium priority, active]")
	wants(t, w.ok(t, here, "goal", `{"action": "abandon", "reason": "No time"}`), "abandoned")
	wants(t, w.ok(t, here, "goal", `{"action": "list"}`), "→ It is out", "→ No time")

	goal, err := w.cfg.Tasks.Goals().Get(t.Context(), here.Place(), first)
	if err != nil || goal.User != owner || len(goal.Artifacts) != 1 || goal.Artifacts[0] != (task.Artifact{Action: "created", Path: "docs/plan.md"}) ||
		goal.Decisions[0].Rationale != "one file" {
		t.Errorf("%+v, %v", goal, err)
	}
}

func TestGoalTeaches(t *testing.T) {
	w := newWorkshop(t)
	for raw, want := range map[string][]string{
		`{"action": "create"}`:                                {"goal failed: description is missing: for example"},
		`{"action": "checkpoint"}`:                            {"goal failed: "},
		`{"action": "checkpoint", "text": "x", "status":"?"}`: {"- status: ", "pending, in_progress, done"},
		`{"action": "decision"}`:                              {"goal failed: "},
		`{"action": "artifact"}`:                              {"goal failed: "},
		`{"action": "complete"}`:                              {"goal failed: summary is missing"},
		`{"action": "abandon"}`:                               {"goal failed: reason is missing"},
		`{"action": "pause"}`:                                 {"goal failed: no goal is active in this room: create one"},
		`{"action": "resume"}`:                                {"goal failed: no goal is paused in this room: list the goals"},
		`{"action": "pause", "goal_id": "goal_zzzzzzzz"}`:     {"goal failed: no goal #goal_zzzzzzzz in this room"},
	} {
		wants(t, w.bad(t, direct(), "goal", raw), want...)
	}
	wants(t, w.ok(t, direct(), "goal", `{"action": "list"}`), "There are no goals") // and nothing was stored on the way
}

// A locked decision refuses every way to change it, and says what to do instead.
func TestGoalLocked(t *testing.T) {
	w := newWorkshop(t)
	w.ok(t, direct(), "goal", `{"action": "create", "text": "Ship"}`)
	w.ok(t, direct(), "goal", `{"action": "decision", "text": "Use SQLite", "locked": true}`)
	for _, raw := range []string{
		`{"action": "decision", "number": 1, "text": "Use Postgres"}`,
		`{"action": "decision", "number": 1, "locked": false}`,
		`{"action": "decision", "text": "use sqlite", "locked": false}`,
		`{"action": "decision", "number": 1, "reason": "another"}`,
	} {
		wants(t, w.bad(t, direct(), "goal", raw), `decision 1 "Use SQLite" is locked and never changes: keep to it`)
	}
	list := w.ok(t, direct(), "goal", `{"action": "list"}`)
	if wants(t, list, "Decision 1: 🔒 Use SQLite (locked)"); strings.Contains(list, "Decision 2") || strings.Contains(list, "Postgres") {
		t.Error(list)
	}
	w.ok(t, direct(), "goal", `{"action": "decision", "text": "Log to a file", "locked": false}`)
}

// TestGoalStaysInItsRoom: the goals of one room do not exist in another.
func TestGoalStaysInItsRoom(t *testing.T) {
	w := newWorkshop(t)
	id := goalID.FindString(w.ok(t, direct(), "goal", `{"action": "create", "text": "a secret plan"}`))
	if got := w.ok(t, group(), "goal", `{"action": "list"}`); strings.Contains(got, "secret") {
		t.Errorf("another room sees it: %s", got)
	}
	for _, action := range []string{"update", "checkpoint", "decision", "artifact", "pause", "resume", "complete", "abandon"} {
		got := w.bad(t, group(), "goal", `{"action": "`+action+`", "goal_id": "`+id+`", "text": "x", "reason": "y", "path": "z", "change": "created"}`)
		if wants(t, got, "no goal #"+id+" in this room"); strings.Contains(got, "secret") {
			t.Errorf("%s: %s", action, got)
		}
	}
	wants(t, w.ok(t, direct(), "goal", `{"action": "list"}`), "a secret plan [medium priority, active]")
}
