package tool

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"reverie/internal/goal"
	"reverie/internal/trust"
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

// goal does one thing with the goals that may be read where the answer is; others do not
// exist for it. What is missing for an action the goals themselves say.
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
		step := goal.CheckpointStatus(strings.ReplaceAll(a.Status, "_", " "))
		g, err = goals.SetCheckpoint(ctx, by, a.GoalID, a.which(), cmp.Or(step, goal.Pending))
	case "decision":
		g, err = decide(ctx, goals, by, a)
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
	if a.Action != "create" { // the result shows what was there before
		scope.Shows(g.Label.Integrity)
	}
	return strings.Join(goalLines(g), "\n"), nil
}

// which names a step or decision, by its number or its words.
func (a goalArgs) which() string {
	if a.Number != 0 {
		return strconv.Itoa(a.Number)
	}
	return a.Text
}

func decide(ctx context.Context, goals *goal.Store, by trust.Caller, a goalArgs) (goal.Goal, error) {
	d := goal.Decision{Description: a.Text, Rationale: a.Reason, Locked: a.Locked != nil && *a.Locked}
	if a.Locked != nil && !d.Locked {
		if g, err := goals.Unlock(ctx, by, a.GoalID, a.which()); err != nil {
			return g, err
		}
	}
	if a.Number != 0 {
		return goals.ChangeDecision(ctx, by, a.GoalID, a.Number, d)
	}
	return goals.Decide(ctx, by, a.GoalID, d)
}

// goalLines is the goal as it stands, so that the model sees what its call did.
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

// mostListed is how many goals a list shows.
const mostListed = 20

func (s *Set) listGoals(ctx context.Context, scope Scope) (string, error) {
	goals, err := s.cfg.Goals.List(ctx, scope.Place(), mostListed)
	if err != nil {
		return "", err
	}
	if len(goals) == 0 {
		return "There are no goals in this room. create makes one.", nil
	}
	var lines []string
	for _, g := range goals {
		scope.Shows(g.Label.Integrity)
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
