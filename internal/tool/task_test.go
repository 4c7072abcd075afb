package tool

import (
	"regexp"
	"strings"
	"testing"
)

var taskID = regexp.MustCompile(`task_[a-z0-9]+`)

func TestTask(t *testing.T) {
	w := newWorkshop(t)
	here := direct()
	added := w.ok(t, here, "task", `{"action": "add", "content": "Water the plants", "priority": "2", "schedule_type": "daily", "at": "9:00"}`)
	wants(t, added, "Added: [P2] #task_", "Water the plants [daily at 09:00]", "Due next: ")
	id := taskID.FindString(added)
	plain := w.ok(t, here, "task", `{"action": "add", "content": "Call Jana", "ai_prompt": "Say hello"}`)
	wants(t, plain, "[P5]")
	if strings.Contains(plain, "Due next") {
		t.Error("a task without a schedule speaks of one")
	}

	list := w.ok(t, here, "task", `{"action": "list"}`)
	wants(t, list, "[P2] #"+id, "Call Jana → Say hello")
	if strings.Index(list, "Water") > strings.Index(list, "Jana") {
		t.Errorf("not in the order of priority:\n%s", list)
	}
	wants(t, w.ok(t, here, "task", `{"action": "update", "task_id": "#`+id+`", "content": "Water all plants", "priority": 1, "schedule_type": "none"}`), "Changed: [P1] #"+id+": Water all plants")
	if list := w.ok(t, here, "task", `{"action":"list"}`); strings.Contains(list, "daily") {
		t.Errorf("schedule_type none kept the schedule: %s", list)
	}
	wants(t, w.ok(t, here, "task", `{"action": "pause", "task_id": "`+id+`"}`), "Paused: ", "[paused]")
	wants(t, w.ok(t, here, "task", `{"action": "list", "status": "paused"}`), id)
	wants(t, w.ok(t, here, "task", `{"action": "resume", "task_id": "`+id+`", "priority": 3}`), "Active again: [P1]")
	wants(t, w.ok(t, here, "task", `{"action": "complete", "task_id": "`+id+`", "reason": "Done by hand"}`), "Completed: ")
	wants(t, w.ok(t, here, "task", `{"action": "list", "status": "completed"}`), "Water all plants")
	wants(t, w.ok(t, here, "task", `{"action": "list", "status": "all"}`), "Water all plants", "Call Jana")
	wants(t, w.ok(t, here, "task", `{"action": "delete", "task_id": "`+taskID.FindString(plain)+`"}`), "Deleted: ")
	wants(t, w.ok(t, here, "task", `{"action": "list"}`), "There are no such tasks")
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
		wants(t, w.bad(t, direct(), "task", raw), want...)
	}
	wants(t, w.ok(t, direct(), "task", `{"action": "list"}`), "There are no such tasks") // and nothing was stored on the way
}

// TestTaskSchedules: what the arguments say is when it is due, and an edit moves it.
// Holds T4.
func TestTaskSchedules(t *testing.T) {
	w := newWorkshop(t)
	here := direct()
	for args, want := range map[string]string{
		`"at": "every Monday at 9"`:                                        "[weekly on Monday at 09:00]",
		`"at": "jeden Montag um 9", "zone": "Asia/Tokyo"`:                  "[weekly on Monday at 09:00 (Asia/Tokyo)]",
		`"schedule_type": "once", "at": "明天7点"`:                            "[once on ",
		`"schedule_type": "cron", "cron": "30 7 * * mon-fri"`:              "[cron 30 7 * * mon-fri]",
		`"schedule_type": "daily", "at": "07:00", "zone": "Europe/Berlin"`: "[daily at 07:00 (Europe/Berlin)]",
	} {
		wants(t, w.ok(t, here, "task", `{"action": "add", "content": "x", "catch_up": "all", `+args+`}`), want, "Due next: ")
	}
	id := taskID.FindString(w.ok(t, here, "task", `{"action": "add", "content": "x", "at": "every day at 9", "ai_prompt": "look", "background": true}`))
	wants(t, w.ok(t, here, "task", `{"action": "update", "task_id": "`+id+`", "at": "every day at 21:15"}`), "[daily at 21:15]", " 21:15 ")
	for args, want := range map[string]string{
		`"at": "sometime"`: "for example", `"schedule_type": "once", "at": "every Monday at 9"`: "weekly on Monday at 09:00", `"at": "tomorrow at 7", "day_of_week": "mon"`: "schedule_type: is missing",
		`"at": "every day at 7", "zone": "Mars"`: "zone", `"schedule_type": "cron", "cron": "often"`: "cron", `"catch_up": "some"`: "catch_up",
	} {
		wants(t, w.bad(t, here, "task", `{"action": "add", "content": "x", `+args+`}`), want)
	}
}

// TestCompleteNeedsEvidence: a reason that only says that it is done changes nothing,
// and neither does one from another room.
// Holds L16.
func TestCompleteNeedsEvidence(t *testing.T) {
	w := newWorkshop(t)
	id := taskID.FindString(w.ok(t, direct(), "task", `{"action": "add", "content": "Water the plants", "at": "every day at 9"}`))
	for _, reason := range []string{"done", "The task is completed.", "Water the plants: done"} {
		wants(t, w.bad(t, direct(), "task", `{"action": "complete", "task_id": "`+id+`", "reason": "`+reason+`"}`), "what shows it")
	}
	before := result(w.cfg.Tasks.Get(t.Context(), direct().Place(), id))(t)
	wants(t, w.bad(t, group(), "task", `{"action": "complete", "task_id": "`+id+`", "reason": "Anna says they are watered"}`), "no task #"+id+" in this room")
	after, err := w.cfg.Tasks.Get(t.Context(), direct().Place(), id)
	if err != nil || after.NextDue.IsZero() || after.Status != before.Status || !after.NextDue.Equal(before.NextDue) || !after.Updated.Equal(before.Updated) {
		t.Errorf("completing it from another room left %+v of %+v: %v", after, before, err)
	}
	wants(t, w.ok(t, direct(), "task", `{"action": "complete", "task_id": "`+id+`", "reason": "Anna says they are watered"}`), "Completed: ")
}
