package task

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
)

// post receives runs like a session. Each ID is said once, however often it is delivered.
type post struct {
	rooms   stub
	deliver func(context.Context, Run) error
	t       testing.TB
	store   *Store
	sched   *Scheduler
	now     time.Time

	mu    sync.Mutex
	inbox []Run
	said  map[string]string // by ID
	order []string          // "content due", as it was said
	fail  func(Run) error   // instead of an answer
}

// stub implements rooms; without its functions a task may run anywhere.
type stub struct {
	left func(ctx context.Context, room string) (bool, error)
	room func(ctx context.Context, t Task) (string, error)
}

func (s *stub) Left(ctx context.Context, room string) (bool, error) {
	if s.left == nil {
		return false, nil
	}
	return s.left(ctx, room)
}

func (s *stub) TaskRoom(ctx context.Context, t Task) (string, error) {
	if s.room == nil {
		return t.Room, nil
	}
	return s.room(ctx, t)
}

func newPost(t testing.TB) *post {
	db := expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	p := &post{t: t, now: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC), said: map[string]string{}}
	p.restart(db)
	return p
}

// restart drops all state outside of the database.
func (p *post) restart(db *store.DB) {
	p.store = NewStore(db, Config{Now: func() time.Time { return p.now }})
	p.sched = NewScheduler(p.store, SchedulerConfig{Rooms: &p.rooms})
	p.inbox, p.rooms = nil, stub{}
	p.deliver = func(_ context.Context, r Run) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.inbox = append(p.inbox, r)
		return nil
	}
}

func (p *post) add(content, catchUp string, s Schedule) Task {
	p.t.Helper()
	valid := expect.Must(s.Validate(p.now, time.UTC))(p.t)
	return add(p.t, p.store, Task{Room: here, User: "@ann:x", Content: content, Schedule: &valid, CatchUp: CatchUp(catchUp)})
}

func (p *post) look() {
	p.t.Helper()
	expect.Must(p.sched.runDue(p.t.Context(), p.deliver, p.now, false))(p.t)
}

// work handles delivered runs like a session does.
func (p *post) work() {
	p.t.Helper()
	p.mu.Lock()
	runs := p.inbox
	p.inbox = nil
	p.mu.Unlock()
	for _, r := range runs {
		answer, failed := "", error(nil)
		if p.wanted(r) {
			if p.fail != nil {
				failed = p.fail(r)
			}
			if failed == nil || r.Notice {
				failed, answer = nil, p.say(r)
			}
		}
		expect.OK(p.t, p.sched.Done(p.t.Context(), r.ID, answer, failed))
	}
}

func (p *post) wanted(r Run) bool {
	p.t.Helper()
	wanted := expect.Must(p.sched.Wanted(p.t.Context(), r.ID))(p.t)
	return wanted
}

func (p *post) say(r Run) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text, ok := p.said[r.ID]; ok {
		return text
	}
	p.said[r.ID] = p.store.RunText(r, true, i18n.English)
	p.order = append(p.order, r.Task.Content+" "+r.Due.Format("02 15:04"))
	return p.said[r.ID]
}

// at sets the clock and handles everything due.
func (p *post) at(day, hour, minute int) {
	p.t.Helper()
	p.now = time.Date(2026, 11, day, hour, minute, 0, 0, time.UTC)
	p.look()
	p.work()
}

func (p *post) heard(want ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.order) // of what is due at the same time the order is chance
	slices.Sort(want)
	if !slices.Equal(p.order, want) {
		p.t.Errorf("said %q\nwant %q", p.order, want)
	}
	p.order = nil
}

func (p *post) task(id string) Task {
	p.t.Helper()
	t := expect.Must(p.store.Get(p.t.Context(), in(here), id))(p.t)
	return t
}

// TestDueOnce: a due task is said once and advances; a once task is completed.
// Holds T5.
func TestDueOnce(t *testing.T) {
	p := newPost(t)
	tea := p.add("tea", "", Schedule{Type: daily, At: "09:00"})
	call := p.add("call", "", Schedule{Type: once, At: "in 90 minutes"})
	p.at(21, 8, 59)
	p.heard()
	p.at(21, 9, 0)
	p.heard("tea 21 09:00")
	p.look()
	p.work()
	p.heard()
	if got := p.task(tea.ID); got.Runs != 1 || got.LastResult != "⏰ Reminder: tea" || !got.LastRun.Equal(p.now) ||
		got.NextDue.Format("02 15:04") != "22 09:00" || got.Status != Active {
		t.Errorf("after it fired: %+v", got)
	}
	p.at(21, 9, 30)
	p.heard("call 21 09:30")
	if got := p.task(call.ID); got.Status != Completed || got.Reason != "fired at 2026-11-21 09:30" || !got.NextDue.IsZero() {
		t.Errorf("a once task after it fired: %+v", got)
	}
	p.at(22, 9, 1)
	p.at(23, 9, 0)
	p.heard("tea 22 09:00", "tea 23 09:00")
}

