package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// SpawnSubSession is the name of the tool that gives work to a sub-session.
const SpawnSubSession = "spawn_sub_session"

// Spawner runs sub-sessions. Its texts and errors are for the model. The scope limits which
// sub-sessions it may name.
type Spawner interface {
	// Spawn starts a job and returns its id, and the reason if it does not start at once.
	Spawn(ctx context.Context, scope Scope, job Job) (id, waits string, err error)
	// Status describes the sub-session id; "" = all of the room.
	Status(ctx context.Context, scope Scope, id string) (string, error)
	// Cancel ends the sub-session id and its descendants.
	Cancel(ctx context.Context, scope Scope, id string) (string, error)
}

// Job is the task of a sub-session.
type Job struct {
	Objective  string
	Context    string
	Mode       string   // of its prompt: minimal, full, base_only or none
	Tools      []string // patterns as in Policy, at least one
	Timeout    time.Duration
	Needs      []string // ids of the jobs whose results it waits for
	OnPrevious bool     // it waits for all jobs spawned earlier in this turn
}

type spawnArgs struct {
	Action     string   `json:"action" enum:"spawn,status,cancel" doc:"spawn if left out; the others take id."`
	Objective  string   `json:"objective" doc:"What to do, and what the result should be."`
	Context    string   `json:"context" doc:"What it must know for that."`
	Mode       string   `json:"mode" enum:"minimal,full,base_only,none" doc:"Its instructions: minimal if left out; full as yours."`
	Tools      []string `json:"tools" doc:"Names of tools it may use, or researcher (reads only) or orchestrator (all; may spawn)."`
	Timeout    int      `json:"timeout" rule:"min=60,max=3600" doc:"Seconds."`
	DependsOn  []string `json:"depends_on" doc:"Ids it waits for; it gets their results."`
	OnPrevious *bool    `json:"depends_on_previous" doc:"It waits for all spawned before it in this turn."`
	ID         string   `json:"id" doc:"Such as sub_ab12cd34."`
}

// profiles are sets of tools by purpose. They may name future tools.
var profiles = map[string][]string{
	"researcher":   {"search_*", "recall*", "read_*", "list_*", "find_*", "grep_*", "web_*", "fetch_*"},
	"orchestrator": {"*"},
}

func (s *Set) spawnSubSession(ctx context.Context, scope Scope, a spawnArgs) (string, error) {
	a.Action = cmp.Or(a.Action, "spawn")
	job, found := s.parseJob(scope, a)
	if len(found) > 0 {
		return "", found
	}
	if scope.Spawner == nil {
		return "", refusal("There are no sub-sessions here: do it yourself.")
	}
	switch a.Action {
	case "status":
		return scope.Spawner.Status(ctx, scope, a.ID)
	case "cancel":
		return scope.Spawner.Cancel(ctx, scope, a.ID)
	}
	id, waits, err := scope.Spawner.Spawn(ctx, scope, job)
	if err != nil {
		return "", err
	}
	if waits != "" {
		return fmt.Sprintf("%s is kept; it begins %s. Its result will come as a system event.", id, waits), nil
	}
	return id + " has begun. Its result will come as a system event: do not wait for it, and do not guess it.", nil
}

// parseJob checks the arguments of an action, and returns the job of a spawn.
func (s *Set) parseJob(scope Scope, a spawnArgs) (Job, faults) {
	var found faults
	if a.Action == "cancel" && a.ID == "" {
		found.add("id: is missing; send the id that spawn returned")
	}
	if a.Action != "spawn" {
		return Job{}, found
	}
	job := Job{Objective: strings.TrimSpace(a.Objective), Context: strings.TrimSpace(a.Context), Mode: cmp.Or(a.Mode, "minimal"),
		Timeout: time.Duration(a.Timeout) * time.Second, Needs: a.DependsOn, OnPrevious: a.OnPrevious != nil && *a.OnPrevious}
	if job.Objective == "" {
		found.add("objective: is missing; send what is to be done")
	}
	job.Tools = s.jobTools(scope, a, job.Mode, &found)
	return job, found
}

// jobTools returns the tool patterns of a job. By default, a job with full instructions gets all
// tools, and others only read.
func (s *Set) jobTools(scope Scope, a spawnArgs, mode string, found *faults) (patterns []string) {
	there := slices.DeleteFunc(s.Names(), func(name string) bool { return !scope.Policy.Allows(name) })
	for _, name := range a.Tools {
		switch {
		case profiles[name] != nil:
			patterns = append(patterns, profiles[name]...)
		case slices.Contains(there, name):
			patterns = append(patterns, name)
		default:
			found.add("tools: %s is none of yours; there are: %s", clip(name), strings.Join(there, ", "))
		}
	}
	switch {
	case len(a.Tools) > 0:
		return patterns
	case mode == "full":
		return profiles["orchestrator"]
	}
	return profiles["researcher"]
}
