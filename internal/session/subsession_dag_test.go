package session

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/subsession"
	"reverie/internal/test/expect"
	"reverie/internal/tool"
)

var objectiveLine = regexp.MustCompile(`## Objective\nnode (\d+) (\w+)`)

// dag is a random workflow and its model's requests.
type dag struct {
	mu     sync.Mutex
	briefs map[string]string // by node: what its sub-session was told
	asked  map[string]int
	random *rand.Rand
	events int
}

// answer is the model: a node's objective decides its outcome.
func (d *dag) answer(t *testing.T, body string) (string, bool) {
	a, sub, _ := readAsked(t, body)
	defer holding(&d.mu)()
	if !sub {
		if d.events++; d.events%5 == 3 {
			return "500", true
		}
		return "noted", true
	}
	for _, m := range a.Messages {
		if found := objectiveLine.FindStringSubmatch(m.Content); found != nil {
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

// hangs holds the requests of nodes that hang.
func (d *dag) hangs(body string) <-chan struct{} {
	if found := objectiveLine.FindStringSubmatch(strings.ReplaceAll(body, `\n`, "\n")); found != nil && found[2] == "hangs" {
		return make(chan struct{})
	}
	return nil
}

// TestAnyWorkflow: in random workflows with failures, hangs, cancellations and restarts, each node ends correctly and is reported once.
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
	w.withSubSessions(t)
	nodes := d.spawnAll(t, w)
	for range 1 + d.random.IntN(6) {
		time.Sleep(time.Duration(d.random.IntN(60)) * time.Millisecond)
		w.restart(t)
	}
	waitUntil(t, "everything is told", w.allTold(t))
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
		if n.id, _, err = w.subSessions.Spawn(t.Context(), spawnScope(w, n.room, false), job); err != nil {
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
		switch _, err := w.subSessions.Cancel(t.Context(), spawnScope(w, n.room, false), n.id); {
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
	byID := map[string]subSessionRow{}
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
			if byID[nodes[j].id].status != subsession.Completed {
				broken = nodes[j].id
			}
		}
		switch {
		case n.cancelled: // who did it need not be told
			expect.False(t, got.status != subsession.Cancelled || told[n.id] != 0,
				"node %d was cancelled: %s (%s), told %d times", i, got.status, got.reason, told[n.id])
			continue
		case broken != "":
			expect.False(t, got.status != subsession.Failed || !strings.Contains(got.reason.String(), "it needed sub_") || d.asked[fmt.Sprint(i)] != 0,
				"node %d needed %s: %s (%s), asked %d times", i, broken, got.status, got.reason, d.asked[fmt.Sprint(i)])
		case n.kind == "fails" || n.kind == "hangs":
			expect.False(t, got.status != subsession.Failed || got.reason == "", "node %d %s: %s (%s)", i, n.kind, got.status, got.reason)
		case got.status != subsession.Completed || got.result != fmt.Sprintf("result of node %d.", i):
			t.Errorf("node %d %s: %s %q (%s)", i, n.kind, got.status, got.result, got.reason)
		}
		if broken == "" && n.kind != "hangs" { // its time may be up before the model is asked
			for _, j := range n.needs {
				expect.False(t, !strings.Contains(d.briefs[fmt.Sprint(i)], fmt.Sprintf("> result of node %d.", j)),
					"node %d works without the result of %d:\n%s", i, j, d.briefs[fmt.Sprint(i)])
			}
		}
		expect.False(t, told[n.id] != 1, "node %d %s (%s) is told %d times", i, n.kind, got.status, told[n.id])
		_, said := w.room.final["re:"+got.event]
		expect.False(t, !said, "node %d %s: nothing was said of %q", i, n.kind, got.event)
	}
}

const helpersKilled = "REVERIE_TEST_HELPERS_IN" // "seed,folder"

// TestKilledWorkflows: the same holds after kills of the process at any moment (REVERIE_SUB_KILLS kills).
// Holds L18, L20.
func TestKilledWorkflows(t *testing.T) {
	if in := os.Getenv(helpersKilled); in != "" {
		workUntilKilled(t, in)
		return
	}
	kills := 6
	if n, err := strconv.Atoi(os.Getenv("REVERIE_SUB_KILLS")); err == nil {
		kills = n
	}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 3))
	nodes := 0
	for seed := uint64(100); kills > 0; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := &dag{briefs: map[string]string{}, asked: map[string]int{}, random: rand.New(rand.NewPCG(seed, 1))}
			w := newWorld(t, t.TempDir())
			w.withSubSessions(t)
			w.stop() // what is asked for is work for the other process
			w.exec(t, `CREATE TABLE said (id TEXT PRIMARY KEY); CREATE TABLE asked (node TEXT PRIMARY KEY, n INTEGER NOT NULL)`)
			work := d.spawnAll(t, w)
			nodes += len(work)
			for done := false; !done; {
				killed, within := false, 0
				if kills > 0 {
					within = 250
				}
				if done, killed = live(t, "TestKilledWorkflows", fmt.Sprintf("%s=%d,%s", helpersKilled, seed, w.dir), within, random); killed {
					kills--
				}
			}
			d.recall(t, w, work)
			d.check(t, w, work)
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d nodes", nodes)
}

