package task

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The years of the tests: with the 29th of February 2028.
var (
	yearsFrom = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	yearsTo   = yearsFrom.AddDate(2, 0, 0)
)

// yearKinds are schedules of each kind, at times that changes of the clocks leave out
// or repeat, but none so often that two years of it would take long.
func yearKinds(t testing.TB, loc *time.Location) []Schedule {
	t.Helper()
	var all []Schedule
	for _, s := range []Schedule{
		{Type: once, At: "2028-02-29 12:34"},
		{Type: once, At: "2027-10-31 00:30"},
		{Type: daily, At: "02:30"},
		{Type: weekly, DayOfWeek: "sun", At: "02:15"},
		{Type: monthly, DayOfMonth: 31, At: "02:00"},
		{Type: monthly, DayOfMonth: 29, At: "23:59"},
		{Type: interval, IntervalSeconds: 47 * 3600},
		{Type: interval, IntervalSeconds: 3600, WindowStart: "23:30", WindowEnd: "00:45"},
		{Type: interval, IntervalSeconds: 36 * 3600, WindowStart: "01:30", WindowEnd: "03:30"},
		{Type: byCron, Expression: "0 3 29 2 *"},
		{Type: byCron, Expression: "15 */6 13 * 5"},
		{Type: byCron, Expression: "0 * * 3,10 0"},
	} {
		valid, err := s.Validate(yearsFrom, loc)
		if err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		all = append(all, valid)
	}
	return all
}

// twice is the number of the one among them that is due twice in an hour of each day.
const twice = 7

// years is a post on which two years pass, in one zone.
type years struct {
	*post
	loc  *time.Location
	want map[string][]time.Time // what the oracle lists, by task
	got  map[string][]time.Time
	all  []Task
	seen func() // is called whenever the scheduler looks
}

// inYears is what the oracle says, by schedule and zone: two tests ask for the same, and it takes long.
var inYears sync.Map

func dueInYears(s Schedule, loc *time.Location) []time.Time {
	type in struct {
		s    Schedule
		zone string
	}
	key := in{s, loc.String()}
	if due, known := inYears.Load(key); known {
		return due.([]time.Time)
	}
	due := oracle(s, yearsFrom, yearsTo, yearsFrom, loc)
	inYears.Store(key, due)
	return due
}

// newYears has a task of each kind; policy says what its policy is, by its number.
func newYears(t *testing.T, zone string, policy func(i int) CatchUp) *years {
	t.Helper()
	y := &years{post: newPost(t), want: map[string][]time.Time{}, got: map[string][]time.Time{}, seen: func() {}}
	// One program on one connection, which no power cut threatens.
	y.store.db.SetMaxOpenConns(1)
	must(y.store.db.Exec(`PRAGMA synchronous = OFF`))(t)
	y.loc = inZone(t, zone)
	y.now, y.store.Location = yearsFrom, y.loc
	for i, s := range yearKinds(t, y.loc) {
		due := dueInYears(s, y.loc)
		if len(due) == 0 {
			t.Errorf("%s: never due", s)
		}
		it := add(t, y.store, Task{Room: here, User: "@ann:x", Content: fmt.Sprintf("%d, %s", i, s), Schedule: &s, CatchUp: policy(i)})
		y.want[it.ID], y.all = due, append(y.all, it)
	}
	return y
}

// pass lets the time pass until the moment: whatever is due is said at its time.
func (y *years) pass(until time.Time) {
	y.t.Helper()
	for {
		var due sql.NullInt64
		if err := y.store.db.QueryRow(`SELECT min(next_due) FROM task WHERE status = 'active'`).Scan(&due); err != nil {
			y.t.Fatal(err)
		}
		at := moment64(due)
		if !due.Valid || at.After(until) {
			break
		}
		if at.After(y.now) {
			y.now = at
		}
		y.happen(false)
	}
	y.now = until
}

// happen looks, perhaps with the clock set back, and works on what is due.
func (y *years) happen(back bool) {
	y.t.Helper()
	y.seen()
	if _, err := y.sched.look(y.t.Context(), y.now, back); err != nil {
		y.t.Fatal(err)
	}
	y.work()
}

// die forgets all that is not in the database.
func (y *years) die() {
	y.restart(y.store.db)
	y.store.Location = y.loc
}

