package session

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/tool"
)

var objective = regexp.MustCompile(`## Objective\nnode (\d+) (\w+)`)

// dag is a random workflow and what its model saw.
type dag struct {
	mu     sync.Mutex
	briefs map[string]string // by node: what its sub-session was told
	asked  map[string]int
	random *rand.Rand
	events int
}

// answer plays the model: a node's objective says how it goes.
func (d *dag) answer(t *testing.T, body string) (string, bool) {
	a, sub, _ := readAsked(t, body)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !sub {
		if d.events++; d.events%5 == 3 {
			return "500", true
		}
		return "noted", true
	}
	for _, m := range a.Messages {
		if found := objective.FindStringSubmatch(m.Content); found != nil {
			d.briefs[found[1]] = m.Content
			d.asked[found[1]]++
			if found[2] == "fails" {
				return "500", true
			}
			return "result of node " + found[1] + ".", true
		}
	}
	t.Error("a sub-session without an objective")
	return "", true
}

// hangs keeps the requests of nodes that hang.
func (d *dag) hangs(body string) <-chan struct{} {
	if found := objective.FindStringSubmatch(strings.ReplaceAll(body, `\n`, "\n")); found != nil && found[2] == "hangs" {
		return make(chan struct{})
	}
	return nil
}

// TestAnyWorkflow: of random workflows of up to 30 nodes in two rooms, some of which
// fail, hang or are cancelled, and whatever the program is stopped in, each
// node ends as it must, is told exactly once, and had the results of all that it needed.
// Holds L17, L18, T7, T8.
func TestAnyWorkflow(t *testing.T) {
	runs := 6
	if testing.Short() {
		runs = 2
	}
	for seed := range runs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { anyWorkflow(t, uint64(seed)) })
	}
}

type dagNode struct {
	id, room, kind string
	needs          []int
	cancelled      bool
}

func anyWorkflow(t *testing.T, seed uint64) {
	d := &dag{briefs: map[string]string{}, asked: map[string]int{}, random: rand.New(rand.NewPCG(seed, 1))}
	w := newWorld(t, t.TempDir())
	w.script.reply = func(body string) (string, bool) { return d.answer(t, body) }
	w.script.hold = func(body string) <-chan struct{} { return d.hangs(body) }
	w.cfg.Grace = 1 // what runs is broken off wherever it is
	w.withHelpers(t)
	nodes := d.spawnAll(t, w)
	for range 1 + d.random.IntN(6) {
		time.Sleep(time.Duration(d.random.IntN(60)) * time.Millisecond)
		w.restart(t)
	}
	until(t, "everything is told", w.allTold(t))
	w.stop()
	d.check(t, w, nodes)
}

func (d *dag) spawnAll(t *testing.T, w *world) []dagNode {
	t.Helper()
	kinds := []string{"works", "works", "works", "works", "works", "works", "fails", "hangs"}
	nodes := make([]dagNode, 3+d.random.IntN(28))
	for i := range nodes {
		n := &nodes[i]
		n.room, n.kind = []string{"!dm", "!group"}[d.random.IntN(2)], kinds[d.random.IntN(len(kinds))]
		job := tool.Job{Objective: fmt.Sprintf("node %d %s", i, n.kind), Mode: "minimal", Timeout: time.Minute}
		if n.kind == "hangs" {
			job.Timeout = 20 * time.Millisecond
		}
		for j := range i {
			if nodes[j].id != "" && nodes[j].room == n.room && d.random.IntN(6) == 0 {
				job.Needs, n.needs = append(job.Needs, nodes[j].id), append(n.needs, j)
			}
		}
		var err error
		if n.id, _, err = w.helpers.Spawn(t.Context(), spawnScope(w, n.room, false), job); err != nil {
			if !strings.Contains(err.Error(), "has failed") { // one that it needs was quick to fail
				t.Fatal(err)
			}
			n.id = ""
		}
	}
	for range d.random.IntN(3) {
		n := &nodes[d.random.IntN(len(nodes))]
		if n.id == "" {
			continue
		}
		switch _, err := w.helpers.Cancel(t.Context(), spawnScope(w, n.room, false), n.id); {
		case err == nil:
			n.cancelled = true
		case !strings.Contains(err.Error(), "has ended already"):
			t.Fatal(err)
		}
	}
	return nodes
}

func (d *dag) check(t *testing.T, w *world, nodes []dagNode) {
	t.Helper()
	byID := map[string]helper{}
	told := map[string]int{}
	for _, room := range []string{"!dm", "!group"} {
		for _, n := range w.helpersOf(t, room) {
			byID[n.id] = n
		}
		for id, n := range w.eventsTold(t, room) {
			told[id] += n
		}
	}
	for i, n := range nodes {
		if n.id == "" {
			continue
		}
		got := byID[n.id]
		broken := ""
		for _, j := range n.needs {
			if byID[nodes[j].id].status != helperCompleted {
				broken = nodes[j].id
			}
		}
		switch {
		case n.cancelled: // who did it need not be told
			if got.status != helperCancelled || told[n.id] != 0 {
				t.Errorf("node %d was cancelled: %s (%s), told %d times", i, got.status, got.reason, told[n.id])
			}
			continue
		case broken != "":
			if got.status != helperFailed || !strings.Contains(got.reason.String(), "it needed sub_") || d.asked[fmt.Sprint(i)] != 0 {
				t.Errorf("node %d needed %s: %s (%s), asked %d times", i, broken, got.status, got.reason, d.asked[fmt.Sprint(i)])
			}
		case n.kind == "fails" || n.kind == "hangs":
			if got.status != helperFailed || got.reason == "" {
				t.Errorf("node %d %s: %s (%s)", i, n.kind, got.status, got.reason)
			}
		case got.status != helperCompleted || got.result != fmt.Sprintf("result of node %d.", i):
			t.Errorf("node %d %s: %s %q (%s)", i, n.kind, got.status, got.result, got.reason)
		}
		if broken == "" && n.kind != "hangs" { // its time may be up before the model is asked
			for _, j := range n.needs {
				if !strings.Contains(d.briefs[fmt.Sprint(i)], fmt.Sprintf("> result of node %d.", j)) {
					t.Errorf("node %d works without the result of %d:\n%s", i, j, d.briefs[fmt.Sprint(i)])
				}
			}
		}
		if told[n.id] != 1 {
			t.Errorf("node %d %s (%s) is told %d times", i, n.kind, got.status, told[n.id])
		}
		if _, said := w.room.final["re:"+got.event]; !said {
			t.Errorf("node %d %s: nothing was said of %q", i, n.kind, got.event)
		}
	}
}
