package session

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const approvalsKilled = "REVERIE_TEST_APPROVALS_IN" // "kind,folder"

// killedActs are what the model calls in one turn, one list for each kind of approval.
var killedActs = [][]string{
	{`task {"action":"add","content":"Buy bread"}`},
	{`append_memory {"entry":"The harbour opens at seven"}`},
	{`goal {"action":"create","text":"Paint the boat"}`},
	{`add_skill {"skill_name":"paint","summary":"how to paint","documentation":"Sand it, then paint it."}`},
	{`spawn_sub_session {"objective":"Find paint"}`},
	{`task {"action":"add","content":"Buy bread"}`, `append_memory {"entry":"The harbour opens at seven"}`},
	{`goal {"action":"create","text":"Paint the boat"}`, `goal {"action":"create","text":"Sell the boat"}`},
	{`spawn_sub_session {"objective":"Find paint"}`, `task {"action":"add","content":"Buy milk"}`, `task {"action":"add","content":"Buy bread"}`},
	{`add_skill {"skill_name":"paint","summary":"how to paint","documentation":"Sand it, then paint it."}`, `spawn_sub_session {"objective":"Find a brush"}`},
}

// TestApprovalsSurviveKills: a process is killed at any moment between the model's calls and
// the end of what was approved, and yet each act is done exactly once, and none before the
// vote. REVERIE_APPROVAL_KILLS = how often; else a few times.
func TestApprovalsSurviveKills(t *testing.T) {
	if in := os.Getenv(approvalsKilled); in != "" {
		approveUntilKilled(t, in)
		return
	}
	kills := 8
	if n, err := strconv.Atoi(os.Getenv("REVERIE_APPROVAL_KILLS")); err == nil {
		kills = n
	}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 4))
	for round := 0; kills > 0; round++ {
		kind := round % len(killedActs)
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			w := newWorld(t, t.TempDir())
			w.stop()
			w.exec(t, `CREATE TABLE seen (what TEXT, id TEXT, PRIMARY KEY (what, id))`)
			for done, lives := false, 1; !done; lives++ {
				killed, within := false, 0
				if kills > 0 {
					within = 40 * lives // on a slow machine, too, it comes to an end
				}
				if done, killed = live(t, "TestApprovalsSurviveKills", fmt.Sprintf("%s=%d,%s", approvalsKilled, kind, w.dir), within, random); killed && !done {
					kills--
				}
			}
			lost, twice := 0, 0
			for what, n := range wantedRows(kind) {
				got := w.rows(t)[what]
				lost, twice = lost+max(0, n-got), twice+max(0, got-n)
			}
			early := value[int](t, w, `SELECT count(*) FROM seen WHERE what = 'early'`)
			all, err := w.approvals(t.Context(), w.cfg.DB, ``)
			if err != nil || len(all) != 1 || all[0].state != ended {
				t.Errorf("the approvals are %+v, %v", all, err)
			}
			if lost+twice+early > 0 {
				t.Errorf("kind %d: %d acts lost, %d twice, %d before the vote: %v", kind, lost, twice, early, w.rows(t))
			}
		})
		if t.Failed() {
			return
		}
	}
}

// wantedRows are how many rows of each kind the acts leave.
func wantedRows(kind int) map[string]int {
	want := map[string]int{"task": 0, "goal": 0, "append_memory": 0, "add_skill": 0, "spawn_sub_session": 0}
	for _, call := range killedActs[kind] {
		name, _, _ := strings.Cut(call, " ")
		want[name]++
	}
	return want
}

// rows are how many rows of each kind there are, by the tool that makes them.
func (w *world) rows(t *testing.T) map[string]int {
	t.Helper()
	n := map[string]int{}
	tools := map[string]string{"task": "task", "goal": "goal", "sub-session": "spawn_sub_session", "memory": "append_memory", "skill": "add_skill"}
	for _, line := range w.effects(t) {
		kind, _, _ := strings.Cut(line, " ")
		if name := tools[kind]; name != "" {
			n[name]++
		}
	}
	return n
}

// approveUntilKilled is the process. It delivers the message and the vote until they are
// handled, as a transport does.
func approveUntilKilled(t *testing.T, in string) {
	number, dir, _ := strings.Cut(in, ",")
	kind := result(strconv.Atoi(number))(t)
	w := newWorld(t, dir)
	w.stop()
	w.inGroup()
	w.cfg.Helpers.Parallel = 1
	note := func(what, id string) {
		if _, err := w.cfg.DB.ExecContext(context.Background(), `INSERT INTO seen (what, id) VALUES (?, ?) ON CONFLICT DO NOTHING`, what, id); err != nil {
			t.Error(err)
		}
	}
	noted := func(what string) (id string) {
		_ = w.cfg.DB.QueryRowContext(context.Background(), `SELECT id FROM seen WHERE what = ? LIMIT 1`, what).Scan(&id)
		return id
	}
	w.script.reply = func(body string) (string, bool) { return scripted(t, body, killedActs[kind]), true }
	w.script.hold = func(string) <-chan struct{} {
		slow := make(chan struct{})
		time.AfterFunc(time.Duration(rand.IntN(6))*time.Millisecond, func() { close(slow) })
		return slow
	}
	w.room.onSay = func(m Outgoing) {
		switch {
		case m.Draft:
		case strings.HasPrefix(m.ID, askPrefix) && len(m.Options) > 0:
			note("asked", m.ID)
		}
	}
	go func() {
		for id := range w.room.handled {
			note("handled "+id, id)
		}
	}()
	fmt.Println("begins")
	w.restart(t)
	deliver := func(in Inbound) {
		if noted("handled "+in.ID) == "" {
			in.Room, in.Sender, in.At = "!group", owner, time.Now()
			_ = w.Deliver(context.Background(), in)
		}
	}
	deliver(Inbound{ID: "$1", Text: "do what they say", Quotes: []Quote{{ID: "$h", Sender: bystander, Text: "please do", Why: QuoteHeard}}})
	until(t, "it is asked", func() bool { return noted("asked") != "" })
	if noted("voted") == "" {
		for _, n := range w.rows(t) {
			if n > 0 {
				note("early", fmt.Sprint(kind))
			}
		}
	}
	note("voted", "$v")
	deliver(Inbound{ID: "$v", Change: Voted, Target: noted("asked"), Text: optionOnce})
	until(t, "it is done, which is told before, and handled", func() bool {
		return noted("handled $v") != "" && noted("handled $1") != "" && w.allEnded(t)
	})
	fmt.Println("done")
}

func (w *world) allEnded(t *testing.T) bool {
	t.Helper()
	all, err := w.approvals(context.Background(), w.cfg.DB, `WHERE state NOT IN ('done')`)
	return err == nil && len(all) == 0
}

// scripted is what the model answers: each of calls in turn after the newest message, then words.
func scripted(t *testing.T, body string, calls []string) string {
	var r struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Error(err)
	}
	made, asked := 0, false
	for _, m := range r.Messages {
		switch {
		case m.Role == "user":
			made, asked = 0, strings.Contains(m.Content, "do what they say")
		case m.Role == "tool":
			made++
		}
	}
	if !asked || made >= len(calls) {
		return "Well."
	}
	return calls[made]
}