// TestCatchUp: missed times run once, by the task's policy.
// Holds T1.
func TestCatchUp(t *testing.T) {
	p := newPost(t)
	p.add("late", "", Schedule{Type: daily, At: "09:00"})
	p.add("never", "skip", Schedule{Type: daily, At: "09:00"})
	p.add("all", "all", Schedule{Type: daily, At: "09:00"})
	p.add("often", "all", Schedule{Type: interval, IntervalSeconds: 60})
	gone := p.add("gone", "skip", Schedule{Type: once, At: "2026-11-22 10:00"})
	kept := p.add("kept", "", Schedule{Type: once, At: "2026-11-22 10:00"})
	p.now = p.now.Add(-time.Hour)
	p.restart(p.store.db)
	p.at(23, 12, 0)
	if len(p.order) < maxCatchUp {
		t.Fatalf("said %q", p.order)
	}
	often := p.order[len(p.order)-maxCatchUp:]
	if often[0] != "often 23 11:37" || often[maxCatchUp-1] != "often 23 12:00" {
		t.Errorf("of every minute: %q", often)
	}
	p.order = p.order[:len(p.order)-maxCatchUp]
	p.heard("all 21 09:00", "all 22 09:00", "all 23 09:00", "kept 22 10:00", "late 23 09:00")
	for id, text := range p.said {
		if strings.Contains(id, kept.ID) && text != "⏰ Reminder: kept (it was due on Sun 2026-11-22 10:00 UTC)" {
			t.Errorf("late: %q", text)
		}
	}
	if got := p.task(gone.ID); got.Status != Completed || !strings.HasPrefix(got.Reason.String(), "missed while I was offline at") {
		t.Errorf("skipped: %+v", got)
	}
	p.restart(p.store.db)
	p.look()
	p.work()
	p.heard() // handled once
	p.at(24, 9, 0)
	p.order = slices.DeleteFunc(p.order, func(s string) bool { return strings.HasPrefix(s, "often") })
	p.heard("all 24 09:00", "late 24 09:00", "never 24 09:00")
}

