package task

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// crashPoints are where the program of TestStorm crashes: within a transaction, or between two steps.
var crashPoints = []string{
	"INSERT ON job_run", "UPDATE OF next_due ON task", "after the claim", "while handed over", "after being asked", "after saying",
	"UPDATE OF state ON job_run", "UPDATE OF run_count ON task", "after the end",
}

var errDied = errors.New("died")

// TestStorm crashes 300 times around due times. Every due time is said once.
// Holds T1.
func TestStorm(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	p := newPost(t)
	db := p.store.db
	tasks := map[string]Task{}
	keep := func(task Task) { tasks[task.ID] = task }
	keep(p.add("hourly", "all", Schedule{Type: interval, IntervalSeconds: 3600}))
	keep(p.add("half", "all", Schedule{Type: byCron, Expression: "*/30 * * * *"}))
	keep(p.add("nine", "all", Schedule{Type: daily, At: "09:00"}))
	from := p.now
	for i := range 300 {
		if random.IntN(3) == 0 {
			keep(p.add(fmt.Sprint("once", i), "", Schedule{Type: once, At: fmt.Sprintf("in %d minutes", 1+random.IntN(60))}))
		}
		p.now = p.now.Add(time.Duration(1+random.IntN(40)) * time.Minute)
		p.runUntilCrash(db, crashPoints[random.IntN(len(crashPoints))])
		p.restart(db)
	}
	p.now = p.now.Add(time.Hour)
	p.look()
	p.work()
	p.checkResults(tasks, from)
}

// runUntilCrash runs the program until the point die.
func (p *post) runUntilCrash(db *store.DB, die string) {
	p.t.Helper()
	if strings.Contains(die, " ON ") {
		expect.Must(db.Exec(`CREATE TRIGGER dies BEFORE ` + die + ` BEGIN SELECT RAISE(ABORT, 'died'); END`))(p.t)
		defer func() {
			expect.Must(db.Exec(`DROP TRIGGER dies`))(p.t)
		}()
	}
	n := 0
	p.deliver = func(_ context.Context, r Run) error {
		if n++; die == "while handed over" && n == 2 {
			return errDied
		}
		p.inbox = append(p.inbox, r)
		return nil
	}
	if _, err := p.sched.runDue(p.t.Context(), p.deliver, p.now, false); err != nil {
		if !strings.Contains(err.Error(), "died") {
			p.t.Fatal(err)
		}
		return
	}
	if die == "after the claim" {
		return
	}
	for _, r := range p.inbox {
		if wanted := p.wanted(r); die == "after being asked" || !wanted {
			return
		}
		answer := p.say(r)
		if die == "after saying" {
			return
		}
		if err := p.sched.Done(p.t.Context(), r.ID, answer, nil); err != nil {
			if !strings.Contains(err.Error(), "died") {
				p.t.Fatal(err)
			}
			return
		}
		if die == "after the end" {
			return
		}
	}
}

// checkResults compares messages and stored runs with the due times.
func (p *post) checkResults(tasks map[string]Task, from time.Time) {
	p.t.Helper()
	want := map[string]bool{}
	for id, task := range tasks {
		for at := from; ; {
			next, ok := task.Schedule.Next(at, task.Scheduled, time.UTC)
			if !ok || next.After(p.now) {
				break
			}
			want[runID(id, next, "1")] = true
			at = next
		}
		if got := p.task(id); task.Schedule.Type == once && got.Status != Completed {
			p.t.Errorf("%s is %s", task.Content, got.Status)
		}
	}
	for id := range want {
		if p.said[id] == "" {
			p.t.Errorf("%s was not said", id)
		}
	}
	for id := range p.said {
		if !want[id] {
			p.t.Errorf("%s was said and never due, or a second time", id)
		}
	}
	var open, twice int
	if err := p.store.db.QueryRow(`SELECT count(*) FILTER (WHERE state <> 'done'), count(*) FILTER (WHERE attempt > 1) FROM job_run`).Scan(&open, &twice); err != nil || open+twice > 0 {
		p.t.Errorf("%d runs are not done, %d were tried again: %v", open, twice, err)
	}
	p.t.Logf("%d times were due and said", len(want))
}

