package tool

import (
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

	mu  sync.Mutex
	all []*job // oldest first
}

// job is a command in the background.
type job struct {
	id      string
	of      trust.Readers // of the work folder; others know nothing of it
	command string
	began   time.Time
	kill    context.CancelFunc
	ended   chan struct{} // closed at its end
	how     string        // it ended; valid then
	said    sandbox.Output
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
	own, kill := context.WithCancel(context.WithoutCancel(ctx))
	j := &job{id: store.NewID("cmd"), of: scope.Place().Readers(), command: spec.Command, began: time.Now(), kill: kill,
		ended: make(chan struct{})}
	spec.Time, spec.Output = s.cfg.Commands.Background, &j.said
	run := func(bot context.Context) {
		defer context.AfterFunc(bot, kill)()
		defer kill()
		r, err := sandbox.Run(own, spec)
		switch {
		case own.Err() != nil:
			j.how = "ended before it was done"
		case err != nil:
			j.how = notConfined(s, own, scope, Shell, err).Error()
		default:
			j.how = howEnded(r, spec.Time)
		}
		close(j.ended)
	}
	if !s.background.add(j) {
		kill()
		return "", refusal(fmt.Sprintf("Not started: %d commands run in the background already. Wait for one, or end one with %s: %s",
			maxRunning, ShellStatus, describeJobs(s.background.of(j.of))))
	}
	select {
	case s.background.begin <- run:
		return fmt.Sprintf("Started in the background as %s, for at most %v. %s shows its output and ends it.",
			j.id, spec.Time, ShellStatus), nil
	case <-ctx.Done():
		kill()
		run(ctx) // which only says that it has ended
		return "", ctx.Err()
	}
}

// add makes j known. It returns false if too many commands of its work folder run.
func (b *background) add(j *job) bool {
	mine := b.of(j.of)
	b.mu.Lock()
	defer b.mu.Unlock()
	ended := slices.DeleteFunc(slices.Clone(mine), (*job).runs)
	if len(mine)-len(ended) >= maxRunning {
		return false
	}
	if len(mine) >= maxKnown {
		b.all = slices.DeleteFunc(b.all, func(o *job) bool { return o == ended[0] })
	}
	b.all = append(b.all, j)
	return true
}

// of returns the commands of a work folder, the oldest first.
func (b *background) of(of trust.Readers) []*job {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.all), func(j *job) bool { return j.of != of })
}

func describeJobs(all []*job) string {
	if len(all) == 0 {
		return "none"
	}
	text := ""
	for _, j := range all {
		text += fmt.Sprintf("\n- %s (%s): %s", j.id, j.state(), clip(j.command))
	}
	return text
}

func (j *job) runs() bool {
	select {
	case <-j.ended:
		return false
	default:
		return true
	}
}

func (j *job) state() string {
	if j.runs() {
		return "running for " + time.Since(j.began).Round(time.Second).String()
	}
	return j.how
}

type shellStatusArgs struct {
	ID  string `json:"id" rule:"required" doc:"Such as cmd_ab12cd34."`
	End *bool  `json:"end" doc:"true ends it."`
}

// shellStatus shows the last output of a command in the background, which is foreign as that of shell is.
func shellStatus(s *Set, ctx context.Context, scope Scope, a shellStatusArgs) (string, error) {
	scope.MarkShown(trust.Foreign)
	mine := s.background.of(scope.Place().Readers())
	i := slices.IndexFunc(mine, func(j *job) bool { return j.id == store.NormalizeID(a.ID) })
	if i < 0 {
		return "", refusal("There is no such command here. Commands in the background: " + describeJobs(mine))
	}
	j := mine[i]
	if a.End != nil && *a.End {
		j.kill()
		select {
		case <-j.ended:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	state := j.state() // first: then the output of one that has ended is complete
	said := []rune(strings.ToValidUTF8(j.said.String(), "\uFFFD"))
	if over := len(said) - maxTail; over > 0 {
		said = append([]rune(fmt.Sprintf("[%d characters left out]\n", over)), said[over:]...)
	}
	return string(said) + "\n[" + state + "]", nil
}
