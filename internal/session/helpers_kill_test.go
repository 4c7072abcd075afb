package session

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
)

const helpersKilled = "REVERIE_TEST_HELPERS_IN" // "seed,folder"

// TestKilledWorkflows: a process that works on random workflows is killed at any
// moment, and yet each node ends as it must, is told exactly once, and had the results
// of all that it needed. REVERIE_SUB_KILLS = how often; else a few times.
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
			w.withHelpers(t)
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

// live is one life of the process that test is under env, which ends of itself when all is
// done, or is killed within so many milliseconds; 0 = it is not killed.
func live(t *testing.T, test, env string, within int, random *rand.Rand) (done, killed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env)
	out := result(cmd.StdoutPipe())(t)
	must(t, cmd.Start())
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

// workUntilKilled is the process. What it says, and how often its model was asked,
// goes into tables.
func workUntilKilled(t *testing.T, in string) {
	seed, dir, _ := strings.Cut(in, ",")
	n := result(strconv.ParseUint(seed, 10, 64))(t)
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
		if node := objective.FindStringSubmatch(strings.ReplaceAll(body, `\n`, "\n")); node != nil {
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
	w.room.onSay = func(m Outgoing) {
		if !m.Draft {
			write(`INSERT INTO said (id) VALUES (?) ON CONFLICT DO NOTHING`, m.ID)
		}
	}
	fmt.Println("begins")
	w.withHelpers(t)
	until(t, "everything is told", w.allTold(t))
	fmt.Println("done")
}

// remember has d know how often each node was asked in earlier lives.
func (d *dag) remember(t *testing.T, w *world) {
	t.Helper()
	rows := result(w.cfg.DB.QueryContext(t.Context(), `SELECT node, n FROM asked`))(t)
	defer rows.Close()
	for rows.Next() {
		var node string
		var n int
		must(t, rows.Scan(&node, &n))
		d.asked[node] = n
	}
}

// recall reads what check looks at, which the processes did not live to tell.
func (d *dag) recall(t *testing.T, w *world, nodes []dagNode) {
	t.Helper()
	d.remember(t, w)
	for i, n := range nodes {
		brief, _, err := w.cfg.History.Said(t.Context(), history.Talk(subPrefix+n.id), "brief")
		if err != nil {
			t.Fatal(err)
		}
		d.briefs[fmt.Sprint(i)] = brief
	}
	for _, id := range w.column(t, `SELECT id FROM said`) {
		w.room.final[id] = Outgoing{ID: id}
	}
}
