package prompt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"reverie/internal/task"
)

// holds puts the room's goal into the world's turns, as a session does.
func (w *world) holds() task.Goal {
	w.t.Helper()
	g, _, err := w.tasks.Goals().Shown(w.t.Context(), w.caller().Place, time.Time{})
	w.must(err)
	t := Turn{Tier: w.tier, Tools: w.tools}
	t.SetGoal(g)
	w.goal, w.steps, w.pin, w.markers = t.Goal, t.Steps, t.Pin, t.Markers
	return g
}

// goalIs is must for changes of a goal.
func (w *world) goalIs(g task.Goal, err error) task.Goal {
	w.t.Helper()
	w.must(err)
	return g
}

func TestGoalInThePrompt(t *testing.T) {
	w := newWorld(t, Stable)
	w.file("skills/tea.md", "# How to make tea\n")
	w.tools = append(w.tools, "goal")
	w.restart()
	goals, ctx := w.tasks.Goals(), t.Context()
	w.goalIs(goals.Create(ctx, w.caller(), "Implement user authentication", "high"))
	w.goalIs(goals.SetCheckpoint(ctx, w.caller(), "", "Design the flow", task.Done))
	w.goalIs(goals.SetCheckpoint(ctx, w.caller(), "", "Add tokens", task.InProgress))
	w.goalIs(goals.SetCheckpoint(ctx, w.caller(), "", "Hash passwords", task.Pending))
	w.goalIs(goals.Decide(ctx, w.caller(), "", task.Decision{Description: "Use JWT", Locked: true}))
	w.goalIs(goals.Decide(ctx, w.caller(), "", task.Decision{Description: "Use bcrypt"}))
	w.goalIs(goals.RecordArtifact(ctx, w.caller(), "", task.Artifact{Action: "created", Path: "src/login.ts"}))
	w.holds()
	first := w.tells("Hello")
	w.expect(true, "# Active Goal\n<data id=\"k3f9\" source=\"goal\">\nCURRENT GOAL: Implement user authentication\nPriority: High\nStatus: Active\n🔒 Use JWT (locked)\n</data")
	w.expect(true, "Goal steps now:\n<data id=\"k3f9\" source=\"steps\">\n✅ 1. Design the flow\n🔄 2. Add tokens (IN PROGRESS)\n⏳ 3. Hash passwords\n- Decided: Use bcrypt\n- Created: src/login.ts\n</data")
	w.expect(true, "Current Task:\n<data id=\"k3f9\" source=\"current task\">\nAdd tokens\n</data")
	w.expect(false, "[CHECKPOINT]")
	if core, goal, skills := strings.Index(first.Prefix, "# Core Instructions"), strings.Index(first.Prefix, "# Active Goal"), strings.Index(first.Prefix, "# Skills"); core < 0 || goal < core || skills < goal {
		t.Errorf("core at %d, goal at %d, skills at %d", core, goal, skills)
	}

	// Steps, files, decisions that are not locked and what is next move within the epoch.
	for what, change := range map[string]func() (task.Goal, error){
		"step": func() (task.Goal, error) { return goals.SetCheckpoint(ctx, w.caller(), "", "2", task.Done) },
		"decision": func() (task.Goal, error) {
			return goals.Decide(ctx, w.caller(), "", task.Decision{Description: "Log to a file"})
		},
	} {
		w.goalIs(change())
		w.holds()
		w.answers("Well.")
		if p := w.tells("And now?"); p.Report.Epoch.New || p.Prefix != first.Prefix || p.Tail == "" {
			t.Errorf("%s: new epoch %v (%s), tail %q", what, p.Report.Epoch.New, p.Report.Epoch.Reason, p.Tail)
		}
	}
	w.expect(true, "✅ 2. Add tokens\n⏳ 3. Hash passwords\n- Decided: Use bcrypt\n- Decided: Log to a file\n- Created: src/login.ts\n")
	w.answers("Well.")
	if p := w.tells("Thanks"); p.Tail != "" {
		t.Errorf("nothing changed, but it is said again: %s", p.Tail)
	}

	// What holds for as long as the goal does is worth a new prefix.
	w.goalIs(goals.Decide(ctx, w.caller(), "", task.Decision{Description: "Log to a file", Locked: true}))
	w.holds()
	w.answers("Well.")
	if p := w.tells("And now?"); p.Report.Epoch.Reason != "goal changed" || !strings.Contains(p.Prefix, "🔒 Log to a file (locked)") {
		t.Errorf("after a lock: %q\n%s", p.Report.Epoch.Reason, p.Prefix)
	}
}

