package tool

import (
	"context"
	"slices"
	"testing"
	"time"
)

// spawned keeps the last job.
type spawned struct{ job Job }

func (s *spawned) Spawn(_ context.Context, _ Scope, job Job) (id, waits string, err error) {
	s.job = job
	return "sub_ab12cd34", map[bool]string{true: "when sub_x is done"}[len(job.Needs) > 0], nil
}
func (s *spawned) Status(_ context.Context, _ Scope, id string) (string, error) {
	return "status of " + id, nil
}
func (s *spawned) Cancel(_ context.Context, _ Scope, id string) (string, error) {
	return "cancelled " + id, nil
}

func TestSpawnSubSession(t *testing.T) {
	w, s, scope := newWorkshop(t), &spawned{}, direct()
	scope.Spawner = s
	wants(t, w.ok(t, scope, SpawnSubSession, `{"objective":"look"}`), "sub_ab12cd34 has begun")
	if j := s.job; j.Objective != "look" || j.Mode != "minimal" || !slices.Equal(j.Tools, profiles["researcher"]) {
		t.Errorf("job %+v", j)
	}
	wants(t, w.ok(t, scope, SpawnSubSession, `{"objective":"look","mode":"full","timeout":60,"depends_on":"sub_x","depends_on_previous":true}`), "begins when sub_x is done")
	if j := s.job; j.Timeout != time.Minute || !slices.Equal(j.Tools, []string{"*"}) || !slices.Equal(j.Needs, []string{"sub_x"}) || !j.OnPrevious {
		t.Errorf("job %+v", j)
	}
	w.ok(t, scope, SpawnSubSession, `{"objective":"look","tools":["read_file"]}`)
	if j := s.job; !slices.Equal(j.Tools, []string{"read_file"}) {
		t.Errorf("job %+v", j)
	}
	wants(t, w.ok(t, scope, SpawnSubSession, `{"action":"status"}`), "status of ")
	wants(t, w.ok(t, scope, SpawnSubSession, `{"action":"cancel","id":"sub_x"}`), "cancelled sub_x")

	scope.Policy = Policy{Deny: []string{"task"}}
	for raw, want := range map[string][]string{
		`{}`:                                 {"- objective: is missing"},
		`{"objective":"x","tools":["task"]}`: {`- tools: "task" is none of yours`},
		`{"action":"cancel"}`:                {"- id: is missing"},
		`{"objective":"x","timeout":5}`:      {"- timeout: is out of range"},
	} {
		s.job = Job{}
		wants(t, w.bad(t, scope, SpawnSubSession, raw), want...)
		if s.job.Objective != "" {
			t.Errorf("%s was spawned", raw)
		}
	}
	wants(t, w.bad(t, direct(), SpawnSubSession, `{"objective":"x"}`), "There are no sub-sessions here")
}
