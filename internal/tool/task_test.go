package tool

import (
	"context"
	"regexp"
	"reverie/internal/goal"
	"reverie/internal/test/expect"
	"slices"
	"strings"
	"testing"
	"time"
)

var taskID = regexp.MustCompile(`task_[a-z0-9]+`)

func TestTask(t *testing.T) {
	w := newWorkshop(t)
	here := direct()
	added := w.ok(t, here, "task", `{"action": "add", "content": "Water the plants", "priority": "2", "schedule_type": "daily", "at": "9:00"}`)
	expect.Has(t, added, "Added: [P2] #task_", "Water the plants [daily at 09:00]", "Due next: ")
	id := taskID.FindString(added)
	plain := w.ok(t, here, "task", `{"action": "add", "content": "Call Jana", "ai_prompt": "Say hello"}`)
	expect.Has(t, plain, "[P5]")
	expect.False(t, strings.Contains(plain, "Due next"), "a task without a schedule speaks of one")

	list := w.ok(t, here, "task", `{"action": "list"}`)
	expect.Has(t, list, "[P2] #"+id, "Call Jana → Say hello")
	expect.False(t, strings.Index(list, "Water") > strings.Index(list, "Jana"), "not in the order of priority:\n%s", list)
	expect.Has(t, w.ok(t, here, "task", `{"action": "update", "task_id": "#`+id+`", "content": "Water all plants", "priority": 1, "schedule_type": "none"}`), "Changed: [P1] #"+id+": Water all plants")
	if list := w.ok(t, here, "task", `{"action":"list"}`); strings.Contains(list, "daily") {
		t.Errorf("schedule_type none kept the schedule: %s", list)
	}
	expect.Has(t, w.ok(t, here, "task", `{"action": "pause", "task_id": "`+id+`"}`), "Paused: ", "[paused]")
	expect.Has(t, w.ok(t, here, "task", `{"action": "list", "status": "paused"}`), id)
	expect.Has(t, w.ok(t, here, "task", `{"action": "resume", "task_id": "`+id+`", "priority": 3}`), "Active again: [P1]")
	expect.Has(t, w.ok(t, here, "task", `{"action": "complete", "task_id": "`+id+`", "reason": "Done by hand"}`), "Completed: ")
	expect.Has(t, w.ok(t, here, "task", `{"action": "list", "status": "completed"}`), "Water all plants")
	expect.Has(t, w.ok(t, here, "task", `{"action": "list", "status": "all"}`), "Water all plants", "Call Jana")
	expect.Has(t, w.ok(t, here, "task", `{"action": "delete", "task_id": "`+taskID.FindString(plain)+`"}`), "Deleted: ")
	expect.Has(t, w.ok(t, here, "task", `{"action": "list"}`), "There are no such tasks")
}

func TestTaskTeaches(t *testing.T) {
	w := newWorkshop(t)
	for raw, want := range map[string][]string{
		`{"action": "add"}`:                                {"- content: is missing"},
		`{"action": "update"}`:                             {"- task_id: is missing", "- update needs something to change"},
		`{"action": "complete"}`:                           {"- task_id: is missing", "- reason: is missing"},
		`{"action": "pause"}`:                              {"- task_id: is missing"},
		`{"action": "add", "content": "x", "at": "09:00"}`: {"- schedule_type: is missing, and at alone is no schedule"},
		`{"action": "add", "content": "x", "schedule_type": "daily", "at": "noonish"}`:          {"noonish", "HH:MM"},
		`{"action": "add", "schedule_type": "weekly", "at": "09:00"}`:                           {"- content: is missing", "- day_of_week"},
		`{"action": "add", "content": "x", "schedule_type": "none", "at": "09:00"}`:             {"none means no schedule"},
		`{"action": "add", "content": "x", "schedule_type": "interval", "interval_seconds": 5}`: {"interval_seconds: is out of range; send a whole number of at least 60"},
		`{"action": "complete", "task_id": "task_zzzzzzzz", "reason": "Ben saw it"}`:            {"no task #task_zzzzzzzz in this room"},
		`{"action": "add", "content": "x", "schedule_type": "once", "at": "2020-01-01 10:00"}`:  {"past"},
	} {
		expect.Has(t, w.bad(t, direct(), "task", raw), want...)
	}
	expect.Has(t, w.ok(t, direct(), "task", `{"action": "list"}`), "There are no such tasks") // and nothing was stored on the way
}