func TestSetGoal(t *testing.T) {
	g := task.Goal{ID: "goal_x", Description: "Ship it", Priority: "low", Status: task.Active,
		Checkpoints: []task.Checkpoint{{N: 1, Description: "Plan", Status: task.InProgress}},
		Decisions:   []task.Decision{{N: 1, Description: "Use Go", Locked: true}, {N: 2, Description: "Use tabs"}}}
	for name, c := range map[string]struct {
		tier  int
		tools []string
		goal  func(task.Goal) task.Goal
		want  Turn
	}{
		"none":   {goal: func(task.Goal) task.Goal { return task.Goal{} }},
		"tier 1": {tier: 1, want: Turn{Tier: 1, Goal: []string{"CURRENT GOAL: Ship it (low, active) · 🔒 Use Go (locked)"}, Pin: "Plan", Markers: true}},
		"tier 2": {tier: 2, want: Turn{Tier: 2, Goal: []string{"CURRENT GOAL: Ship it", "Priority: Low", "Status: Active", "🔒 Use Go (locked)"},
			Steps: []string{"🔄 1. Plan (IN PROGRESS)", "- Decided: Use tabs"}, Pin: "Plan", Markers: true}},
		"with the tool": {tools: []string{"goal"}, want: Turn{Tools: []string{"goal"}, Goal: []string{"CURRENT GOAL: Ship it", "Priority: Low", "Status: Active", "🔒 Use Go (locked)"},
			Steps: []string{"🔄 1. Plan (IN PROGRESS)", "- Decided: Use tabs"}, Pin: "Plan"}},
		"completed": {goal: func(g task.Goal) task.Goal { g.Status, g.Summary = task.Completed, "It is out"; return g },
			want: Turn{Goal: []string{"CURRENT GOAL: Ship it", "Priority: Low", "Status: Completed", "🔒 Use Go (locked)", "Outcome: It is out"}}},
	} {
		turn := Turn{Tier: c.tier, Tools: c.tools}
		goal := g
		if c.goal != nil {
			goal = c.goal(g)
		}
		turn.SetGoal(goal)
		if diff := cmp.Diff(c.want, turn); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Goals of every size: what holds stands in the prompt whole, and of the steps what
// matters most; all is shown or counted, and nothing is cut off.
func TestGoalCollapses(t *testing.T) {
	collapsed := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := func(name string, most int) string {
			return strings.Repeat("é", rapid.IntRange(1, most).Draw(rt, name))
		}
		g := task.Goal{ID: "goal_x", Description: text("goal", 400), Priority: "medium", Status: task.Active}
		all := 0
		for i := range rapid.IntRange(0, 20).Draw(rt, "steps") {
			s := rapid.SampledFrom([]task.Step{task.Done, task.InProgress, task.Pending}).Draw(rt, "status")
			g.Checkpoints = append(g.Checkpoints, task.Checkpoint{N: i + 1, Description: text("step", 300), Status: s})
			all++
		}
		for i := range rapid.IntRange(0, 30).Draw(rt, "decisions") {
			d := task.Decision{N: i + 1, Description: text("decision", 300), Locked: i < 10}
			if !d.Locked {
				all++
			}
			g.Decisions = append(g.Decisions, d)
		}
		for range rapid.IntRange(0, 100).Draw(rt, "files") {
			g.Artifacts = append(g.Artifacts, task.Artifact{Action: "created", Path: text("path", 500)})
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
		for _, row := range layouts[Stable] {
			for id, lines := range map[string][]string{"goal": turn.Goal, "steps": turn.Steps, "pin": {turn.Pin}} {
				if n := utf8.RuneCountInString(strings.Join(oneLines(lines), "\n")); row.ID == id && n > row.Max {
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
	if collapsed == 0 {
		t.Error("nothing was ever left out: this tests nothing")
	}
}

func TestCollapseByWhatMatters(t *testing.T) {
	g := task.Goal{ID: "goal_x", Description: "x", Priority: "low", Status: task.Active}
	long := strings.Repeat("x", 280)
	for i := range 12 {
		g.Checkpoints = append(g.Checkpoints, task.Checkpoint{N: i + 1, Description: fmt.Sprint("step ", i+1, " ", long), Status: []task.Step{task.Done, task.Done, task.InProgress, task.Pending}[i/3]})
	}
	got := goalSteps(g)
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], " "+long, "")
	}
	want := []string{"🔄 7. step 7 (IN PROGRESS)", "🔄 8. step 8 (IN PROGRESS)", "🔄 9. step 9 (IN PROGRESS)",
		"⏳ 10. step 10", "⏳ 11. step 11", "⏳ 12. step 12", "- … and 6 more, done or of less weight"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
