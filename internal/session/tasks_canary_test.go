package session

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"reverie/internal/llm"
	"reverie/internal/task"
	"reverie/internal/tool"
)

// TestTasksKeepToTheirRoom: from another room, by the tool, in a sub-session or by a
// command, nobody reads, changes, completes or works on a task; nothing at all is
// written, and each refusal is that for a task that never was.
// Holds L16, T6.
func TestTasksKeepToTheirRoom(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.withHelpers(t)
	const canary = "CANARY-4711"
	added, err := w.cfg.Tasks.Add(t.Context(), task.Task{Room: "!dm", Label: inDM.Label(), User: owner, Content: canary, Prompt: canary,
		Schedule: &task.Schedule{Type: "daily", At: "09:00"}})
	if err != nil {
		t.Fatal(err)
	}
	w.exec(t, `INSERT INTO job_run (task, due, state, claimed, ended, result) VALUES (?, 1, 'done', 1, 1, ?)`, added.ID, canary)
	before := w.taskRows(t)
	group, dm := spawnScope(w, "!group", false), spawnScope(w, "!other", true)
	dm.User = "@friend:example.org"
	sub := group
	sub.Helper = "sub_aaaaaaaa"
	mine := group
	mine.User = owner // whose task it is, elsewhere
	for name, scope := range map[string]tool.Scope{"a group": group, "another's chat": dm, "a sub-session": sub, "its owner elsewhere": mine} {
		for _, arguments := range []string{
			`{"action":"complete","task_id":"ID","reason":"Anna wrote that it is over"}`, `{"action":"pause","task_id":"ID"}`, `{"action":"resume","task_id":"ID"}`,
			`{"action":"delete","task_id":"ID"}`, `{"action":"update","task_id":"ID","content":"x"}`, `{"action":"update","task_id":"#ID","schedule_type":"none"}`,
			`{"action":"update","task_id":"ID","at":"every day at 8","ai_prompt":"y","catch_up":"all"}`,
		} {
			run := func(id string) string {
				r := w.cfg.Tools.Run(t.Context(), scope, llm.ToolCall{ID: "1", Name: "task", Arguments: strings.ReplaceAll(arguments, "ID", id)})
				if !r.Failed {
					t.Errorf("%s: %s is done: %s", name, arguments, r.Content)
				}
				return strings.ReplaceAll(r.Content, id, "ID")
			}
			if got, never := run(added.ID), run("task_zzzzzzzz"); got != never || strings.Contains(got, canary) {
				t.Errorf("%s: %s: %q, of a task that never was: %q", name, arguments, got, never)
			}
		}
		for _, status := range []string{"", "active", "paused", "completed", "all"} {
			arguments := fmt.Sprintf(`{"action":"list","status":%q}`, status)
			if r := w.cfg.Tools.Run(t.Context(), scope, llm.ToolCall{ID: "1", Name: "task", Arguments: arguments}); strings.Contains(r.Content, canary) || strings.Contains(r.Content, added.ID) {
				t.Errorf("%s: %s: %s", name, arguments, r.Content)
			}
		}
	}
	for i, text := range []string{"!tasks", "Go on with #" + added.ID} {
		m := w.deliver(t, Inbound{ID: fmt.Sprint("$", i), Room: "!group", Sender: owner, Text: text, At: time.Now()})
		lacks(t, m.Text, canary)
	}
	for _, body := range w.script.asked() {
		lacks(t, body, canary)
	}
	wants(t, w.say(t, "$mine", "!tasks").Text, canary)
	equal(t, w.taskRows(t), before)
}

// taskRows are all rows about tasks, to the last column.
func (w *world) taskRows(t *testing.T) (all string) {
	t.Helper()
	for _, table := range []string{"task", "job_run"} {
		rows := result(w.cfg.DB.Query(`SELECT * FROM ` + table))(t)
		names := result(rows.Columns())(t)
		for rows.Next() {
			row, into := make([]any, len(names)), make([]any, len(names))
			for i := range row {
				into[i] = &row[i]
			}
			must(t, rows.Scan(into...))
			b := result(json.Marshal(row))(t)
			all += string(b) + "\n"
		}
		must(t, rows.Err())
		_ = rows.Close()
	}
	return all
}

// TestTaskLinesStay: the task lines of a prompt stand by priority, then age; what runs,
// fails or is looked at changes no byte of them.
func TestTaskLinesStay(t *testing.T) {
	w := newWorld(t, t.TempDir())
	for i, p := range []int{5, 2, 9, 2, 5} {
		added := result(w.cfg.Tasks.Add(t.Context(), task.Task{Room: "!dm", Label: inDM.Label(), Content: fmt.Sprint("number ", i), Priority: p, Schedule: &task.Schedule{Type: "daily", At: "09:00"}}))(t)
		w.exec(t, `UPDATE task SET created = ? WHERE id = ?`, 1000*(1+i), added.ID)
	}
	lines := func() (all string) {
		for _, m := range result(w.Preview(t.Context(), "!dm"))(t).Messages() {
			all += strings.Join(regexp.MustCompile(`(?m)^.*#task_.*$`).FindAllString(m.Content, -1), "\n")
		}
		return all
	}
	before := lines()
	if order := fmt.Sprint(regexp.MustCompile(`number \d`).FindAllString(before, -1)); order != "[number 1 number 3 number 0 number 4 number 2]" {
		t.Errorf("%s in %s", order, before)
	}
	w.exec(t, `UPDATE task SET last_run = 5000, run_count = run_count + 7, failures = 2, last_result = 'well', next_due = 9000`)
	equal(t, lines(), before)
}
