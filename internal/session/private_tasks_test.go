package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/task"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

const bob = "@bob:x"

// callTask calls a tool on behalf of who wrote in.
func (w *world) callTask(t *testing.T, in Inbound, name, arguments string) tool.Result {
	t.Helper()
	s := newSession(w.Manager, history.Talk(in.Room))
	s.label = s.caller(in).Label()
	scope := s.toolScope(in, roomMode{})
	return w.cfg.Tools.Run(t.Context(), scope, llm.ToolCall{ID: "1", Name: name, Arguments: arguments})
}

// TestPrivateTasksStayPrivate: a task and a goal of a direct chat do not exist for who comes into
// it later, neither while its person is there nor when that person has left, nor in other rooms,
// nor there for the person: not for commands, not for the model, not for its tools and not for what
// it reports. Nothing is written, and each refusal is that for a task that never was.
// Holds L16, T6.
func TestPrivateTasksStayPrivate(t *testing.T) {
	const canary = "CANARY-9918"
	w := newWorld(t, t.TempDir())
	w.script.forever = "[GOAL] leave my husband " + canary[:3] + " - DONE\n[CHECKPOINT] pack - DONE\nok"
	mine := Inbound{Room: "!dm", Sender: owner, Private: true}
	if m := w.say(t, "$a0", "!goal new leave my husband "+canary); !strings.Contains(m.Text, canary) {
		t.Fatalf("no goal: %q", m.Text)
	}
	r := w.callTask(t, mine, "task", `{"action":"add","content":"see the lawyer `+canary+`","schedule_type":"daily","at":"09:00","ai_prompt":"`+canary+`"}`)
	if r.Failed {
		t.Fatal(r.Content)
	}
	id := taskID.FindString(r.Content)
	w.exec(t, `INSERT INTO job_run (task, due, state, claimed, ended, result) VALUES (?, 1, 'done', 1, 1, ?)`, id, canary)
	rows := w.taskRows(t)
	for n, in := range []Inbound{{Room: "!dm", Sender: bob}, {Room: "!dm", Sender: bob, Private: true}, {Room: "!group", Sender: owner}, {Room: "!other", Sender: friend, Private: true}} {
		for i, text := range []string{"!tasks", "!goal", "!goal history", "!goal done", "!goal pause", "!goal resume", "!status", "What is to be done about #" + id + "?"} {
			said := in
			said.ID, said.Text, said.At = fmt.Sprint("$b", n, "-", i), text, time.Now()
			m := w.deliver(t, said)
			if strings.Contains(m.Text, canary) || text == "!status" && !strings.Contains(m.Text, "0 open tasks") {
				t.Errorf("%d, %s: %q", n, text, m.Text)
			}
		}
		for _, c := range [][2]string{
			{"task", `{"action":"list","status":"all"}`}, {"task", `{"action":"complete","task_id":"ID","reason":"the lawyer wrote that it is over"}`},
			{"task", `{"action":"update","task_id":"ID","content":"x"}`}, {"task", `{"action":"pause","task_id":"ID"}`}, {"task", `{"action":"delete","task_id":"ID"}`},
			{"goal", `{"action":"list"}`}, {"goal", `{"action":"complete","reason":"it is done"}`},
		} {
			got := w.callTask(t, in, c[0], strings.ReplaceAll(c[1], "ID", id))
			never := w.callTask(t, in, c[0], strings.ReplaceAll(c[1], "ID", "task_zzzzzzzz"))
			if strings.Contains(got.Content, canary) || strings.ReplaceAll(got.Content, id, "task_zzzzzzzz") != never.Content {
				t.Errorf("%d, %s %s: %q, of one that never was: %q", n, c[0], c[1], got.Content, never.Content)
			}
		}
	}
	for _, body := range w.script.asked() {
		lacks(t, body, canary)
	}
	equal(t, w.taskRows(t), rows)
	for i, text := range []string{"!tasks", "!goal", "!goal history"} {
		wants(t, w.say(t, fmt.Sprint("$a", 1+i), text).Text, canary)
	}
	w.say(t, "$a9", "Where are we?")
	if asked := w.script.asked(); strings.Count(asked[len(asked)-1], canary) < 2 {
		t.Errorf("the person's model is told: %s", asked[len(asked)-1])
	}
}

// TestTaskRoom: a task is worked on where its readers alone read: in its own room, or in a
// direct chat of its person, who is told. Without one there is no such room.
func TestTaskRoom(t *testing.T) {
	w := newWorld(t, t.TempDir())
	it := result(w.cfg.Tasks.Add(t.Context(), task.Task{Room: "!dm", User: owner, Content: "see the lawyer", Label: inDM.Label()}))(t)
	ours := result(w.cfg.Tasks.Add(t.Context(), task.Task{Room: "!g", User: owner, Content: "paint the fence", Label: inGroup("!g").Label()}))(t)
	want := func(why, room string) {
		t.Helper()
		if got, err := w.TaskRoom(t.Context(), it); err != nil || got != room {
			t.Errorf("%s: %q, %v, want %q", why, got, err, room)
		}
	}
	want("a room in which nobody has written", "")
	w.say(t, "$1", "!help")
	want("a direct chat", "!dm")
	if got, err := w.TaskRoom(t.Context(), ours); err != nil || got != "!g" {
		t.Errorf("a task of a group: %q, %v", got, err)
	}
	w.deliver(t, Inbound{ID: "$2", Room: "!dm", Sender: bob, Text: "!help", Private: true, At: time.Now()})
	want("a direct chat of somebody else now", "")
	w.cfg.DirectChat = func(context.Context, string) (string, error) { return "!chat", nil }
	want("a direct chat in which nobody has written", "")
	w.deliver(t, Inbound{ID: "$3", Room: "!chat", Sender: owner, Text: "!help", Private: true, At: time.Now()})
	n := w.room.count()
	for range 2 {
		want("another direct chat", "!chat")
	}
	if m := w.room.newest(); w.room.count() != n+1 || !m.Notice || !strings.Contains(m.Text, "see the lawyer") {
		t.Errorf("the person is told %d times: %+v", w.room.count()-n, m)
	}
	w.cfg.DirectWith = func(context.Context, string) (string, error) { return "", nil }
	want("others are in all of them now", "")
	w.cfg.DirectWith = func(context.Context, string) (string, error) { return "", errors.New("the disk is full") }
	if got, err := w.TaskRoom(t.Context(), it); err == nil || got != "" {
		t.Errorf("a room that cannot be looked up: %q, %v", got, err)
	}
}

// TestTaskIntegrity: work on a task that is due is trusted no further than the task.
func TestTaskIntegrity(t *testing.T) {
	w := newWorld(t, t.TempDir())
	s := newSession(w.Manager, history.Talk("!dm"))
	in := Inbound{Room: "!dm", Sender: owner, Private: true}
	equal(t, s.caller(in).Integrity, w.level(Inbound{Sender: owner}))
	in.Event = ScheduledTask
	for _, of := range []trust.Integrity{trust.Foreign, trust.Guest, trust.User, trust.Owner} {
		in.Label = trust.Label{Integrity: of, Readers: inDM.Readers()}
		if got := s.caller(in).Label(); got != in.Label {
			t.Errorf("a task of %s is worked on as %+v", of, got)
		}
		if got := s.reporter(in).Integrity; got != min(of, trust.User) {
			t.Errorf("the goal of a task of %s is changed as %s", of, got)
		}
	}
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