// compare looks that what was said is want, to the order, and that it is recorded.
func (y *years) compare(want map[string][]time.Time) {
	y.t.Helper()
	for _, it := range y.all {
		got, want := y.got[it.ID], want[it.ID]
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || !got[i].Equal(want[i]) {
				y.t.Errorf("%s: number %d of %d or %d: said %s, want %s", it.Content, i, len(got), len(want), pick(got, i), pick(want, i))
				break
			}
		}
		if now := y.task(it.ID); now.Runs != len(want) || it.Schedule.Type == once != (now.Status == Completed) {
			y.t.Errorf("%s: %s after %d runs, want %d", it.Content, now.Status, now.Runs, len(want))
		}
	}
	var open int
	if err := y.store.db.QueryRow(`SELECT count(*) FROM job_run WHERE state NOT IN ('done', 'skipped') OR attempt > 1`).Scan(&open); err != nil || open > 0 {
		y.t.Errorf("%d runs are open or were tried again, %v", open, err)
	}
}

// TestTwoYearsOfTrouble is two years in which the program is down for days, dies
// when something is due, sleeps for a day, and has its clock set by two hours either
// way: what is missed is made up for by the policy of the task and nothing else,
// nothing is said twice, and what is due beside all that is said at its time.
// Holds T1, T2.
func TestTwoYearsOfTrouble(t *testing.T) {
	for n, zone := range zones {
		t.Run(strings.ReplaceAll(zone, "/", "_"), func(t *testing.T) {
			t.Parallel()
			y := newYears(t, zone, func(i int) CatchUp { return []CatchUp{CatchOnce, CatchSkip, CatchAll}[(i+n)%3] })
			want := y.policies()
			y.fail = func(r Run) error {
				if late := y.now.Sub(r.Due) > 2*time.Minute; r.Late() != late || r.Attempt != 1 {
					t.Errorf("%s: due %s, said %s: late %t, attempt %d", r.Task.Content, r.Due, y.now, r.Late(), r.Attempt)
				}
				y.got[r.Task.ID] = append(y.got[r.Task.ID], r.Due)
				return nil
			}
			random := rand.New(rand.NewPCG(uint64(n), 8))
			for {
				y.pass(y.now.Add(time.Duration(random.IntN(15*24*60)) * time.Minute))
				if y.now.After(yearsTo.AddDate(0, 0, -22)) {
					break
				}
				y.trouble(random)
			}
			y.compare(want)
		})
	}
}

// trouble is one of them.
func (y *years) trouble(random *rand.Rand) {
	y.t.Helper()
	switch random.IntN(6) {
	case 0, 1: // down
		y.now = y.now.Add(time.Duration(random.IntN(6*24*60)) * time.Minute)
		y.die()
	case 2: // dead behind the claim
		y.pass(y.now.Add(12 * time.Hour))
		y.seen()
		y.look()
		y.die()
	case 3: // asleep
		y.now = y.now.Add(24 * time.Hour)
	case 4:
		y.now = y.now.Add(2 * time.Hour)
	case 5:
		if random.IntN(2) == 0 { // its clock was ahead for a minute: what it left out then is to come yet
			y.pass(y.task(y.all[twice].ID).NextDue.Add(-5 * time.Minute))
			y.now = y.now.Add(2 * time.Hour)
			y.happen(false)
			y.pass(y.now.Add(time.Minute))
		}
		y.now = y.now.Add(-2 * time.Hour)
		if random.IntN(2) == 0 {
			y.die()
		}
		y.happen(true)
		for range 24 { // it looks all the time, not only when it knows of something
			y.pass(y.now.Add(5 * time.Minute))
			y.happen(false)
		}
		return
	}
	y.happen(false)
}

// policies is what the policies promise, worked out from the oracle's lists and the
// moments at which the scheduler looks.
func (y *years) policies() map[string][]time.Time {
	want := map[string][]time.Time{}
	known := map[string]map[time.Time]bool{} // said, or left out for good
	for _, it := range y.all {
		known[it.ID] = map[time.Time]bool{}
	}
	last := yearsFrom
	y.seen = func() {
		for _, it := range y.all {
			all := y.want[it.ID]
			due := all[after(all, last):max(after(all, y.now), after(all, last))]
			if most := map[CatchUp]int{CatchAll: 24}[it.CatchUp]; len(due) > max(most, 1) {
				due = due[len(due)-max(most, 1):]
			}
			for _, d := range due {
				if !known[it.ID][d] && (it.CatchUp != CatchSkip || y.now.Sub(d) <= 2*time.Minute) {
					want[it.ID] = append(want[it.ID], d)
				}
				known[it.ID][d] = true
			}
		}
		last = y.now
	}
	return want
}

// after is the number of the first of times that is after t.
func after(times []time.Time, t time.Time) int {
	n, _ := slices.BinarySearchFunc(times, t, func(d, t time.Time) int { return max(d.Compare(t), 0)*2 - 1 })
	return n
}