// TestTaskSchedules: the arguments determine the due time, and an edit moves it.
// Holds T4.
func TestTaskSchedules(t *testing.T) {
	w := newWorkshop(t)
	here := direct()
	for args, want := range map[string]string{
		`"at": "every Monday at 9"`:                                        "[weekly on Monday at 09:00]",
		`"at": "every Monday at 9", "zone": "Asia/Tokyo"`:                  "[weekly on Monday at 09:00 (Asia/Tokyo)]",
		`"schedule_type": "once", "at": "tomorrow at 7"`:                   "[once on ",
		`"schedule_type": "cron", "cron": "30 7 * * mon-fri"`:              "[cron 30 7 * * mon-fri]",
		`"schedule_type": "daily", "at": "07:00", "zone": "Europe/Berlin"`: "[daily at 07:00 (Europe/Berlin)]",
	} {
		expect.Has(t, w.ok(t, here, "task", `{"action": "add", "content": "x", "catch_up": "all", `+args+`}`), want, "Due next: ")
	}
	id := taskID.FindString(w.ok(t, here, "task", `{"action": "add", "content": "x", "at": "every day at 9", "ai_prompt": "look", "background": true}`))
	expect.Has(t, w.ok(t, here, "task", `{"action": "update", "task_id": "`+id+`", "at": "every day at 21:15"}`), "[daily at 21:15]", " 21:15 ")
	for args, want := range map[string]string{
		`"at": "sometime"`: "for example", `"schedule_type": "once", "at": "every Monday at 9"`: "weekly on Monday at 09:00", `"at": "tomorrow at 7", "day_of_week": "mon"`: "schedule_type: is missing",
		`"at": "every day at 7", "zone": "Mars"`: "zone", `"schedule_type": "cron", "cron": "often"`: "cron", `"catch_up": "some"`: "catch_up",
	} {
		expect.Has(t, w.bad(t, here, "task", `{"action": "add", "content": "x", `+args+`}`), want)
	}
}

// TestCompleteNeedsEvidence: a reason that only says "done" changes nothing, nor does one from
// another room.
// Holds L16.
func TestCompleteNeedsEvidence(t *testing.T) {
	w := newWorkshop(t)
	id := taskID.FindString(w.ok(t, direct(), "task", `{"action": "add", "content": "Water the plants", "at": "every day at 9"}`))
	for _, reason := range []string{"done", "The task is completed.", "Water the plants: done"} {
		expect.Has(t, w.bad(t, direct(), "task", `{"action": "complete", "task_id": "`+id+`", "reason": "`+reason+`"}`), "what shows it")
	}
	before := expect.Must(w.cfg.Tasks.Get(t.Context(), direct().Place(), id))(t)
	expect.Has(t, w.bad(t, group(), "task", `{"action": "complete", "task_id": "`+id+`", "reason": "Anna says they are watered"}`), "no task #"+id+" in this room")
	after, err := w.cfg.Tasks.Get(t.Context(), direct().Place(), id)
	if err != nil || after.NextDue.IsZero() || after.Status != before.Status || !after.NextDue.Equal(before.NextDue) || !after.Updated.Equal(before.Updated) {
		t.Errorf("completing it from another room left %+v of %+v: %v", after, before, err)
	}
	expect.Has(t, w.ok(t, direct(), "task", `{"action": "complete", "task_id": "`+id+`", "reason": "Anna says they are watered"}`), "Completed: ")
}

var goalID = regexp.MustCompile(`goal_[a-z2-7]{8}`)

