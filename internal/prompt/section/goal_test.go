package section

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"reverie/internal/goal"
	"reverie/internal/test/expect"
)

func TestSetGoal(t *testing.T) {
	g := goal.Goal{ID: "goal_x", Description: "Ship it", Priority: "low", Status: goal.Active,
		Checkpoints: []goal.Checkpoint{{N: 1, Description: "Plan", Status: goal.InProgress}},
		Decisions:   []goal.Decision{{N: 1, Description: "Use Go", Locked: true}, {N: 2, Description: "Use tabs"}}}
	for name, c := range map[string]struct {
		tier  int
		tools []string
		goal  func(goal.Goal) goal.Goal
		want  Turn
	}{
		"none":   {goal: func(goal.Goal) goal.Goal { return goal.Goal{} }},
		"tier 1": {tier: 1, want: Turn{Tier: 1, Goal: []string{"CURRENT GOAL: Ship it (low, active) · 🔒 Use Go (locked)"}, Pin: "Plan", Markers: true}},
		"tier 2": {tier: 2, want: Turn{Tier: 2, Goal: []string{"CURRENT GOAL: Ship it", "Priority: Low", "Status: Active", "🔒 Use Go (locked)"},
			Steps: []string{"🔄 1. Plan (IN PROGRESS)", "- Decided: Use tabs"}, Pin: "Plan", Markers: true}},
		"with the tool": {tools: []string{"goal"}, want: Turn{Tools: []string{"goal"}, Goal: []string{"CURRENT GOAL: Ship it", "Priority: Low", "Status: Active", "🔒 Use Go (locked)"},
			Steps: []string{"🔄 1. Plan (IN PROGRESS)", "- Decided: Use tabs"}, Pin: "Plan"}},
		"completed": {goal: func(g goal.Goal) goal.Goal { g.Status, g.Summary = goal.Completed, "It is out"; return g },
			want: Turn{Goal: []string{"CURRENT GOAL: Ship it", "Priority: Low", "Status: Completed", "🔒 Use Go (locked)", "Outcome: It is out"}}},
	} {
		turn := Turn{Tier: c.tier, Tools: c.tools}
		goal := g
		if c.goal != nil {
			goal = c.goal(g)
		}
		turn.SetGoal(goal)
		expect.NoDiff(t, turn, c.want, name)
	}
}

// Goals of every size: the fixed parts are in the prompt whole, and the most important steps.
// Everything is shown or counted; nothing is cut off.
func TestGoalCollapses(t *testing.T) {
	collapsed := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := func(name string, most int) string {
			return strings.Repeat("é", rapid.IntRange(1, most).Draw(rt, name))
		}
		g := goal.Goal{ID: "goal_x", Description: text("goal", 400), Priority: "medium", Status: goal.Active}
		all := 0
		for i := range rapid.IntRange(0, 20).Draw(rt, "steps") {
			s := rapid.SampledFrom([]goal.CheckpointStatus{goal.Done, goal.InProgress, goal.Pending}).Draw(rt, "status")
			g.Checkpoints = append(g.Checkpoints, goal.Checkpoint{N: i + 1, Description: text("step", 300), Status: s})
			all++
		}
		for i := range rapid.IntRange(0, 30).Draw(rt, "decisions") {
			d := goal.Decision{N: i + 1, Description: text("decision", 300), Locked: i < 10}
			if !d.Locked {
				all++
			}
			g.Decisions = append(g.Decisions, d)
		}
		for range rapid.IntRange(0, 100).Draw(rt, "files") {
			g.Artifacts = append(g.Artifacts, goal.Artifact{Action: "created", Path: text("path", 500)})
			all++
		}
		var turn Turn
		turn.SetGoal(g)
		holds := strings.Join(turn.Goal, "\n")
		for _, d := range g.Decisions {
			if d.Locked && !slices.Contains(turn.Goal, "🔒 "+d.Description+" (locked)") {
				rt.Fatalf("a locked decision is missing in\n%s", holds)
			}
		}
		for _, row := range Catalog {
			for id, lines := range map[string][]string{"goal": turn.Goal, "steps": turn.Steps, "pin": {turn.Pin}} {
				if n := utf8.RuneCountInString(strings.Join(oneLines(lines), "\n")); row.Name == id && n > row.Max {
					rt.Fatalf("%s takes %d characters of %d", id, n, row.Max)
				}
			}
		}
		shown := len(turn.Steps)
		if shown > 0 {
			var left int
			if n, _ := fmt.Sscanf(turn.Steps[shown-1], "- … and %d more", &left); n == 1 {
				shown += left - 1
				collapsed++
			}
		}
		if shown != all {
			rt.Fatalf("%d of %d are shown or counted:\n%s", shown, all, strings.Join(turn.Steps, "\n"))
		}
		if turn.Pin != "" && !slices.ContainsFunc(turn.Steps, func(s string) bool { return strings.Contains(s, turn.Pin) }) {
			rt.Fatalf("the current step is left out of\n%s", strings.Join(turn.Steps, "\n"))
		}
	})
	expect.False(t, collapsed == 0, "nothing was ever left out: this tests nothing")
}

func TestCollapseByWhatMatters(t *testing.T) {
	g := goal.Goal{ID: "goal_x", Description: "x", Priority: "low", Status: goal.Active}
	long := strings.Repeat("x", 280)
	for i := range 12 {
		g.Checkpoints = append(g.Checkpoints, goal.Checkpoint{N: i + 1, Description: fmt.Sprint("step ", i+1, " ", long), Status: []goal.CheckpointStatus{goal.Done, goal.Done, goal.InProgress, goal.Pending}[i/3]})
	}
	got := goalSteps(g)
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], " "+long, "")
	}
	want := []string{"🔄 7. step 7 (IN PROGRESS)", "🔄 8. step 8 (IN PROGRESS)", "🔄 9. step 9 (IN PROGRESS)",
		"⏳ 10. step 10", "⏳ 11. step 11", "⏳ 12. step 12", "- … and 6 more, done or of less weight"}
	expect.NoDiff(t, got, want, "other than wanted")
}
