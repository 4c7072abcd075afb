package goal

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// done returns the goal of a change and fails on an error.
func done(t testing.TB) func(Goal, error) Goal {
	return func(g Goal, err error) Goal {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
}

// state lists the goals of a room with description and status, latest first.
func state(t testing.TB, g *Store, room string) string {
	t.Helper()
	goals := expect.Must(g.List(t.Context(), in(room), 100))(t)
	var out []string
	for _, one := range goals {
		out = append(out, one.Description+" "+string(one.Status))
	}
	return strings.Join(out, ", ")
}

func TestGoalLifecycle(t *testing.T) {
	g, ok, ctx := newGoals(t), done(t), t.Context()
	first := ok(g.Create(ctx, asks(here, "@me:x"), " Ship\nthe release ", ""))
	if !regexp.MustCompile(`^goal_[a-z2-7]{8}$`).MatchString(first.ID) {
		t.Errorf("id %q", first.ID)
	}
	now := time.Date(2026, 11, 21, 8, 14, 31, 0, time.UTC)
	want := Goal{ID: first.ID, Room: here, User: "@me:x", Label: asks(here, "").Label(), Description: "Ship the release", Priority: "medium", Status: Active, Created: now, Updated: now}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	if again := ok(g.Create(ctx, asks(here, "@you:x"), "ship the release.", "")); again.ID != first.ID || again.Priority != "medium" {
		t.Errorf("the same goal said twice: %+v", again)
	}
	if again := ok(g.Create(ctx, asks(here, "@you:x"), "ship the release.", "HIGH")); again.ID != first.ID || again.Priority != "high" {
		t.Errorf("the same goal with a priority: %+v", again)
	}
	second := ok(g.Create(ctx, asks(here, "@me:x"), "Write the book", "low"))
	expect.Equal(t, state(t, g, here), "Write the book active, Ship the release paused")
	ok(g.Resume(ctx, asks(here, ""), ""))
	expect.Equal(t, state(t, g, here), "Ship the release active, Write the book paused")
	if again := ok(g.Resume(ctx, asks(here, ""), "#"+first.ID)); again.Status != Active {
		t.Errorf("resumed twice: %+v", again)
	}
	ok(g.Pause(ctx, asks(here, ""), ""))
	if _, active, err := g.Active(ctx, in(here)); active || err != nil {
		t.Errorf("after the pause one is active: %v, %v", active, err)
	}
	ok(g.Resume(ctx, asks(here, ""), second.ID))
	ok(g.Update(ctx, asks(here, ""), "", Patch{Next: "Chapter two"}))
	ended := ok(g.Complete(ctx, asks(here, ""), "", " It is\nwritten "))
	if ended.Status != Completed || ended.Summary != "It is written" || ended.Next != "" || ended.Ended.IsZero() || ended.Progress().Percentage != 100 {
		t.Errorf("completed: %+v", ended)
	}
	ok(g.Abandon(ctx, asks(here, ""), first.ID, "not needed"))
	expect.Equal(t, state(t, g, here), "Ship the release abandoned, Write the book completed")
}

// Each refusal says what to do, and nothing has changed.
func TestRefusalsSayWhatToDo(t *testing.T) {
	g, ok, ctx := newGoals(t), done(t), t.Context()
	paused := ok(g.Create(ctx, asks(here, ""), "Paused", ""))
	over := ok(g.Create(ctx, asks(here, ""), "Over", ""))
	ok(g.Complete(ctx, asks(here, ""), "", "it is done"))
	ok(g.Create(ctx, asks(here, ""), "Open", ""))
	before := state(t, g, here)
	long := strings.Repeat("x", 1001)
	for want, try := range map[string]func() (Goal, error){
		"priority \"urgent\" is not known: use high":      func() (Goal, error) { return g.Create(ctx, asks(here, ""), "x", "urgent") },
		"description has 1001 characters":                 func() (Goal, error) { return g.Create(ctx, asks(here, ""), long, "") },
		"nothing to update":                               func() (Goal, error) { return g.Update(ctx, asks(here, ""), "", Patch{}) },
		"no goal #goal_zzzzzzzz in this room: list":       func() (Goal, error) { return g.Pause(ctx, asks(here, ""), "goal_zzzzzzzz") },
		"cannot be paused: it is already paused":          func() (Goal, error) { return g.Pause(ctx, asks(here, ""), paused.ID) },
		"cannot be changed, it is completed already (it ": func() (Goal, error) { return g.SetCheckpoint(ctx, asks(here, ""), over.ID, "x", Done) },
		"cannot be resumed: it is completed; create":      func() (Goal, error) { return g.Resume(ctx, asks(here, ""), over.ID) },
		"checkpoint status \"half\" is not known: use":    func() (Goal, error) { return g.SetCheckpoint(ctx, asks(here, ""), "", "x", "half") },
		"there is no checkpoint 4, there are 0":           func() (Goal, error) { return g.SetCheckpoint(ctx, asks(here, ""), "", "#4", Done) },
		"there is no decision 1, there are 0": func() (Goal, error) {
			return g.Decide(ctx, asks(here, ""), "", Decision{N: 1, Description: "x"})
		},
		"rationale has 1001 characters": func() (Goal, error) {
			return g.Decide(ctx, asks(here, ""), "", Decision{Description: "x", Rationale: long})
		},
		"artifact action \"touched\" is not known": func() (Goal, error) {
			return g.RecordArtifact(ctx, asks(here, ""), "", Artifact{Path: "x", Action: "touched"})
		},
	} {
		expect.ErrorContains(t, second(try()), want)
	}
	expect.Equal(t, state(t, g, here), before, "afterwards")
}

func TestGoalSteps(t *testing.T) {
	g, ok, ctx := newGoals(t), done(t), t.Context()
	ok(g.Create(ctx, asks(here, ""), "Ship", ""))
	ok(g.SetCheckpoint(ctx, asks(here, ""), "", "Design the flow", Pending))
	ok(g.SetCheckpoint(ctx, asks(here, ""), "", "Write the code", Pending))
	ok(g.SetCheckpoint(ctx, asks(here, ""), "", " 1. design  THE flow. ", Done))
	ok(g.SetCheckpoint(ctx, asks(here, ""), "", "#2", InProgress))
	ok(g.SetCheckpoint(ctx, asks(here, ""), "", "Test it", InProgress))
	got := ok(g.Update(ctx, asks(here, ""), "", Patch{Next: "write the code"}))
	line := func(got Goal) (out string) {
		for _, c := range got.Checkpoints {
			out += fmt.Sprintf("%d %s %s|", c.N, c.Description, c.Status)
		}
		return out + got.Current()
	}
	expect.Equal(t, line(got), "1 Design the flow done|2 Write the code in progress|3 Test it in progress|write the code")
	expect.Equal(t, got.Progress(), (Progress{1, 3, 33}))
	got = ok(g.SetCheckpoint(ctx, asks(here, ""), "", "2", Done)) // what is done is not next any more
	expect.Equal(t, line(got), "1 Design the flow done|2 Write the code done|3 Test it in progress|Test it")
	got = ok(g.SetCheckpoint(ctx, asks(here, ""), "", "Design the flow", InProgress)) // begun anew, later than the other
	expect.Equal(t, line(got), "1 Design the flow in progress|2 Write the code done|3 Test it in progress|Design the flow")
	for i := range maxCheckpoints - 3 {
		ok(g.SetCheckpoint(ctx, asks(here, ""), "", fmt.Sprintf("Step number %d", i), Pending))
	}
	expect.ErrorContains(t, second(g.SetCheckpoint(ctx, asks(here, ""), "", "One more", Pending)), "at most 20 checkpoints", "the 21st")
	ok(g.SetCheckpoint(ctx, asks(here, ""), "", "Step number 3", Done)) // one that is there is none more
}

func TestArtifacts(t *testing.T) {
	g, ok, ctx := newGoals(t), done(t), t.Context()
	ok(g.Create(ctx, asks(here, ""), "Ship", ""))
	for _, a := range []Artifact{
		{Path: "src/login.ts", Action: "Created"}, {Path: "src/login.ts", Action: "modified"}, // still created
		{Path: "src/old.ts", Action: "modified"}, {Path: "src/old.ts", Action: "deleted"},
	} {
		ok(g.RecordArtifact(ctx, asks(here, ""), "", a))
	}
	got, _, err := g.Active(ctx, in(here))
	want := []Artifact{{"created", "src/login.ts"}, {"deleted", "src/old.ts"}}
	if diff := cmp.Diff(want, got.Artifacts); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for i := range maxArtifacts - len(want) {
		ok(g.RecordArtifact(ctx, asks(here, ""), "", Artifact{Path: fmt.Sprint("f", i), Action: "created"}))
	}
	expect.ErrorContains(t, second(g.RecordArtifact(ctx, asks(here, ""), "", Artifact{Path: "more", Action: "created"})), "at most 100 artifacts", "one too many")
}

// A locked decision never changes.
func TestLockedDecisions(t *testing.T) {
	g, ok, ctx := newGoals(t), done(t), t.Context()
	goal := ok(g.Create(ctx, asks(here, ""), "Ship", ""))
	ok(g.Decide(ctx, asks(here, ""), "", Decision{Description: "Use JWT for authentication", Rationale: "stateless"}))
	ok(g.Decide(ctx, asks(here, ""), "", Decision{Description: "use jwt for authentication.", Locked: true})) // locks it, keeps the reason
	ok(g.Decide(ctx, asks(here, ""), "", Decision{Description: "Database: SQLite", Locked: true}))
	ok(g.Decide(ctx, asks(here, ""), "", Decision{Description: "Use bcrypt"}))
	want := []Decision{{1, "Use JWT for authentication", "stateless", true}, {2, "Database: SQLite", "", true}, {3, "Use bcrypt", "", false}}
	same := func(what string) {
		t.Helper()
		got, err := g.Get(ctx, in(here), goal.ID)
		if diff := cmp.Diff(want, got.Decisions); err != nil || diff != "" {
			t.Errorf("after %s: %v %s", what, err, diff)
		}
	}
	same("recording")
	for what, try := range map[string]func() (Goal, error){
		"other words": func() (Goal, error) {
			return g.Decide(ctx, asks(here, ""), "", Decision{N: 1, Description: "Use sessions"})
		},
		"other reason": func() (Goal, error) {
			return g.Decide(ctx, asks(here, ""), "", Decision{N: 1, Rationale: "fast"})
		},
		"said anew": func() (Goal, error) {
			return g.Decide(ctx, asks(here, ""), "", Decision{Description: "Use JWT for authentication", Rationale: "fast"})
		},
		"another value": func() (Goal, error) {
			return g.Decide(ctx, asks(here, ""), "", Decision{Description: "database: Postgres"})
		},
	} {
		_, err := try()
		if !errors.Is(err, errLocked) || !strings.Contains(err.Error(), "is locked and never changes: keep to it") {
			t.Errorf("%s: %v", what, err)
		}
		same(what)
	}
	for _, query := range []string{`UPDATE goal_decision SET locked = 0`, `UPDATE goal_decision SET description = 'x' WHERE n = 2`, `DELETE FROM goal_decision`} {
		expect.ErrorContains(t, second(g.db.Exec(query)), "a locked decision never", "%s", query)
		same(query)
	}
	ok(g.Decide(ctx, asks(here, ""), "", Decision{Description: "Use JWT for authentication", Locked: true})) // nothing new
	ok(g.Decide(ctx, asks(here, ""), "", Decision{Description: "Use JWT for authentication"}))
	ok(g.Decide(ctx, asks(here, ""), "", Decision{N: 1}))
	same("the same again")
	ok(g.Decide(ctx, asks(here, ""), "", Decision{N: 3, Description: "Use argon2", Locked: true}))
	ok(g.Decide(ctx, asks(here, ""), "", Decision{Description: "Log: JSON"})) // another topic
	want = append(want[:2], Decision{3, "Use argon2", "", true}, Decision{4, "Log: JSON", "", false})
	same("a change of one that was not locked")
	for i := range maxLocked - 3 {
		ok(g.Decide(ctx, asks(here, ""), "", Decision{Description: fmt.Sprintf("Thing %d is so", i), Locked: true}))
	}
	if _, err := g.Decide(ctx, asks(here, ""), "", Decision{Description: "Log: JSON", Locked: true}); err == nil || !strings.Contains(err.Error(), "at most 10 locked decisions") {
		t.Errorf("an eleventh lock: %v", err)
	}
}

// Invariants under any sequence of calls: locked decisions never change, at most one goal is
// active, and no limit is exceeded.
func TestGoalInvariants(t *testing.T) {
	g := newGoals(t)
	rooms := 0
	rapid.Check(t, func(rt *rapid.T) {
		rooms++
		room, ctx := fmt.Sprint("!room", rooms), t.Context()
		locked := map[string]Decision{} // by goal and number
		text := rapid.SampledFrom([]string{"A", "B: 1", "B: 2", "not A", "C", "D", "E", "1", "2. C"})
		message := int64(0)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			what, s := rapid.IntRange(0, 9).Draw(rt, "what"), text.Draw(rt, "text")
			yes := rapid.Bool().Draw(rt, "yes")
			var err error
			switch what {
			case 0:
				_, err = g.Create(ctx, asks(room, ""), s, "")
			case 1:
				_, err = g.Pause(ctx, asks(room, ""), "")
			case 2:
				_, err = g.Resume(ctx, asks(room, ""), "")
			case 3:
				_, err = g.Complete(ctx, asks(room, ""), "", "done")
			case 4:
				_, err = g.Decide(ctx, asks(room, ""), "", Decision{N: rapid.IntRange(0, 4).Draw(rt, "n"), Description: s, Locked: yes})
			case 5:
				_, err = g.SetCheckpoint(ctx, asks(room, ""), "", s, Done)
			case 6:
				message++
				_, err = g.ApplyMarkers(ctx, asks(room, ""), room, message, []Marker{{Kind: "GOAL", Text: s}, {Kind: "DECISION", Text: s, State: map[bool]string{true: "locked"}[yes]}})
			default:
				_, err = g.Decide(ctx, asks(room, ""), "", Decision{Description: s, Locked: yes, Rationale: rapid.SampledFrom([]string{"", "why"}).Draw(rt, "why")})
			}
			var b *refusalError
			if err != nil && !errors.As(err, &b) {
				rt.Fatal(err)
			}
			all := expect.Must(g.List(ctx, in(room), 100))(rt)
			seen, active := 0, 0
			for _, goal := range all {
				if goal.Status == Active {
					active++
				}
				for _, d := range goal.Decisions {
					key := fmt.Sprint(goal.ID, d.N)
					if was, known := locked[key]; known && was != d {
						rt.Fatalf("%+v was locked, and is %+v now", was, d)
					}
					if d.Locked {
						locked[key] = d
						seen++
					}
				}
			}
			if active > 1 || seen != len(locked) {
				rt.Fatalf("%d active goals; %d of %d locked decisions are there", active, seen, len(locked))
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestGoalBounds(t *testing.T) {
	g, ok, ctx := newGoals(t), done(t), t.Context()
	for i := range maxOpenGoals {
		ok(g.Create(ctx, asks(here, ""), fmt.Sprintf("Goal %d", i), ""))
	}
	expect.ErrorContains(t, second(g.Create(ctx, asks(here, ""), "One more", "")), "complete or abandon one first", "one too many")
	ok(g.Create(ctx, asks(there, ""), "In another room", ""))
}

// The active goal, or the one completed in this conversation until a newer one exists.
func TestForPrompt(t *testing.T) {
	g, ok, ctx := newGoals(t), done(t), t.Context()
	shown := func(since time.Time) string {
		t.Helper()
		got, yes, err := g.ForPrompt(ctx, in(here), since)
		if err != nil || yes != (got.ID != "") {
			t.Fatal(got, yes, err)
		}
		return got.Description
	}
	begun := g.now()
	for i, want := range []string{"", "First", "Second", "First", "First", "", "Third", "", "Fourth", ""} {
		switch i {
		case 1:
			ok(g.Create(ctx, asks(here, ""), "First", ""))
		case 2:
			ok(g.Create(ctx, asks(here, ""), "Second", ""))
		case 3:
			ok(g.Resume(ctx, asks(here, ""), ""))
		case 4:
			ok(g.Complete(ctx, asks(here, ""), "", "it is done"))
		case 5: // a new conversation
			begun = g.now()
		case 6:
			ok(g.Create(ctx, asks(here, ""), "Third", ""))
			ok(g.Complete(ctx, asks(here, ""), "", "it is done"))
		case 7: // another one came, and waits
			ok(g.Create(ctx, asks(here, ""), "Fourth", ""))
			ok(g.Pause(ctx, asks(here, ""), ""))
		case 8:
			ok(g.Resume(ctx, asks(here, ""), ""))
		case 9:
			ok(g.Abandon(ctx, asks(here, ""), "", "it is not needed"))
		}
		expect.Equal(t, shown(begun), want, "shown at %d", i)
	}
	expect.Equal(t, shown(time.Time{}), "", "without a conversation")
}

func TestGoalMove(t *testing.T) {
	g, ok, ctx := newGoals(t), done(t), t.Context()
	ok(g.Create(ctx, asks(here, ""), "One", ""))
	ok(g.Decide(ctx, asks(here, ""), "", Decision{Description: "So be it", Locked: true}))
	expect.Must(g.ApplyMarkers(ctx, asks(here, ""), here, 7, nil))(t)
	for range 2 {
		expect.OK(t, g.Move(ctx, here, there))
	}
	if a, b := state(t, g, here), state(t, g, there); a != "" || b != "One active" {
		t.Errorf("%q, %q", a, b)
	}
	expect.Equal(t, lastApplied(t, g, there), 7)
	ok(g.Create(ctx, asks(here, ""), "Two", ""))
	expect.OK(t, g.Move(ctx, here, there))
	expect.OK(t, g.Move(ctx, there, there))
	expect.Equal(t, state(t, g, there), "One active, Two paused")
	if got, _, err := g.Active(ctx, in(there)); err != nil || len(got.Decisions) != 1 || !got.Decisions[0].Locked {
		t.Errorf("%+v, %v", got, err)
	}
}

// lastApplied returns the last message of a conversation whose markers were applied.
func lastApplied(t testing.TB, g *Store, conversation string) int {
	t.Helper()
	return expect.Must(store.Value[int](t.Context(), g.db, `SELECT message FROM goal_cursor WHERE room = ?`, conversation))(t)
}

// applyText applies the markers in text as message n and returns the refusals.
func applyText(t testing.TB, g *Store, n int64, text string) string {
	t.Helper()
	markers, rest := ParseMarkers(text)
	if strings.TrimSpace(rest) != "" {
		t.Fatalf("%q is not all markers: %q is left", text, rest)
	}
	refused := expect.Must(g.ApplyMarkers(t.Context(), asks(here, "@me:x"), here, n, markers))(t)
	return strings.Join(refused, "; ")
}

// goalNow formats the goal for prompts, one part per line.
func goalNow(t testing.TB, g *Store) string {
	t.Helper()
	goal, ok, err := g.Active(t.Context(), in(here))
	if err != nil || !ok {
		return fmt.Sprint("none ", state(t, g, here))
	}
	lines := []string{goal.Description + " " + goal.Priority}
	for _, c := range goal.Checkpoints {
		lines = append(lines, fmt.Sprintf("%s %s", c.Description, c.Status))
	}
	for _, d := range goal.Decisions {
		lines = append(lines, fmt.Sprintf("%s %v", d.Description, d.Locked))
	}
	for _, a := range goal.Artifacts {
		lines = append(lines, a.Action+" "+a.Path)
	}
	return strings.Join(append(lines, "next "+goal.Next), "\n")
}

func TestApplyMarkers(t *testing.T) {
	g := newGoals(t)
	const lines = `[GOAL] Implement user authentication system
[CHECKPOINT] Design authentication flow - COMPLETED
[DECISION] Use JWT for authentication - LOCKED
[ARTIFACT] Created src/auth/login.ts
[NEXT] Implement JWT token generation`
	const want = `Implement user authentication system medium
Design authentication flow done
Use JWT for authentication true
created src/auth/login.ts
next Implement JWT token generation`
	for range 3 { // once, however often the message is delivered
		expect.Equal(t, applyText(t, g, 10, lines), "")
		expect.Equal(t, goalNow(t, g), want)
	}
	applyText(t, g, 9, "[GOAL] Something older") // comes too late
	expect.Equal(t, goalNow(t, g), want, "an older message changed it")
	applyText(t, g, 11, lines) // said again in another message: nothing new
	expect.Equal(t, goalNow(t, g), want)
	expect.Equal(t, lastApplied(t, g, here), 11)
}

func TestApplySteps(t *testing.T) {
	g := newGoals(t)
	n := int64(0)
	for _, step := range []struct{ said, refused, want string }{
		{"[CHECKPOINT] Plan", "no goal is active", "none "},
		{"[GOAL] Ship\n[CHECKPOINT] Plan - IN PROGRESS\n[CHECKPOINT] Code", "", "Ship medium\nPlan in progress\nCode pending\nnext "},
		{"[CHECKPOINT] Plan", "", "Ship medium\nPlan in progress\nCode pending\nnext "}, // no status: it stays
		{"[NEXT] 2", "", "Ship medium\nPlan in progress\nCode pending\nnext Code"},
		{"[CHECKPOINT] 1 - DONE\n[NEXT] 9", "", "Ship medium\nPlan done\nCode pending\nnext 9"},
		{"[CHECKPOINT] 9 - DONE", "there is no checkpoint 9, there are 2", "Ship medium\nPlan done\nCode pending\nnext 9"},
		{"[GOAL] ship!", "", "Ship medium\nPlan done\nCode pending\nnext 9"},
		{"[GOAL] Another", "", "Another medium\nnext "},
		{"[GOAL] Ship", "", "Ship medium\nPlan done\nCode pending\nnext 9"}, // a paused one is taken up
		{"[GOAL] Another - ABANDONED", "", "Ship medium\nPlan done\nCode pending\nnext 9"},
		{"[GOAL] Nobody's - COMPLETED", "no such goal", "Ship medium\nPlan done\nCode pending\nnext 9"},
		{"[CHECKPOINT] Code - DONE\n[NEXT] Tests", "", "Ship medium\nPlan done\nCode done\nnext Tests"}, // it goes on
		{"[CHECKPOINT] Tests", "", "Ship medium\nPlan done\nCode done\nTests pending\nnext Tests"},
		{"[CHECKPOINT] Tests - DONE", "", "none Ship completed, Another abandoned"}, // the last open one
		{"[GOAL] Ship\n[CHECKPOINT] More", "no goal is active", "none Ship completed, Another abandoned"},
		{"[GOAL] New\n[CHECKPOINT] A - DONE\n[CHECKPOINT] B - DONE", "", "New medium\nA done\nB done\nnext "}, // noted as they went
		{"[GOAL] New - PAUSED", "", "none New paused, Ship completed, Another abandoned"},
		{"[GOAL] New\n[GOAL] New - COMPLETED\n[NEXT] x", "no goal is active", "none New completed, Ship completed, Another abandoned"},
		{"[GOAL] Last\n[DECISION] Topic: one - LOCKED\n[DECISION] Topic: two\n[DECISION] topic: ONE - UNLOCKED\n[CHECKPOINT] Go on", "locked and never changes", "Last medium\nGo on pending\nTopic: one true\nnext "},
		{"[CHECKPOINT] " + strings.Repeat("é", 400), "", "Last medium\nGo on pending\n" + strings.Repeat("é", 299) + "… pending\nTopic: one true\nnext "},
	} {
		n++
		refused := applyText(t, g, n, step.said)
		if got := goalNow(t, g); got != step.want || (refused == "") != (step.refused == "") || !strings.Contains(refused, step.refused) {
			t.Errorf("%s\nrefused %q, want %q; got\n%s\nwant\n%s", step.said, refused, step.refused, got, step.want)
		}
	}
}