// TestChangedBeforeRun: a task paused, completed, deleted or moved after its claim is not said. A
// run may change its own task and still answer.
func TestChangedBeforeRun(t *testing.T) {
	p := newPost(t)
	ctx := t.Context()
	daily9 := Schedule{Type: daily, At: "09:00"}
	paused, completed, deleted, own := p.add("paused", "", daily9), p.add("completed", "", daily9), p.add("deleted", "", daily9), p.add("own", "", daily9)
	p.now = p.now.Add(time.Hour)
	p.look()
	for _, err := range []error{
		errorOf(p.store.Pause(ctx, in(here), paused.ID)), errorOf(p.store.Complete(ctx, asks(here, ""), completed.ID, "it is so")), errorOf(p.store.Delete(ctx, in(here), deleted.ID)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p.fail = func(r Run) error {
		if _, err := p.store.Complete(ctx, asks(here, ""), own.ID, "all is done"); err != nil {
			t.Error(err)
		}
		if !p.wanted(r) {
			t.Error("a run that completed its task may not answer")
		}
		return nil
	}
	p.work()
	p.heard("own 21 09:00")
	runs, err := p.store.Runs(ctx, here, "", 10)
	if err != nil || len(runs) != 3 { // those of the deleted one are not shown
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for _, r := range runs {
		if want := map[string]RunState{"own": runDone, "paused": runSkipped, "completed": runSkipped}[r.Task.Content]; r.State != want {
			t.Errorf("%s: %s (%s)", r.Task.Content, r.State, r.Result)
		}
	}
	p.fail = nil
	p.at(22, 8, 0)
	expect.Must(p.store.Resume(ctx, in(here), paused.ID))(t)
	p.heard() // what it missed is not made up for
	p.at(22, 9, 0)
	p.heard("paused 22 09:00")
}

func errorOf(_ Task, err error) error { return err }

// TestFailureBackoff: a failed run is retried after 1, 5, 30 and 30 minutes under new IDs; the
// fifth failure in a row pauses the task and notifies the room once.
// Holds T4.
func TestFailureBackoff(t *testing.T) {
	p := newPost(t)
	tea := p.add("tea", "", Schedule{Type: daily, At: "09:00"})
	var tries []string
	p.fail = func(r Run) error {
		if r.Notice {
			return nil
		}
		tries = append(tries, r.ID[strings.LastIndex(r.ID, ":")+1:]+p.now.Format(" 15:04"))
		return errors.New("the model is down")
	}
	for p.now.Hour() < 11 {
		p.now = p.now.Add(time.Minute)
		p.look()
		p.work()
	}
	if want := []string{"1 09:00", "2 09:01", "3 09:06", "4 09:36", "5 10:06"}; !slices.Equal(tries, want) {
		t.Errorf("tried %q, want %q", tries, want)
	}
	p.heard("tea 21 09:00")
	for _, text := range p.said {
		if !strings.Contains(text, "paused a task because it failed 5 times in a row: tea") {
			t.Errorf("the notice: %q", text)
		}
	}
	if got := p.task(tea.ID); got.Status != Paused || got.Failures != 5 || got.Runs != 0 {
		t.Errorf("%+v", got)
	}
	p.restart(p.store.db)
	p.now = p.now.AddDate(0, 0, 1)
	if p.look(); len(p.inbox) > 0 {
		t.Errorf("handed over once more: %+v", p.inbox)
	}
	if got, err := p.store.Resume(t.Context(), in(here), tea.ID); err != nil || got.Failures != 0 || got.NextDue.Format("02 15:04") != "23 09:00" {
		t.Errorf("resumed: %+v, %v", got, err)
	}
	// A success resets the failures, and a new schedule drops pending retries.
	p.fail = func(Run) error { p.fail = nil; return errors.New("once") }
	p.at(23, 9, 0)
	p.at(23, 9, 1)
	p.heard("tea 23 09:00")
	p.fail = func(Run) error { p.fail = nil; return errors.New("once") }
	p.at(24, 9, 0)
	if got := p.task(tea.ID); got.Failures != 1 {
		t.Errorf("%+v", got)
	}
	expect.Must(p.store.Update(t.Context(), in(here), tea.ID, Patch{Schedule: &Schedule{Type: daily, At: "10:00"}}))(t)
	p.at(24, 9, 30)
	p.at(24, 10, 0)
	p.heard("tea 24 10:00")
}

// TestStopped: a run stopped by a person is neither failed nor retried.
func TestStopped(t *testing.T) {
	p := newPost(t)
	call := p.add("call", "", Schedule{Type: once, At: "09:00"})
	p.fail = func(Run) error { return fmt.Errorf("session: %w", ErrStopped) }
	p.at(21, 9, 0)
	p.at(21, 12, 0)
	p.heard()
	if got := p.task(call.ID); got.Status != Completed || got.Failures != 0 || !strings.HasPrefix(got.Reason.String(), "stopped at") {
		t.Errorf("%+v", got)
	}
}

// TestNoOverlap: while a run is open or waits for a retry, no other run of the task starts.
func TestNoOverlap(t *testing.T) {
	p := newPost(t)
	p.add("often", "", Schedule{Type: interval, IntervalSeconds: 60})
	for range 10 {
		p.now = p.now.Add(time.Minute)
		p.look()
	}
	p.work()
	p.heard("often 21 08:01")
	p.now = p.now.Add(time.Minute)
	p.look()
	p.work()
	p.heard("often 21 08:11")
}

// TestTwoSchedulers: two programs on one database serve their own rooms only.
func TestTwoSchedulers(t *testing.T) {
	p := newPost(t)
	p.add("mine", "", Schedule{Type: daily, At: "09:00"})
	add(t, p.store, Task{Room: there, Content: "theirs", Schedule: &Schedule{Type: daily, At: "09:00"}})
	p.sched.cfg.ExceptRoom = there
	p.at(21, 9, 0)
	p.heard("mine 21 09:00")
	if next, err := p.sched.runDue(t.Context(), p.deliver, p.now, false); err != nil || next.Sub(p.now) < maxWait {
		t.Errorf("it does not rest until %s: %v", next, err)
	}
	p.restart(p.store.db)
	p.sched.cfg.OnlyRoom = there
	p.at(21, 9, 1)
	p.heard("theirs 21 09:00")
}

// TestRecomputeDue: due times are corrected after changes of clock or zone, and no run is repeated.
// Holds T2.
func TestRecomputeDue(t *testing.T) {
	p := newPost(t)
	berlin := inZone(t, "Europe/Berlin")
	p.add("tea", "", Schedule{Type: daily, At: "09:00"})
	p.add("own zone", "", Schedule{Type: daily, At: "09:00", Zone: "Asia/Kolkata"})
	p.store.cfg.Location = berlin // from the next start on; 09:00 is an hour earlier then, and has passed
	p.at(21, 8, 30)
	p.at(21, 9, 0)
	p.heard()
	p.at(22, 3, 30)
	p.at(22, 8, 0)
	p.heard("own zone 22 03:30", "tea 22 08:00")
	p.now = p.now.AddDate(10, 0, 0) // a clock that is wrong
	p.look()
	p.work()
	p.order = nil
	p.now = time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	expect.Must(p.sched.runDue(t.Context(), p.deliver, p.now, true))(t)
	p.at(22, 8, 0)
	p.heard()
	p.at(23, 3, 30)
	p.at(23, 8, 0)
	p.heard("own zone 23 03:30", "tea 23 08:00")
}

// TestClockJumps runs the real loop on a virtual clock that jumps two hours either way and stops
// for a day, as on a sleeping machine.
func TestClockJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		var mu sync.Mutex
		offset := time.Until(p.now)
		now := func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(offset).Round(0)
		}
		jump := func(by time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			offset += by
		}
		p.store.now = now
		work := make(chan Run, 100)
		p.deliver = func(_ context.Context, r Run) error { work <- r; return nil }
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = p.sched.Run(ctx, p.deliver) })
		running.Go(func() {
			for {
				select {
				case r := <-work:
					if p.wanted(r) {
						p.say(r)
					}
					if err := p.sched.Done(ctx, r.ID, "", nil); err != nil {
						t.Error(err)
					}
				case <-ctx.Done():
					return
				}
			}
		})
		for _, at := range []string{"09:00", "10:30", "11:30", "12:00"} { // after 8:00, when the clock shows it
			p.add(at, "", Schedule{Type: daily, At: at})
		}
		p.add("hourly", "", Schedule{Type: interval, IntervalSeconds: 3600})
		time.Sleep(65 * time.Minute) // 9:05
		p.heard("09:00 21 09:00", "hourly 21 09:00")
		jump(2 * time.Hour) // 11:05
		time.Sleep(time.Minute)
		p.heard("10:30 21 10:30", "hourly 21 11:00")
		time.Sleep(30 * time.Minute) // 11:36
		p.heard("11:30 21 11:30")
		jump(-2 * time.Hour) // 9:36
		time.Sleep(2*time.Hour + 10*time.Minute)
		p.heard("hourly 21 10:00") // 11:46; its time comes a second time, and this one was missed before
		time.Sleep(15 * time.Minute)
		p.heard("12:00 21 12:00", "hourly 21 12:00")
		jump(24 * time.Hour)
		time.Sleep(time.Minute)
		p.heard("09:00 22 09:00", "10:30 22 10:30", "11:30 22 11:30", "12:00 22 12:00", "hourly 22 12:00")
		before := now()
		p.now = before
		soon := p.add("soon", "", Schedule{Type: once, At: before.Add(4 * time.Second).Format(time.RFC3339)})
		time.Sleep(time.Minute)
		p.heard("soon " + soon.NextDue.Format("02 15:04"))
		if late := p.task(soon.ID).LastRun.Sub(soon.NextDue); late > time.Second { // by the virtual clock
			t.Errorf("a task that was just added fired %s late", late)
		}
		cancel()
		running.Wait()
	})
}

