package task

import (
	"fmt"
	"strings"
	"testing"
)

// hears applies the markers in text as message n, and returns what was refused.
func hears(t testing.TB, g *Goals, n int64, text string) string {
	t.Helper()
	markers, rest, dropped := ParseMarkers(text)
	if strings.TrimSpace(rest) != "" || dropped > 0 {
		t.Fatalf("%q is not all markers: %q is left, %d dropped", text, rest, dropped)
	}
	refused := must(g.ApplyIn(t.Context(), asks(here, "@me:x"), here, n, markers))(t)
	return strings.Join(refused, "; ")
}

// goalNow is the shown goal in a line of its own for each part.
func goalNow(t testing.TB, g *Goals) string {
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

func TestApply(t *testing.T) {
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
		if refused := hears(t, g, 10, lines); refused != "" {
			t.Error(refused)
		}
		if got := goalNow(t, g); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	hears(t, g, 9, "[GOAL] Something older") // comes too late
	if got := goalNow(t, g); got != want {
		t.Errorf("an older message changed it:\n%s", got)
	}
	before := events(t, g, here, active(t, g).ID)
	hears(t, g, 11, lines) // said again in another message: nothing new
	if got := goalNow(t, g); got != want || events(t, g, here, active(t, g).ID) != before {
		t.Errorf("said again:\n%s", got)
	}
	if n, err := g.Heard(t.Context(), here); n != 11 || err != nil {
		t.Errorf("heard up to %d, %v", n, err)
	}
}

func active(t testing.TB, g *Goals) Goal {
	t.Helper()
	goal, ok, err := g.Active(t.Context(), in(here))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return goal
}

func TestApplySteps(t *testing.T) {
	g := newGoals(t)
	n := int64(0)
	for _, step := range []struct{ said, refused, want string }{
		{"[CHECKPOINT] Plan", "no goal is active", "none "},
		{"[GOAL] Ship | high\n[CHECKPOINT] Plan - IN PROGRESS\n[CHECKPOINT] Code", "", "Ship high\nPlan in progress\nCode pending\nnext "},
		{"[CHECKPOINT] Plan", "", "Ship high\nPlan in progress\nCode pending\nnext "}, // no status: it stays
		{"[NEXT] 2", "", "Ship high\nPlan in progress\nCode pending\nnext Code"},
		{"[CHECKPOINT] 1 - DONE\n[NEXT] 9", "", "Ship high\nPlan done\nCode pending\nnext 9"},
		{"[CHECKPOINT] 9 - DONE", "there is no checkpoint 9, there are 2", "Ship high\nPlan done\nCode pending\nnext 9"},
		{"[GOAL] ship! (priority: low)", "", "Ship low\nPlan done\nCode pending\nnext 9"},
		{"[GOAL] Another", "", "Another medium\nnext "},
		{"[GOAL] Ship", "", "Ship low\nPlan done\nCode pending\nnext 9"}, // a paused one is taken up
		{"[GOAL] Another - ABANDONED", "", "Ship low\nPlan done\nCode pending\nnext 9"},
		{"[GOAL] Nobody's - COMPLETED", "no such goal", "Ship low\nPlan done\nCode pending\nnext 9"},
		{"[CHECKPOINT] Code - DONE\n[NEXT] Tests", "", "Ship low\nPlan done\nCode done\nnext Tests"}, // it goes on
		{"[CHECKPOINT] Tests", "", "Ship low\nPlan done\nCode done\nTests pending\nnext Tests"},
		{"[CHECKPOINT] Tests - DONE", "", "none Ship completed, Another abandoned"}, // the last open one
		{"[GOAL] Ship\n[CHECKPOINT] More", "no goal is active", "none Ship completed, Another abandoned"},
		{"[GOAL] New\n[CHECKPOINT] A - DONE\n[CHECKPOINT] B - DONE", "", "New medium\nA done\nB done\nnext "}, // noted as they went
		{"[GOAL] New - PAUSED", "", "none New paused, Ship completed, Another abandoned"},
		{"[GOAL] New\n[GOAL] New - COMPLETED\n[NEXT] x", "no goal is active", "none New completed, Ship completed, Another abandoned"},
		{"[GOAL] Last\n[DECISION] Topic: one - LOCKED\n[DECISION] Topic: two\n[DECISION] topic: ONE - UNLOCKED\n[CHECKPOINT] Go on", "locked and never changes", "Last medium\nGo on pending\nTopic: one true\nnext "},
		{"[CHECKPOINT] " + strings.Repeat("é", 400), "", "Last medium\nGo on pending\n" + strings.Repeat("é", 299) + "… pending\nTopic: one true\nnext "},
	} {
		n++
		refused := hears(t, g, n, step.said)
		if got := goalNow(t, g); got != step.want || (refused == "") != (step.refused == "") || !strings.Contains(refused, step.refused) {
			t.Errorf("%s\nrefused %q, want %q; got\n%s\nwant\n%s", step.said, refused, step.refused, got, step.want)
		}
	}
	if got := events(t, g, here, active(t, g).ID); strings.Count(got, "conflict 1. Topic: one: ") != 2 {
		t.Errorf("events:\n%s", got)
	}
}
