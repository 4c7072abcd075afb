package dream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/dream/report"
	"reverie/internal/harvest"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/store"
	"reverie/internal/task"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

func times(t *testing.T, cron, zone string) task.Schedule {
	t.Helper()
	return expect.Must(task.Schedule{Type: "cron", Expression: cron, Zone: zone}.Validate(day0, time.UTC))(t)
}

// runs has n run until what it returns is called.
func runs(t *testing.T, n *Nightly, tell func(context.Context, report.Report)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- n.Run(ctx, tell) }() // go: waited for below
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// nights has f look at who dreams by s of all facts, in a time of its own.
func nights(t *testing.T, s task.Schedule, f func(t *testing.T, w *world, n *Nightly)) {
	dir := prepare(t, facts())
	synctest.Test(t, func(t *testing.T) {
		w := openWorld(t, dir, facts(), perfect)
		defer w.d.cfg.DB.Close()
		w.d.cfg.Now = time.Now
		w.exec(`UPDATE memory SET created_at = ?`, time.Now().AddDate(0, 0, -5).UnixMilli())
		f(t, w, OpenNightly(NightlyConfig{Dreamer: w.d, Schedule: s}))
	})
}

// TestWhenToDream: after the last night, and before the first after the oldest memory;
// what was cut off does not count. Clocks that change leave no night out and make none twice.
func TestWhenToDream(t *testing.T) {
	w := newWorld(t, home(""), nil)
	n := OpenNightly(NightlyConfig{Dreamer: w.d, Schedule: times(t, "30 2 * * *", "Europe/Berlin")})
	zone := expect.Must(time.LoadLocation("Europe/Berlin"))(t)
	at := func(text string) time.Time {
		return expect.Must(time.ParseInLocation("2006-01-02 15:04", text, zone))(t)
	}
	due := func(want time.Time) {
		t.Helper()
		if got, err := n.due(t.Context(), w.now); err != nil || !got.Equal(want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	w.now = at("2026-03-28 12:00")
	w.exec(`UPDATE memory SET created_at = ?`, at("2026-03-20 12:00").UnixMilli())
	due(at("2026-03-21 02:30")) // missed
	w.exec(`INSERT INTO dream_run (id, at, ended, state) VALUES ('a', ?, 1, 'nothing')`, at("2026-03-28 12:00").UnixMilli())
	due(at("2026-03-29 03:00")) // there is no 2:30 in that night
	w.exec(`INSERT INTO dream_run (id, at, ended, state) VALUES ('b', ?, 1, 'applied')`, at("2026-03-29 03:00").UnixMilli())
	w.now = at("2026-10-24 12:00")
	due(at("2026-03-30 02:30"))
	w.exec(`INSERT INTO dream_run (id, at, ended, state) VALUES ('c', ?, 1, 'applied')`, time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC).UnixMilli())
	w.now = at("2026-10-26 12:00")
	due(at("2026-10-26 02:30")) // 2:30 comes twice on the 25th, and that was the first
	w.exec(`INSERT INTO dream_run (id, at, ended, state, reason) VALUES ('d', ?, 1, 'failed', ?)`, at("2026-10-26 02:30").UnixMilli(), cutOff)
	w.exec(`INSERT INTO dream_run (id, at, ended, state, reason) VALUES ('e', ?, 1, 'failed', ?)`, at("2026-10-26 02:40").UnixMilli(), errYielded.Error())
	w.exec(`INSERT INTO dream_run (id, at, state) VALUES ('f', ?, 'planning')`, at("2026-10-26 02:50").UnixMilli())
	due(at("2026-10-26 02:30"))
	w.exec(`INSERT INTO dream_run (id, at, ended, state) VALUES ('g', ?, 1, 'applied')`, at("2036-10-26 02:50").UnixMilli()) // the clock was wrong
	due(at("2026-10-27 02:30"))
}

// TestNights: a dream each night, one for all that were missed, and none while people
// talk: it gives way, and goes on when they are silent.
// Holds P5.
func TestNights(t *testing.T) {
	nights(t, times(t, "0 3 * * *", ""), func(t *testing.T, w *world, n *Nightly) {
		var told []report.Report
		moments, talks := 0, 0
		ask := w.d.cfg.Ask
		var leave context.CancelFunc
		w.d.cfg.Ask = func(ctx context.Context, role, prompt string) (string, error) {
			if talks == 0 { // somebody writes
				talks++
				leave()
				<-ctx.Done()
				return "", ctx.Err()
			}
			return ask(ctx, role, prompt)
		}
		tell := func(_ context.Context, r report.Report) { told = append(told, r) }
		n.cfg.Quiet = func(ctx context.Context, long time.Duration) (context.Context, func(), error) {
			moments++
			expect.Equal(t, long, 10*time.Minute, "the quiet")
			select {
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			case <-time.After(long):
			}
			work, cancel := context.WithCancel(ctx)
			leave = cancel
			return work, cancel, nil
		}
		stop := runs(t, n, tell)
		time.Sleep(time.Hour)
		if len(told) != 1 || moments != 2 || told[0].State != report.Applied || len(told[0].Merged) == 0 {
			t.Fatalf("%d moments, %d nights", moments, len(told))
		}
		time.Sleep(48 * time.Hour)
		expect.Equal(t, len(told), 3, "nights")
		stop()
		time.Sleep(75 * time.Hour) // three nights, and it does not run; now it is three hours after one
		stop = runs(t, n, tell)
		time.Sleep(20 * time.Hour)
		expect.Equal(t, len(told), 4, "%d nights for three that were missed", len(told)-3)
		time.Sleep(5 * time.Hour)
		expect.Equal(t, len(told), 5, "%d nights after those that were missed", len(told)-4)
		stop()
		var gaveWay int
		if err := w.d.cfg.DB.QueryRow(`SELECT count(*) FROM dream_run WHERE state = 'failed' AND reason = ?`, errYielded).Scan(&gaveWay); err != nil || gaveWay != 1 {
			t.Errorf("%d, %v", gaveWay, err)
		}
	})
}

// TestWake: who is woken dreams without waiting for the night, again if it had to give
// way, and tells how it went.
func TestWake(t *testing.T) {
	nights(t, task.Schedule{}, func(t *testing.T, w *world, n *Nightly) {
		tries := 0
		n.cfg.Quiet = func(ctx context.Context, long time.Duration) (context.Context, func(), error) {
			work, cancel := context.WithCancel(ctx)
			if tries++; tries == 1 {
				cancel() // somebody writes at once
			}
			return work, cancel, nil
		}
		stop := runs(t, n, nil)
		status := func(want ...string) {
			t.Helper()
			text, err := n.Status(t.Context(), i18n.English)
			for _, part := range want {
				if err != nil || !strings.Contains(text, part) {
					t.Errorf("%q, %v; want %q", text, err, part)
				}
			}
		}
		time.Sleep(48 * time.Hour)
		status("not dreamt yet", "dreaming.schedule")
		n.Wake()
		time.Sleep(time.Minute)
		status("tidied up ", " memories", "questions: 0")
		if tries < 2 {
			t.Errorf("%d tries", tries)
		}
		if _, err := w.d.Undo(t.Context(), ""); err != nil {
			t.Error(err)
		}
		status("reverted")
		stop()
	})
}

// TestTidyOnceADay: a phase that is asked for is dreamt soon, alone, and not again on that day.
func TestTidyOnceADay(t *testing.T) {
	nights(t, task.Schedule{}, func(t *testing.T, w *world, n *Nightly) {
		var told []string
		tell := func(_ context.Context, r report.Report) { told = append(told, r.Summary(i18n.English)) }
		stop := runs(t, n, tell)
		for range 3 {
			n.Tidy(Dedup)
			time.Sleep(time.Hour)
		}
		if len(told) != 1 || strings.Contains(told[0], "no longer") {
			t.Errorf("told %q", told)
		}
		n.Tidy(Stale)
		time.Sleep(24 * time.Hour)
		n.Tidy(Dedup)
		time.Sleep(time.Hour)
		expect.Equal(t, len(told), 3, "told %q", told)
		stop()
	})
}

// TestDigest: it says what was learned, what was asked of a model, and why a night failed; of nothing
// it says nothing.
func TestDigest(t *testing.T) {
	mine := func(s memory.Scope) bool { return s == memory.Private(owner) }
	change := report.Change{Line: report.Line{Scope: memory.Private(owner), ID: "mem_1", Text: "Anna lives in Rome"}, ByText: "Anna lives in Bath"}
	var learned []report.Line
	for i := range 12 {
		learned = append(learned, report.Line{Scope: memory.Private(owner), Text: fmt.Sprintf("Ida owns boat %d.", i)},
			report.Line{Scope: memory.Private("@bob:test"), Text: "Bob owes money."})
	}
	for want, r := range map[string]report.Report{
		"New in my memory:\n- Ida owns boat 0.\n":                   {State: report.Nothing, Learned: learned}, // nothing of Bob's
		"- Ida owns boat 9.\n- and 2 more":                          {State: report.Nothing, Learned: learned},
		"- said twice, now kept once: Anna lives in Bath":           {State: report.Applied, Merged: []report.Change{change}},
		"I used a model for this (requests: 3, about 4100 tokens).": {State: report.Applied, Superseded: []report.Change{change}, Cost: report.Cost{Calls: 3, Tokens: 4100}},
		"the disk is full":                                          {State: report.Failed, Reason: "the disk is full"}, "": {State: report.Nothing, Cost: report.Cost{Calls: 3}},
	} {
		if got := r.Digest(i18n.English, mine); !strings.Contains(got, want) || strings.Contains(got, "Bob") || (got == "") != (want == "") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNightWaitsForAModel: while no model answers nothing is dreamt at the time for it, and
// the night is made up for when one does.
func TestNightWaitsForAModel(t *testing.T) {
	nights(t, times(t, "30 2 * * *", "UTC"), func(t *testing.T, _ *world, n *Nightly) {
		answers, told := false, 0
		n.cfg.Answers = func(context.Context) bool { return answers }
		tell := func(context.Context, report.Report) { told++ }
		stop := runs(t, n, tell)
		time.Sleep(50 * time.Hour)
		expect.Equal(t, told, 0, "dreams without a model")
		answers = true
		time.Sleep(5 * time.Minute)
		expect.Equal(t, told, 1, "dreams when the model answers again")
		stop()
	})
}

// TestReasons: what people are told of an error is one of the sentences that each language
// has, never what a program said; what it leaves out is for the report.
func TestReasons(t *testing.T) {
	english := i18n.English("why.trouble")
	for _, c := range []struct {
		err   error
		want  string
		exact bool
	}{
		{fmt.Errorf("dream: %w", context.Canceled), i18n.English("why.dream_yielded"), true},
		{fmt.Errorf("%w: %w", errNoCopy, errForgotten), i18n.English("why.dream_forgotten"), true},
		{fmt.Errorf("%w: %w", errNoCopy, syscall.ENOSPC), i18n.English("why.dream_no_room"), false},
		{fmt.Errorf("%w: %w", errNoCopy, syscall.EACCES), i18n.English("why.dream_no_copy"), false},
		{errors.New("sqlite: a table is locked"), english, false},
	} {
		if got, exact := reason(c.err); got.String() != c.want || exact != c.exact || strings.HasPrefix(got.String(), "why.") {
			t.Errorf("%v: got %q, %v, want %q, %v", c.err, got, exact, c.want, c.exact)
		}
	}
}

const (
	dreamKilled   = "REVERIE_TEST_DREAM_IN"
	dreamKilledAt = "REVERIE_TEST_DREAM_AT"
)

// TestKilledWhileDreaming: a process that dreams is killed at any moment, and memory is
// as it was before or as it is after, nothing between. What it was reading then is read by the next
// dream, and nothing twice. REVERIE_DREAM_KILLS = how often; else a few times.
// Holds L11.
func TestKilledWhileDreaming(t *testing.T) {
	if dir := os.Getenv(dreamKilled); dir != "" {
		dreamUntilKilled(t, dir)
		return
	}
	kills := 8
	if n, err := strconv.Atoi(os.Getenv("REVERIE_DREAM_KILLS")); err == nil {
		kills = n
	}
	from := prepare(t, facts())
	prepareChores(t, from)
	prepareTalk(t, from)
	w := openWorld(t, from, append(facts(), lockers()...), perfect)
	w.withChores()
	w.withTalk(parrotOf)
	state := func(w *world) string { return fingerprint(t, w.d.cfg.DB, false) + (&choreWorld{world: w}).taskRows() }
	before, rowsBefore := state(w), w.rows()
	exact := fingerprint(t, w.d.cfg.DB, true)
	began := time.Now()
	first := w.dream(Options{})
	took := time.Since(began)
	if first.Cost.Read < 3 || first.Harvested.Added != len(lockers()) {
		t.Fatalf("%+v", first)
	}
	after, rows := state(w), w.rows()
	if !strings.Contains(after, `"deleted"`) {
		t.Fatal("it did nothing to tasks")
	}
	if before == after {
		t.Fatal("the dream did nothing")
	}
	expect.Must(w.d.Undo(t.Context(), ""))(t)
	expect.Equal(t, fingerprint(t, w.d.cfg.DB, true), exact, "after a dream that is taken back")
	random := rand.New(rand.NewPCG(3, 5))
	unchanged, done, reading := 0, 0, 0
	for i := range kills {
		dir := t.TempDir()
		expect.OK(t, os.CopyFS(dir, os.DirFS(from)))
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileDreaming$")
		cmd.Env = append(os.Environ(), dreamKilled+"="+dir, dreamKilledAt+"="+w.now.Format(time.RFC3339Nano))
		out := expect.Must(cmd.StdoutPipe())(t)
		expect.OK(t, cmd.Start())
		var other []string
		asked, last := 0, 1+random.IntN(first.Cost.Read) // every third is killed while it reads
		for s := bufio.NewScanner(out); s.Scan(); {
			switch {
			case s.Text() == "asked":
				asked++
			case s.Text() != "begins":
				other = append(other, s.Text())
				continue
			}
			if i%3 == 0 && asked == last {
				time.Sleep(time.Duration(random.IntN(12_000)) * time.Microsecond) // as far as the end of the transaction
				_ = cmd.Process.Kill()
			} else if i%3 > 0 && asked == 0 {
				time.Sleep(time.Duration(random.Int64N(int64(took) * 2)))
				_ = cmd.Process.Kill()
			}
		}
		if err := cmd.Wait(); err != nil && cmd.ProcessState.Exited() {
			t.Fatalf("it failed before it was killed: %v\n%s", err, other)
		}
		db, s := openStore(t, dir)
		k := worldOf(t, dir, db, s, w.facts, perfect)
		k.now = w.now
		k.withChores()
		k.withTalk(parrotOf)
		switch state(k) {
		case before:
			unchanged++
		case after:
			done++
		default:
			t.Errorf("memory is neither as before nor as after: %s\n%s\n%s", k.journal(), cmp.Diff(strings.Split(rows, "\n"), strings.Split(k.rows(), "\n")), cmp.Diff(strings.Split(rowsBefore, "\n"), strings.Split(k.rows(), "\n")))
		}
		if k.readOn() {
			reading++
		}
		_ = db.Close()
	}
	t.Logf("%d kills: %d times as before, %d times as after; %d times before all was read", kills, unchanged, done, reading)
	if reading < kills/6 {
		t.Errorf("only %d of %d kills came before all was read", reading, kills)
	}
}

// journal is what the database says of dreams, for a test that fails.
func (w *world) journal() string {
	var out string
	err := w.d.cfg.DB.QueryRow(`SELECT (SELECT group_concat(state || ' ' || batch || ' ' || reason || ' ' || calls, '; ') FROM dream_run) || ', ' ||
		(SELECT count(*) FROM dream_op) || ' steps, ' || (SELECT count(*) FROM dream_op WHERE undone = 1) || ' refused, chores: ' || coalesce((SELECT group_concat(kind || ' ' || item || ' ' || state, '; ') FROM dream_change), 'none')`).Scan(&out)
	return fmt.Sprint(out, " ", err)
}

// prepareChores adds two tasks that ask for the same.
func prepareChores(t *testing.T, dir string) {
	t.Helper()
	db, _ := openStore(t, dir)
	for _, query := range []string{
		`INSERT INTO room (id) VALUES ('!r')`,
		`INSERT INTO task (id, room, user, content, priority, status, created, updated) VALUES ('task_twin0001', '!r', 'x', 'Water the plants', 5, 'active', 1, 1), ('task_twin0002', '!r', 'x', 'water the plants!', 5, 'active', 2, 2)`,
	} {
		expect.Must(db.Exec(query))(t)
	}
	expect.OK(t, db.Close())
}

// lockers is what people say before the dream.
func lockers() (all []fact) {
	for i := range 60 {
		all = append(all, fact{key: fmt.Sprint("locker ", i), texts: []string{fmt.Sprintf("Locker %d holds the lamp", i)}})
	}
	return all
}

// prepareTalk adds what people said in a room of several, and nobody has read yet.
func prepareTalk(t *testing.T, dir string) {
	t.Helper()
	db, _ := openStore(t, dir)
	h := history.NewStore(db)
	for i, f := range lockers() {
		m := history.Message{Room: "!group", Role: llm.User, EventID: fmt.Sprint("$talk", i), Sender: owner, Text: f.texts[0], At: time.Now().Add(-time.Hour), Header: "[Fri 2026-11-20 09:00 UTC, me]"}
		m.Label = trust.Label{Integrity: trust.Owner, Readers: trust.RoomReaders("!group")}
		expect.OK(t, h.Append(t.Context(), &m))
	}
	expect.OK(t, db.Close())
}

// withTalk has the dreamer read what was said, a few messages in each request.
func (w *world) withTalk(answer func(prompt string) (string, error)) {
	k := &talk{world: w, read: func(_ context.Context, prompt string) (string, error) { return answer(prompt) }}
	k.listen(func(c *harvest.Config) { c.Window = func(string) (int, int) { return 800, 512 } })
	k.d.cfg.Budget.Calls += 10
}

// readOn reads what is left to be read, and looks whether everything is known once, as it
// was before for what was read by then. It reports whether something was left.
func (w *world) readOn() (left bool) {
	w.t.Helper()
	count := func() (known, most, unread int) {
		w.t.Helper()
		expect.OK(w.t, w.d.cfg.DB.QueryRow(`SELECT count(DISTINCT text), coalesce((SELECT max(n) FROM (SELECT count(*) AS n FROM memory WHERE text LIKE 'Locker %' GROUP BY text)), 0),
			(SELECT count(*) FROM harvest AS h JOIN message AS m ON m.id = h.message WHERE h.state = 'new' AND m.room = '!group') FROM memory WHERE text LIKE 'Locker %'`).Scan(&known, &most, &unread))
		return known, most, unread
	}
	all := len(lockers())
	known, most, unread := count()
	if known+unread != all || most > 1 {
		w.t.Errorf("after the kill %d facts are known, one of them %d times, and %d messages are to be read", known, most, unread)
	}
	r := w.dream(Options{Phases: []Phase{Harvest}})
	if known, most, unread := count(); known != all || most != 1 || unread != 0 {
		w.t.Errorf("in the end %d facts are known, one of them %d times, and %d messages are to be read: %+v", known, most, unread, r)
	}
	return unread > 0
}

// withChores has the dreamer put tasks in order, too.
func (w *world) withChores() { w.d.cfg.Tasks = task.NewStore(w.d.cfg.DB, task.Config{}) }

func dreamUntilKilled(t *testing.T, dir string) {
	db, s := openStore(t, dir)
	w := worldOf(t, dir, db, s, append(facts(), lockers()...), perfect)
	var err error
	if w.now, err = time.Parse(time.RFC3339Nano, os.Getenv(dreamKilledAt)); err != nil {
		t.Fatal(err)
	}
	w.withChores()
	w.withTalk(func(prompt string) (string, error) {
		fmt.Println("asked")
		return parrotOf(prompt)
	})
	fmt.Println("begins")
	w.dream(Options{})
}

// fingerprint is what is stored of all entries but those that were read out of a talk; exact: all
// that is stored of them.
func fingerprint(t *testing.T, db *store.DB, exact bool) string {
	t.Helper()
	columns := "id, scope, text, state, successor, rev, source, observed_at"
	if exact {
		columns = "*"
	}
	return dump(t, db, `SELECT `+columns+` FROM memory WHERE event = '' ORDER BY id`)
}