// live runs the process once. It ends when all work is done, or is killed within kill milliseconds; 0 = never.
func live(t *testing.T, test, env string, within int, random *rand.Rand) (done, killed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env)
	out := expect.Must(cmd.StdoutPipe())(t)
	expect.OK(t, cmd.Start())
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said += lines.Text() + "\n"
		switch lines.Text() {
		case "begins":
			if within > 0 {
				time.Sleep(time.Duration(random.IntN(within)) * time.Millisecond)
				_ = cmd.Process.Kill()
			}
		case "done":
			done = true
		}
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil && cmd.ProcessState.Exited() {
		t.Fatalf("the process: %v\n%s", err, said)
	}
	return done, !cmd.ProcessState.Exited()
}

// workUntilKilled is the process to kill. It stores its messages and model requests in tables.
func workUntilKilled(t *testing.T, in string) {
	seed, dir, _ := strings.Cut(in, ",")
	n := expect.Must(strconv.ParseUint(seed, 10, 64))(t)
	d := &dag{briefs: map[string]string{}, asked: map[string]int{}, random: rand.New(rand.NewPCG(n, 1))}
	w := newWorld(t, dir)
	w.stop()
	write := func(query string, args ...any) {
		if _, err := w.cfg.DB.ExecContext(context.Background(), query, args...); err != nil {
			t.Error(err)
		}
	}
	d.remember(t, w)
	w.script.reply = func(body string) (string, bool) {
		if node := objectiveLine.FindStringSubmatch(strings.ReplaceAll(body, `\n`, "\n")); node != nil {
			write(`INSERT INTO asked (node, n) VALUES (?, 1) ON CONFLICT (node) DO UPDATE SET n = n + 1`, node[1])
		}
		return d.answer(t, body)
	}
	w.script.hold = func(body string) <-chan struct{} {
		if hung := d.hangs(body); hung != nil {
			return hung
		}
		slow := make(chan struct{})
		time.AfterFunc(time.Duration(rand.IntN(40))*time.Millisecond, func() { close(slow) })
		return slow
	}
	w.room.onSay = func(m chat.Outgoing) {
		if !m.Draft {
			write(`INSERT INTO said (id) VALUES (?) ON CONFLICT DO NOTHING`, m.ID)
		}
	}
	fmt.Println("begins")
	w.withSubSessions(t)
	waitUntil(t, "everything is told", w.allTold(t))
	fmt.Println("done")
}

// remember loads how often each node was asked in earlier runs.
func (d *dag) remember(t *testing.T, w *world) {
	t.Helper()
	rows := expect.Must(w.cfg.DB.QueryContext(t.Context(), `SELECT node, n FROM asked`))(t)
	defer rows.Close()
	for rows.Next() {
		var node string
		var n int
		expect.OK(t, rows.Scan(&node, &n))
		d.asked[node] = n
	}
}

// recall loads what the killed processes stored, for check.
func (d *dag) recall(t *testing.T, w *world, nodes []dagNode) {
	t.Helper()
	d.remember(t, w)
	for i, n := range nodes {
		brief, _, err := w.cfg.History.Find(t.Context(), history.Timeline("sub:"+n.id), "brief")
		expect.OK(t, err)
		d.briefs[fmt.Sprint(i)] = brief.Text
	}
	for _, id := range w.column(t, `SELECT id FROM said`) {
		w.room.final[id] = chat.Outgoing{ID: id}
	}
}

