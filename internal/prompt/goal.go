package prompt

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/task"
)

// Characters. The steps take less than any layout's cap, so that they are collapsed
// here, by what matters, and never cut off there; what holds fits by the bounds of a
// goal.
const (
	stepChars  = 1_900
	noteChars  = 60 // of a line that says how many are left out
	oneGoal    = 450
	artifacts  = 8
	maxOutcome = 200
)

// markersHint teaches a model that has no tool for it to report on its goal.
const markersHint = `When a step begins or ends, write a line of its own: [CHECKPOINT] the step - IN-PROGRESS, or - DONE. ` +
	`Likewise [DECISION] what was decided - LOCKED, [ARTIFACT] Created path, [NEXT] the next step. The person does not see such lines.`

// SetGoal puts a goal into the turn, as it stands: in Goal what holds for as long as
// it does, in Steps its checkpoints and what else moves, in Pin what is worked on
// now. Tier 1 gets one line, and how to report on it. t.Tier and t.Tools must be set; a goal without ID
// leaves the turn as it is.
func (t *Turn) SetGoal(g task.Goal) {
	if g.ID == "" {
		return
	}
	locked := goalLocked(g)
	t.Markers = g.Status == task.Active && !slices.Contains(t.Tools, "goal")
	if t.Tier == 1 {
		line := fmt.Sprintf("CURRENT GOAL: %s (%s, %s)", g.Description, g.Priority, g.Status)
		t.Goal, t.Pin = []string{oneLine(strings.Join(append([]string{line}, locked...), " · "), oneGoal)}, g.Current()
		return
	}
	t.Goal = append([]string{"CURRENT GOAL: " + g.Description, "Priority: " + title(g.Priority), "Status: " + title(string(g.Status))}, locked...)
	if g.Summary != "" {
		t.Goal = append(t.Goal, "Outcome: "+oneLine(g.Summary.String(), maxOutcome))
	}
	if g.Status != task.Active { // nothing moves any more
		return
	}
	t.Steps, t.Pin = goalSteps(g), g.Current()
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func goalLocked(g task.Goal) (lines []string) {
	for _, d := range g.Decisions {
		if d.Locked {
			lines = append(lines, d.Line())
		}
	}
	return lines
}

// part is a line of a goal, what stands for it when there is no room, and how much
// it matters: the lowest rank the most.
type part struct {
	line, kind string
	rank       int
}

// goalSteps is the checkpoints, the decisions that may change, and the latest files.
// What is left out, beginning with what matters least, is counted.
func goalSteps(g task.Goal) []string {
	var parts []part
	for i, c := range g.Checkpoints {
		p := part{line: c.Line(), kind: c.Status.Sign() + " … and %d done", rank: 4000 - i}
		switch c.Status {
		case task.InProgress:
			p.kind, p.rank = c.Status.Sign()+" … and %d more in progress", 1000-i
		case task.Pending:
			p.kind, p.rank = c.Status.Sign()+" … and %d more to do", 2000+i
		}
		parts = append(parts, p)
	}
	for i, d := range g.Decisions {
		if !d.Locked {
			parts = append(parts, part{"- Decided: " + d.Line(), "- … and %d more decisions", 3000 - i})
		}
	}
	for i, a := range g.Artifacts {
		p := part{"- " + a.Line(), "- … and %d more files", 5000 - i}
		if i < len(g.Artifacts)-artifacts {
			p.rank = 6000 // counted only
		}
		parts = append(parts, p)
	}
	return collapse(parts, stepChars)
}

// collapse returns the lines of the parts, in their order, in at most most
// characters; the lines that count what is left out stand where the first of their
// kind would.
func collapse(parts []part, most int) []string {
	kinds := map[string]int{}
	for _, p := range parts {
		kinds[p.kind]++
	}
	room := most - noteChars*len(kinds)
	byRank := make([]int, len(parts))
	for i := range parts {
		byRank[i] = i
	}
	slices.SortStableFunc(byRank, func(a, b int) int { return parts[a].rank - parts[b].rank })
	keep := make([]bool, len(parts))
	for _, i := range byRank {
		n := utf8.RuneCountInString(parts[i].line) + 1
		if n > room || parts[i].rank >= 6000 {
			continue
		}
		room -= n
		keep[i] = true
		kinds[parts[i].kind]--
	}
	var lines []string
	for i, p := range parts {
		switch left := kinds[p.kind]; {
		case keep[i]:
			lines = append(lines, p.line)
		case left > 0:
			lines = append(lines, fmt.Sprintf(p.kind, left))
			kinds[p.kind] = 0 // said
		}
	}
	return lines
}