const (
	stormClock = "REVERIE_TEST_CLOCK" // "real start in ns, virtual start in s"
	stormPace  = 1200                 // how much faster it goes than others
)

// TestStormOfProcesses kills a child process again and again around due times, on a clock where
// three seconds are an hour. The child writes messages into a table, like the outbox.
// REVERIE_JOB_KILLS sets how often.
// Holds T1.
func TestStormOfProcesses(t *testing.T) {
	if os.Getenv(stormClock) != "" {
		fireUntilKilled(t)
		return
	}
	kills := 8
	if n, err := strconv.Atoi(os.Getenv("REVERIE_JOB_KILLS")); err == nil {
		kills = n
	}
	dir := t.TempDir()
	db := expect.Must(store.Open(t.Context(), filepath.Join(dir, "bot.db"), reverie.Migrations))(t)
	defer db.Close()
	expect.Must(db.Exec(`CREATE TABLE said (id TEXT PRIMARY KEY, n INTEGER NOT NULL DEFAULT 1)`))(t)
	p := &post{t: t, now: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC), said: map[string]string{}}
	p.restart(db)
	from := p.now
	tasks := map[string]Task{}
	for i := range 15 {
		task := p.add(fmt.Sprint("t", i), "all", Schedule{Type: interval, IntervalSeconds: 3600 + 60*i})
		tasks[task.ID] = task
	}
	clock := fmt.Sprintf("%d,%d", time.Now().UnixNano(), p.now.Unix())
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	for range kills {
		killNearDue(t, dir, clock, tasks, random)
	}
	p.now = stormTime(t, clock)
	p.look()
	rows := expect.Must(db.Query(`SELECT id, n FROM said`))(t)
	defer rows.Close()
	for rows.Next() {
		var id string
		var n int
		expect.OK(t, rows.Scan(&id, &n))
		p.said[id] = "said"
	}
	before := len(p.said)
	p.work()
	p.checkResults(tasks, from)
	if before == 0 {
		t.Error("the processes said nothing")
	}
}

// killNearDue runs the child process and kills it shortly before or after a due time.
func killNearDue(t *testing.T, dir, clock string, tasks map[string]Task, random *rand.Rand) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestStormOfProcesses$")
	cmd.Env, cmd.Dir = append(os.Environ(), stormClock+"="+clock), dir
	out := expect.Must(cmd.StdoutPipe())(t)
	expect.OK(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() != "begins" {
			continue
		}
		now := stormTime(t, clock)
		due := now.Add(time.Hour)
		for _, task := range tasks {
			if next, ok := task.Schedule.Next(now, task.Scheduled, time.UTC); ok && next.Before(due) {
				due = next
			}
		}
		time.Sleep(due.Sub(now)/stormPace + time.Duration(random.IntN(40)-5)*time.Millisecond)
		expect.OK(t, cmd.Process.Kill())
	}
	_ = cmd.Wait()
}

// stormTime is the virtual time.
func stormTime(t *testing.T, clock string) time.Time {
	began, start, _ := strings.Cut(clock, ",")
	ns, err := strconv.ParseInt(began, 10, 64)
	seconds, err2 := strconv.ParseInt(start, 10, 64)
	if err != nil || err2 != nil {
		t.Fatal(clock)
	}
	return time.Unix(seconds, 0).UTC().Add(stormPace * time.Since(time.Unix(0, ns)))
}

// fireUntilKilled is the child process.
func fireUntilKilled(t *testing.T) {
	db := expect.Must(store.Open(t.Context(), "bot.db", reverie.Migrations))(t)
	p := &post{t: t, said: map[string]string{}}
	p.restart(db)
	p.store.now = func() time.Time { return stormTime(t, os.Getenv(stormClock)) }
	work := make(chan Run, 1000)
	p.deliver = func(_ context.Context, r Run) error { work <- r; return nil }
	go func() { _ = p.sched.Run(t.Context(), p.deliver) }()
	fmt.Println("begins")
	for r := range work {
		if p.wanted(r) {
			expect.Must(db.Exec(`INSERT INTO said (id) VALUES (?) ON CONFLICT (id) DO UPDATE SET n = n + 1`, r.ID))(t)
		}
		expect.OK(t, p.sched.Done(t.Context(), r.ID, "said", nil))
	}
}