// TestLeft: leaving a room, also while the program is down, cancels its sub-sessions without a report; other rooms' continue.
func TestLeft(t *testing.T) {
	for _, down := range []bool{false, true} {
		w := newWorld(t, t.TempDir())
		w.results(t)
		held := make(chan struct{})
		w.script.hold = func(body string) <-chan struct{} {
			if strings.Contains(body, `## Objective\nlong`) || !strings.Contains(body, `## Objective\n`) {
				return held
			}
			return nil
		}
		var left atomic.Bool
		w.who.left = func(_ context.Context, room string) (bool, error) { return left.Load() && room == "!dm", nil }
		w.withSubSessions(t)
		quick, long := w.spawn(t, tool.Job{Objective: "quick"}), w.spawn(t, tool.Job{Objective: "long"})
		later := w.spawn(t, tool.Job{Objective: "later", Needs: []string{long}})
		w.spawnFor(t, spawnScope(w, "!group", false), tool.Job{Objective: "elsewhere"})
		find := func(id string) subSessionRow { n := w.subSession(t, id); return n }
		waitUntil(t, "the rooms' models are asked of what is done", func() bool {
			all := strings.Join(w.script.asked(), "")
			return strings.Contains(all, "result of quick.") && strings.Contains(all, "result of elsewhere.")
		})
		if down {
			w.stop()
		}
		asked := len(w.script.asked())
		if left.Store(true); down {
			w.restart(t)
		} else {
			w.RoomLeft("!dm")
		}
		waitUntil(t, "they are ended", func() bool {
			return find(long).status == subsession.Cancelled && find(later).status == subsession.Cancelled
		})
		expect.Equal(t, find(later).reason.String(), "the room was left")
		close(held)
		waitUntil(t, "all are told", w.allTold(t))
		there := w.eventsTold(t, "!group")
		expect.False(t, len(there) != 1, "told elsewhere: %v", there)
		for _, body := range w.script.asked()[asked:] {
			expect.False(t, down && (strings.Contains(body, quick) || strings.Contains(body, `## Objective\nlong`)), "a model was asked: %s", body)
		}
		w.stop()
		expect.False(t, len(w.room.order) != 1, "said: %q", w.room.order)
	}
}

// TestStopEndsSubSessions: !stop cancels all sub-sessions of its room without a report or another model request.
func TestStopEndsSubSessions(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.results(t)
	w.script.hold = func(body string) <-chan struct{} {
		if strings.Contains(body, `## Objective\nlong`) {
			return make(chan struct{})
		}
		return nil
	}
	w.withSubSessions(t)
	w.spawnFor(t, spawnScope(w, "!group", false), tool.Job{Objective: "elsewhere"})
	waitUntil(t, "it is done elsewhere", func() bool { return w.helpersOf(t, "!group")[0].status == subsession.Completed })
	long := ""
	for range w.cfg.SubSessions.Parallel {
		long = w.spawn(t, tool.Job{Objective: "long"})
	}
	w.spawn(t, tool.Job{Objective: "waits for another", Needs: []string{long}})
	w.spawn(t, tool.Job{Objective: "waits for a place"})
	waitUntil(t, "all places are taken", func() bool {
		return strings.Count(strings.Join(w.script.asked(), ""), `## Objective\nlong`) == w.cfg.SubSessions.Parallel
	})
	expect.Equal(t, w.say(t, "$1", "!stop").Text, "I cancelled 4 sub-sessions.")
	waitUntil(t, "all are told", w.allTold(t))
	waitUntil(t, "nothing runs", func() bool { return w.subSessions.Running() == 0 })
	for _, n := range w.helpersOf(t, "!dm") {
		expect.False(t, n.status != subsession.Cancelled || n.rounds > 0, "%s is %s after %d requests", n.objective, n.status, n.rounds)
	}
	told := w.eventsTold(t, "!dm")
	expect.False(t, len(told) != 0, "told %v", told)
	m := w.say(t, "$2", "!stop")
	expect.False(t, !strings.HasPrefix(m.Text, "Nothing to stop"), "the person read %q", m.Text)
	w.say(t, "$3", "hello")
	expect.Lacks(t, strings.Join(w.script.asked(), ""), `## Objective\nwaits`)
}
