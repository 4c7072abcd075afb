package tool

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"reverie/internal/goal"
)

type goalArgs struct {
	Action string `json:"action" must:"create,update,checkpoint,decision,artifact,pause,resume,complete,abandon,list" doc:"What to do."`

	Text     string `json:"text" doc:"The goal, step or decision."`
	GoalID   string `json:"goal_id" doc:"If not the active one."`
	Number   int    `json:"number" rule:"min=1,max=99" doc:"Of a step or decision there is."`
	Priority string `json:"priority" enum:"high,medium,low" doc:"Of the goal."`
	Status   string `json:"status" enum:"pending,in_progress,done" doc:"Of the step."`
	Locked   *bool  `json:"locked" doc:"Final."`
	Reason   string `json:"reason" doc:"Why, or how it ended."`
	Path     string `json:"path" doc:"Of the file."`
	Change   string `json:"change" enum:"created,modified,deleted" doc:"To the file."`
	Next     string `json:"next" doc:"The next step."`
}

// goal changes or lists the goals that may be read in this place; it hides all others. Package goal
// reports missing arguments.
func (s *Set) goal(ctx context.Context, scope Scope, a goalArgs) (string, error) {
	goals, by := s.cfg.Goals, scope.caller()
	var g goal.Goal
	var err error
	switch a.Action {
	case "list":
		return s.listGoals(ctx, scope)
	case "create":
		g, err = goals.Create(ctx, by, a.Text, a.Priority)
	case "update":
		g, err = goals.Update(ctx, by, a.GoalID, goal.Patch{Description: a.Text, Priority: a.Priority, Next: a.Next})
	case "checkpoint":
		which, status := a.Text, goal.CheckpointStatus(strings.ReplaceAll(a.Status, "_", " "))
		if a.Number != 0 {
			which = strconv.Itoa(a.Number)
		}
		g, err = goals.SetCheckpoint(ctx, by, a.GoalID, which, status)
	case "decision":
		g, err = goals.Decide(ctx, by, a.GoalID, goal.Decision{N: a.Number, Description: a.Text, Rationale: a.Reason,
			Locked: a.Locked != nil && *a.Locked})
	case "artifact":
		g, err = goals.RecordArtifact(ctx, by, a.GoalID, goal.Artifact{Action: a.Change, Path: a.Path})
	case "pause":
		g, err = goals.Pause(ctx, by, a.GoalID)
	case "resume":
		g, err = goals.Resume(ctx, by, a.GoalID)
	case "complete":
		g, err = goals.Complete(ctx, by, a.GoalID, a.Reason)
	case "abandon":
		g, err = goals.Abandon(ctx, by, a.GoalID, a.Reason)
	}
	if err != nil {
		return "", err
	}
	if a.Action != "create" { // the result shows the previous state
		scope.MarkShown(g.Label.Integrity)
	}
	return strings.Join(goalLines(g), "\n"), nil
}

// goalLines shows the goal after the call, so that the model sees its effect.
func goalLines(g goal.Goal) []string {
	lines := []string{g.Line()}
	for _, c := range g.Checkpoints {
		lines = append(lines, c.Line())
	}
	for _, d := range g.Decisions {
		lines = append(lines, fmt.Sprintf("Decision %d: %s", d.N, d.Line()))
	}
	if p := g.Progress(); g.Status == goal.Active && p.Total > 0 && p.Completed == p.Total {
		lines = append(lines, "All steps are done: complete the goal with a reason, or add the steps that are missing.")
	}
	return lines
}

// maxListed is the number of goals in a list.
const maxListed = 20

func (s *Set) listGoals(ctx context.Context, scope Scope) (string, error) {
	goals, err := s.cfg.Goals.List(ctx, scope.Place(), maxListed)
	if err != nil {
		return "", err
	}
	if len(goals) == 0 {
		return "There are no goals in this room. create makes one.", nil
	}
	var lines []string
	for _, g := range goals {
		scope.MarkShown(g.Label.Integrity)
		if g.Status == goal.Active {
			lines = append(lines, goalLines(g)...)
			continue
		}
		line := g.Line()
		if g.Summary != "" {
			line += " → " + g.Summary.String()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}