// TestModes: what a task says of itself decides what happens when it is due.
func TestModes(t *testing.T) {
	for want, task := range map[Mode]Task{Reminder: {}, notify: {Prompt: "x"}, Silent: {Prompt: "x", Background: true}} {
		expect.Equal(t, task.Mode(), want)
	}
	expect.Equal(t, Task{Background: true}.Mode(), Reminder)
}

// TestOutage: without a model, a run is retried every half hour. No other run of its task starts,
// the task is not paused, and its own failures are kept.
func TestOutage(t *testing.T) {
	p := newPost(t)
	through := func(day, hour int) {
		for end := time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC); p.now.Before(end); {
			p.now = p.now.Add(10 * time.Minute)
			p.look()
			p.work()
		}
	}
	tea := p.add("tea", "", Schedule{Type: daily, At: "09:00"})
	p.add("call", "", Schedule{Type: once, At: "09:10"})
	tries := 0
	down := func(Run) error { tries++; return fmt.Errorf("%w: connection refused", ErrOutage) }
	p.fail = down
	through(21, 20)
	if tries != 23+22 { // 09:00, 09:30, … 20:00, and 09:10 …
		t.Errorf("tried %d times, want 45", tries)
	}
	through(24, 8)
	if got := p.task(tea.ID); got.Status != Active || got.Failures != 0 || got.Runs != 0 {
		t.Errorf("in the outage: %+v", got)
	}
	p.heard()
	p.fail = nil
	p.at(24, 8, 40)
	p.heard("tea 21 09:00", "call 21 09:10")
	if got := p.task(tea.ID); got.Runs != 1 || got.LastResult != "⏰ Reminder: tea" {
		t.Errorf("after the outage: %+v", got)
	}
	p.fail = func(Run) error { return errors.New("no such folder") }
	p.at(25, 9, 0)
	p.fail = down
	p.at(25, 9, 1)
	p.at(25, 9, 31)
	if got := p.task(tea.ID); got.Failures != 1 {
		t.Errorf("an outage among failures: %+v", got)
	}
}
