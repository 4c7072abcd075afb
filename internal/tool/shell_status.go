package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/sandbox"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// ShellStatus is the name of the tool that looks at commands in the background and ends them.
const ShellStatus = "shell_status"

const (
	maxRunning = 3    // commands in the background of one work folder
	maxKnown   = 6    // those, and ended ones whose output can be read
	maxTail    = 8000 // characters of output in a result
)

// background holds the commands in the background. They end with RunBackground and are stored nowhere.
type background struct {
	begin chan func(ctx context.Context) // what RunBackground is to run

	mu   sync.Mutex
	jobs []*job // the oldest first
}

type job struct {
	id      string
	of      trust.Readers // of the work folder; others know nothing of it
	command string
	began   time.Time
	kill    context.CancelFunc
	said    sandbox.Output
	end     string // how it has ended; "" = it runs
}

// RunBackground runs the commands that calls of the tool shell start in the background, until ctx ends.
func RunBackground(ctx context.Context, s *Set) error {
	var g errgroup.Group
	for {
		select {
		case run := <-s.background.begin:
			g.Go(func() error { run(ctx); return nil })
		case <-ctx.Done():
			return g.Wait()
		}
	}
}

// startInBackground starts the command of spec. It goes on when the call and the turn have ended.
func startInBackground(s *Set, ctx context.Context, scope Scope, spec sandbox.Spec) (string, error) {
	b := &s.background
	b.mu.Lock()
	defer b.mu.Unlock()
	mine := b.of(scope.Place())
	if ended := slices.IndexFunc(mine, (*job).hasEnded); len(mine) >= maxKnown && ended >= 0 {
		b.jobs = slices.DeleteFunc(b.jobs, func(o *job) bool { return o == mine[ended] })
	}
	if len(slices.DeleteFunc(slices.Clone(mine), (*job).hasEnded)) >= maxRunning {
		return "", refusal(fmt.Sprintf("Not started: %d commands run in the background already. Wait for one, or end one with %s: %s",
			maxRunning, ShellStatus, describeJobs(mine)))
	}
	own, kill := context.WithCancel(context.WithoutCancel(ctx))
	j := &job{id: store.NewID("cmd"), of: scope.Place().Readers(), command: spec.Command, began: time.Now(), kill: kill}
	spec.Time, spec.Output = s.cfg.Commands.Background, &j.said
	run := func(bot context.Context) {
		defer context.AfterFunc(bot, kill)()
		defer kill()
		r, err := sandbox.Run(own, spec)
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case own.Err() != nil:
			j.end = "ended before it was done"
		case err != nil:
			j.end = notConfined(s, own, scope, Shell, err).Error()
		default:
			j.end = howEnded(r, spec.Time)
		}
	}
	select {
	case b.begin <- run:
	case <-ctx.Done():
		kill()
		return "", ctx.Err()
	}
	b.jobs = append(b.jobs, j)
	return fmt.Sprintf("Started in the background as %s, for at most %v; see %s.", j.id, spec.Time, ShellStatus), nil
}

// of returns the commands of the work folder of a place. b.mu is held.
func (b *background) of(p trust.Place) []*job {
	return slices.DeleteFunc(slices.Clone(b.jobs), func(j *job) bool { return j.of != p.Readers() })
}

func (j *job) hasEnded() bool { return j.end != "" }

func (j *job) state() string {
	return cmp.Or(j.end, "running for "+time.Since(j.began).Round(time.Second).String())
}

func describeJobs(all []*job) string {
	text := ""
	for _, j := range all {
		text += fmt.Sprintf("\n- %s (%s): %s", j.id, j.state(), clip(j.command))
	}
	return cmp.Or(text, "none")
}

type shellStatusArgs struct {
	ID  string `json:"id" rule:"required" doc:"Such as cmd_ab12cd34."`
	End *bool  `json:"end" doc:"true ends it."`
}

// shellStatus shows the last output of a command in the background, which is foreign as that of shell is.
func shellStatus(s *Set, _ context.Context, scope Scope, a shellStatusArgs) (string, error) {
	scope.MarkShown(trust.Foreign)
	s.background.mu.Lock()
	defer s.background.mu.Unlock()
	mine := s.background.of(scope.Place())
	i := slices.IndexFunc(mine, func(j *job) bool { return j.id == store.NormalizeID(a.ID) })
	if i < 0 {
		return "", refusal("There is no such command here. Commands in the background: " + describeJobs(mine))
	}
	j, state := mine[i], mine[i].state()
	if a.End != nil && *a.End && !j.hasEnded() {
		j.kill()
		state = "it is being ended now"
	}
	said := []rune(strings.ToValidUTF8(j.said.String(), "\uFFFD"))
	if over := len(said) - maxTail; over > 0 {
		said = append([]rune(fmt.Sprintf("[%d characters left out]\n", over)), said[over:]...)
	}
	return string(said) + "\n[" + state + "]", nil
}