func TestGoal(t *testing.T) {
	w := newWorkshop(t)
	here := direct()
	expect.Has(t, w.ok(t, here, "goal", `{"action": "list"}`), "There are no goals in this room. create makes one.")
	made := w.ok(t, here, "goal", `{"action": "create", "text": "Ship the release", "priority": "High"}`)
	expect.Has(t, made, ": Ship the release [high priority, active]")
	first := goalID.FindString(made)
	expect.Has(t, w.ok(t, here, "goal", `{"action": "checkpoint", "text": "Plan it"}`), "1 steps done]", "\n⏳ 1. Plan it")
	expect.Has(t, w.ok(t, here, "goal", `{"action": "checkpoint", "text": "Build it", "status": "in_progress"}`), "\n🔄 2. Build it (IN PROGRESS)")
	expect.Has(t, w.ok(t, here, "goal", `{"action": "checkpoint", "number": 1, "status": "done"}`), "1 of 2 steps done", "\n✅ 1. Plan it")
	expect.Has(t, w.ok(t, here, "goal", `{"action": "decision", "text": "Use SQLite"}`), "\nDecision 1: Use SQLite")
	expect.Has(t, w.ok(t, here, "goal", `{"action": "decision", "number": "1", "reason": "one file", "locked": true}`), "\nDecision 1: 🔒 Use SQLite (locked)")
	expect.Has(t, w.ok(t, here, "goal", `{"action": "artifact", "path": "docs/plan.md", "change": "created"}`), "Ship")
	expect.Has(t, w.ok(t, here, "goal", `{"action": "update", "next": "Build it", "priority": "low"}`), "[low priority, active")
	expect.Has(t, w.ok(t, here, "goal", `{"action": "checkpoint", "number": 2, "status": "done"}`), "2 of 2 steps done", "All steps are done: complete the goal")

	expect.Has(t, w.ok(t, here, "goal", `{"action": "create", "text": "Write the book"}`), "[medium priority, active]")
	list := w.ok(t, here, "goal", `{"action": "list"}`)
	expect.Has(t, list, "Write the book [medium priority, active]\n", first+": Ship the release [low priority, paused, 2 of 2 steps done]")
	expect.Has(t, w.ok(t, here, "goal", `{"action": "resume", "goal_id": "#`+first+`"}`), "active")
	expect.Has(t, w.ok(t, here, "goal", `{"action": "pause"}`), "paused")
	expect.Has(t, w.ok(t, here, "goal", `{"action": "complete", "goal_id": "`+first+`", "reason": "It is out"}`), "completed")
	expect.Has(t, w.ok(t, here, "goal", `{"action": "resume"}`), "Write the book [medium priority, active]")
	expect.Has(t, w.ok(t, here, "goal", `{"action": "abandon", "reason": "No time"}`), "abandoned")
	expect.Has(t, w.ok(t, here, "goal", `{"action": "list"}`), "→ It is out", "→ No time")

	g, err := w.cfg.Goals.Get(t.Context(), here.Place(), first)
	if err != nil || g.User != owner || len(g.Artifacts) != 1 || g.Artifacts[0] != (goal.Artifact{Action: "created", Path: "docs/plan.md"}) ||
		g.Decisions[0].Rationale != "one file" {
		t.Errorf("%+v, %v", g, err)
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
		expect.Has(t, w.bad(t, direct(), "goal", raw), want...)
	}
	expect.Has(t, w.ok(t, direct(), "goal", `{"action": "list"}`), "There are no goals") // and nothing was stored on the way
}

// A locked decision cannot be changed in any way, and the model is told so.
func TestGoalLocked(t *testing.T) {
	w := newWorkshop(t)
	w.ok(t, direct(), "goal", `{"action": "create", "text": "Ship"}`)
	w.ok(t, direct(), "goal", `{"action": "decision", "text": "Use SQLite", "locked": true}`)
	for _, raw := range []string{
		`{"action": "decision", "number": 1, "text": "Use Postgres"}`,
		`{"action": "decision", "number": 1, "reason": "another"}`,
	} {
		expect.Has(t, w.bad(t, direct(), "goal", raw), `decision 1 "Use SQLite" is locked and never changes: keep to it`)
	}
	for _, raw := range []string{
		`{"action": "decision", "number": 1, "locked": false}`,
		`{"action": "decision", "text": "use sqlite", "locked": false}`,
	} {
		expect.Has(t, w.ok(t, direct(), "goal", raw), "Decision 1: 🔒 Use SQLite (locked)")
	}
	list := w.ok(t, direct(), "goal", `{"action": "list"}`)
	if expect.Has(t, list, "Decision 1: 🔒 Use SQLite (locked)"); strings.Contains(list, "Decision 2") || strings.Contains(list, "Postgres") {
		t.Error(list)
	}
	w.ok(t, direct(), "goal", `{"action": "decision", "text": "Log to a file", "locked": false}`)
}

