package section

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/goal"
)

// Sizes in characters. Steps stay below every layout's cap, so that they are dropped here by
// importance and never cut off there. The fixed parts fit by the limits of a goal.
const (
	stepChars  = 1_850 // without the line that counts the dropped ones
	oneGoal    = 450
	artifacts  = 8
	maxOutcome = 200
)

// markersHint teaches a model without the goal tool to report progress.
const markersHint = `When a step begins or ends, write a line of its own: [CHECKPOINT] the step - IN-PROGRESS, or - DONE. ` +
	`Likewise [DECISION] what was decided - LOCKED, [ARTIFACT] Created path, [NEXT] the next step. The person does not see such lines.`

// SetGoal puts a goal into the turn: Goal gets the fixed parts, Steps the changing ones, Pin the
// current step. Tier 1 gets one line, and how to report progress. t.Tier and t.Tools must be set; a
// goal without ID changes nothing.
func (t *Turn) SetGoal(g goal.Goal) {
	if g.ID == "" {
		return
	}
	t.From.Goal, t.From.Pin = g.Label.Integrity, g.Label.Integrity
	var locked []string
	for _, d := range g.Decisions {
		if d.Locked {
			locked = append(locked, d.Line())
		}
	}
	t.Markers = g.Status == goal.Active && !slices.Contains(t.Tools, "goal")
	if t.Tier == 1 {
		line := fmt.Sprintf("CURRENT GOAL: %s (%s, %s)", g.Description, g.Priority, g.Status)
		t.Goal, t.Pin = []string{OneLine(strings.Join(append([]string{line}, locked...), " · "), oneGoal)}, g.Current()
		return
	}
	t.Goal = append([]string{"CURRENT GOAL: " + g.Description,
		"Priority: " + title(g.Priority), "Status: " + title(string(g.Status))}, locked...)
	if g.Summary != "" {
		t.Goal = append(t.Goal, "Outcome: "+OneLine(g.Summary.String(), maxOutcome))
	}
	if g.Status == goal.Active { // otherwise nothing changes any more
		t.Steps, t.Pin = goalSteps(g), g.Current()
	}
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// goalSteps returns the checkpoints, the changeable decisions, and the latest files. It drops the
// least important and counts them.
func goalSteps(g goal.Goal) []string {
	c := Content{ranked: true}
	add := func(line string, rank int) { c.Lines = append(c.Lines, Line{Text: line, rank: rank}) }
	for i, s := range g.Checkpoints {
		switch s.Status {
		case goal.InProgress:
			add(s.Line(), 1000-i)
		case goal.Pending:
			add(s.Line(), 2000+i)
		default:
			add(s.Line(), 4000-i)
		}
	}
	for i, d := range g.Decisions {
		if !d.Locked {
			add("- Decided: "+d.Line(), 3000-i)
		}
	}
	older := max(0, len(g.Artifacts)-artifacts)
	for i, a := range g.Artifacts[older:] {
		add("- "+a.Line(), 5000-i)
	}
	var lines []string
	for _, l := range keepLines(&c, stepChars) {
		lines = append(lines, l.Text)
	}
	if out := len(c.Lines) - len(lines) + older; out > 0 {
		lines = append(lines, fmt.Sprintf("- … and %d more, done or of less weight", out))
	}
	return lines
}

func gatherGoal(_ context.Context, q *Question) (*Content, error) {
	c := Content{Source: "goal", Lines: linesOf(q.turn.From.Goal, oneLines(q.turn.Goal)...)}
	if q.turn.Markers {
		c.Lead = markersHint
	}
	return q.contentOrNil(c)
}

func gatherSteps(_ context.Context, q *Question) (*Content, error) {
	lead := ""
	if rounds := q.turn.rounds(); rounds >= 8 { // told again, as a checklist
		lead = fmt.Sprintf("After %d rounds of tools:", rounds/8*8)
	}
	return q.contentOrNil(Content{Source: "steps", Lead: lead, Lines: linesOf(q.turn.From.Goal, oneLines(q.turn.Steps)...),
		None: "No steps are open any more."})
}

func gatherPin(_ context.Context, q *Question) (*Content, error) {
	return q.contentOrNil(Content{Source: "current task", Lines: linesOf(q.turn.From.Pin, oneLines([]string{q.turn.Pin})...),
		None: "No task in particular is being worked on any more."})
}

func oneLines(in []string) []string {
	var out []string
	for _, s := range in {
		if s = OneLine(strings.TrimSpace(s), 500); s != "" {
			out = append(out, s)
		}
	}
	return out
}
