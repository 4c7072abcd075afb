package dream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // as the bot does

	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/task"
)

func times(t *testing.T, cron, zone string) task.Schedule {
	t.Helper()
	s, err := task.Schedule{Type: "cron", Expression: cron, Zone: zone}.Validate(day0, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// runs has n run until what it returns is called.
func runs(t *testing.T, n *Nightly) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- n.Run(ctx) }() // go: waited for below
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
		f(t, w, OpenNightly(w.d, s))
	})
}

// TestWhenToDream: after the last night, and before the first after the oldest memory;
// what was cut off does not count. Clocks that change leave no night out and make none twice.
func TestWhenToDream(t *testing.T) {
	w := newWorld(t, home(""), nil)
	n := OpenNightly(w.d, times(t, "30 2 * * *", "Europe/Berlin"))
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		x, err := time.ParseInLocation("2006-01-02 15:04", text, zone)
		if err != nil {
			t.Fatal(err)
		}
		return x
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
		var told []Report
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
		n.Tell = func(_ context.Context, r Report) { told = append(told, r) }
		n.Quiet = func(ctx context.Context, long time.Duration) (context.Context, func(), error) {
			moments++
			if long != 10*time.Minute {
				t.Errorf("quiet of %v", long)
			}
			select {
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			case <-time.After(long):
			}
			work, cancel := context.WithCancel(ctx)
			leave = cancel
			return work, cancel, nil
		}
		stop := runs(t, n)
		time.Sleep(time.Hour)
		if len(told) != 1 || moments != 2 || told[0].State != AppliedState || len(told[0].Merged) == 0 {
			t.Fatalf("%d moments, %d nights", moments, len(told))
		}
		time.Sleep(48 * time.Hour)
		if len(told) != 3 {
			t.Errorf("%d nights", len(told))
		}
		stop()
		time.Sleep(75 * time.Hour) // three nights, and it does not run; now it is three hours after one
		stop = runs(t, n)
		time.Sleep(20 * time.Hour)
		if len(told) != 4 {
			t.Errorf("%d nights for three that were missed", len(told)-3)
		}
		time.Sleep(5 * time.Hour)
		if len(told) != 5 {
			t.Errorf("%d nights after those that were missed", len(told)-4)
		}
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
		n.Quiet = func(ctx context.Context, long time.Duration) (context.Context, func(), error) {
			work, cancel := context.WithCancel(ctx)
			if tries++; tries == 1 {
				cancel() // somebody writes at once
			}
			return work, cancel, nil
		}
		stop := runs(t, n)
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
		status("put ", " memories in order", "questions: 0")
		if tries < 2 {
			t.Errorf("%d tries", tries)
		}
		if _, err := w.d.Undo(t.Context(), ""); err != nil {
			t.Error(err)
		}
		status("taken back")
		stop()
	})
}

// TestTidyOnceADay: a phase that is asked for is dreamt soon, alone, and not again on that day.
func TestTidyOnceADay(t *testing.T) {
	nights(t, task.Schedule{}, func(t *testing.T, w *world, n *Nightly) {
		var told []string
		n.Tell = func(_ context.Context, r Report) { told = append(told, r.Summary(i18n.English)) }
		stop := runs(t, n)
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
		if len(told) != 3 {
			t.Errorf("told %q", told)
		}
		stop()
	})
}

// TestDigest: it says what was asked of a model, and why a night failed; of nothing it says nothing.
func TestDigest(t *testing.T) {
	mine := func(s memory.Scope) bool { return s == memory.Private(owner) }
	change := Change{Line: Line{memory.Private(owner), "mem_1", "Anna lives in Rome"}, ByText: "Anna lives in Bath"}
	for want, r := range map[string]Report{
		"I asked a model for it (requests: 3, about 4100 tokens).\n": {State: AppliedState, Superseded: []Change{change}, Cost: spent{Calls: 3, Tokens: 4100}},
		"the disk is full": {State: Failed, Reason: "the disk is full"}, "": {State: Nothing, Cost: spent{Calls: 3}},
	} {
		if got := r.Digest(i18n.English, mine); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNightWaitsForAModel: while no model answers nothing is dreamt at the time for it, and
// the night is made up for when one does.
func TestNightWaitsForAModel(t *testing.T) {
	nights(t, times(t, "30 2 * * *", "UTC"), func(t *testing.T, _ *world, n *Nightly) {
		answers, told := false, 0
		n.Answers = func(context.Context) bool { return answers }
		n.Tell = func(context.Context, Report) { told++ }
		stop := runs(t, n)
		time.Sleep(50 * time.Hour)
		if told != 0 {
			t.Errorf("%d dreams without a model", told)
		}
		answers = true
		time.Sleep(5 * time.Minute)
		if told != 1 {
			t.Errorf("%d dreams when the model answers again", told)
		}
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