// TestGoalStaysInItsRoom: one room's goals do not exist in another.
func TestGoalStaysInItsRoom(t *testing.T) {
	w := newWorkshop(t)
	id := goalID.FindString(w.ok(t, direct(), "goal", `{"action": "create", "text": "a secret plan"}`))
	if got := w.ok(t, group(), "goal", `{"action": "list"}`); strings.Contains(got, "secret") {
		t.Errorf("another room sees it: %s", got)
	}
	for _, action := range []string{"update", "checkpoint", "decision", "artifact", "pause", "resume", "complete", "abandon"} {
		got := w.bad(t, group(), "goal", `{"action": "`+action+`", "goal_id": "`+id+`", "text": "x", "reason": "y", "path": "z", "change": "created"}`)
		if expect.Has(t, got, "no goal #"+id+" in this room"); strings.Contains(got, "secret") {
			t.Errorf("%s: %s", action, got)
		}
	}
	expect.Has(t, w.ok(t, direct(), "goal", `{"action": "list"}`), "a secret plan [medium priority, active]")
}

// spawned records the last job.
type spawned struct{ job Job }

func (s *spawned) Spawn(_ context.Context, _ Scope, job Job) (id, waits string, err error) {
	s.job = job
	return "sub_ab12cd34", map[bool]string{true: "when sub_x is done"}[len(job.Needs) > 0], nil
}
func (s *spawned) Status(_ context.Context, _ Scope, id string) (string, error) {
	return "status of " + id, nil
}
func (s *spawned) Cancel(_ context.Context, _ Scope, id string) (string, error) {
	return "cancelled " + id, nil
}

func TestSpawnSubSession(t *testing.T) {
	w, s, scope := newWorkshop(t), &spawned{}, direct()
	scope.Spawner = s
	expect.Has(t, w.ok(t, scope, SpawnSubSession, `{"objective":"look"}`), "sub_ab12cd34 has begun")
	j := s.job
	expect.False(t, j.Objective != "look" || j.Mode != "minimal" || !slices.Equal(j.Tools, profiles["researcher"]), "job %+v", j)
	expect.Has(t, w.ok(t, scope, SpawnSubSession, `{"objective":"look","mode":"full","timeout":60,"depends_on":"sub_x","depends_on_previous":true}`), "begins when sub_x is done")
	if j := s.job; j.Timeout != time.Minute || !slices.Equal(j.Tools, []string{"*"}) || !slices.Equal(j.Needs, []string{"sub_x"}) || !j.OnPrevious {
		t.Errorf("job %+v", j)
	}
	w.ok(t, scope, SpawnSubSession, `{"objective":"look","tools":["read_file"]}`)
	j = s.job
	expect.False(t, !slices.Equal(j.Tools, []string{"read_file"}), "job %+v", j)
	expect.Has(t, w.ok(t, scope, SpawnSubSession, `{"action":"status"}`), "status of ")
	expect.Has(t, w.ok(t, scope, SpawnSubSession, `{"action":"cancel","id":"sub_x"}`), "cancelled sub_x")

	scope.Policy = Policy{Deny: []string{"task"}}
	for raw, want := range map[string][]string{
		`{}`:                                 {"- objective: is missing"},
		`{"objective":"x","tools":["task"]}`: {`- tools: "task" is none of yours`},
		`{"action":"cancel"}`:                {"- id: is missing"},
		`{"objective":"x","timeout":5}`:      {"- timeout: is out of range"},
	} {
		s.job = Job{}
		expect.Has(t, w.bad(t, scope, SpawnSubSession, raw), want...)
		expect.False(t, s.job.Objective != "", "%s was spawned", raw)
	}
	expect.Has(t, w.bad(t, direct(), SpawnSubSession, `{"objective":"x"}`), "There are no sub-sessions here")
}
