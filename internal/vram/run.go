package vram

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// Limits of one call of a tool.
const (
	keptOutput = 64 << 10
	keptErrors = 4 << 10
	// grace is how long a tool has to end after SIGTERM before SIGKILL, and how
	// long a pipe may stay open after it ended.
	grace = 500 * time.Millisecond
)

// errSilent: the tool did not answer in time. It tells nothing about the GPU.
var errSilent = errors.New("no answer in time")

// errBusy: an earlier call has not come back, so no second one is made.
var errBusy = fmt.Errorf("an earlier call has not come back: %w", errSilent)

// output is what a tool wrote, cut at the limits.
type output struct {
	text, errors []byte
	cut          int // bytes of text that were thrown away
	code         int // the exit status; -1 = killed
}

// bounded keeps the first bytes and reads the rest away, so that the writer
// never waits.
type bounded struct {
	kept []byte
	room int
	cut  int
}

func (b *bounded) Write(p []byte) (int, error) {
	take := min(len(p), b.room)
	b.kept, b.room, b.cut = append(b.kept, p[:take]...), b.room-take, b.cut+len(p)-take
	return len(p), nil
}

// runner calls tools, one at a time. They get env and nothing else.
type runner struct {
	wait func(*exec.Cmd) error // (*exec.Cmd).Wait, but in a test
	mu   sync.Mutex
	busy bool
}

type outcome struct {
	out output
	err error
}

// run calls the tool at path and waits until it ends or ctx does, and a little
// longer for it to be killed. A tool in uninterruptible sleep cannot be killed:
// it is left alone, and until the kernel gives it back every further call is
// errBusy. An exit status is no error.
func (r *runner) run(ctx context.Context, path string, args, env []string) (output, error) {
	if !r.take() {
		return output{}, errBusy
	}
	ended := make(chan outcome, 1)
	// go: one per runner at most (busy); ends when the kernel gives the child back, nobody waits longer than grace for it
	go func() {
		out, err := r.call(ctx, path, args, env)
		r.release()
		ended <- outcome{out, err}
	}()
	select {
	case o := <-ended:
		return o.out, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-ended:
		return o.out, o.err
	case <-time.After(4 * grace):
		return output{}, fmt.Errorf("it does not end, not even when killed: %w", errSilent)
	}
}

func (r *runner) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy {
		return false
	}
	r.busy = true
	return true
}

func (r *runner) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = false
}

func (r *runner) call(ctx context.Context, path string, args, env []string) (output, error) {
	text, errs := &bounded{room: keptOutput}, &bounded{room: keptErrors}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = text, errs
	cmd.WaitDelay = grace
	group(cmd)
	cmd.Cancel = func() error { return terminate(cmd) }
	if err := cmd.Start(); err != nil {
		return output{}, err
	}
	wait := r.wait
	if wait == nil {
		wait = (*exec.Cmd).Wait
	}
	err := wait(cmd)
	out := output{text: text.kept, errors: errs.kept, cut: text.cut, code: cmd.ProcessState.ExitCode()}
	var status *exec.ExitError
	late := errors.Is(err, exec.ErrWaitDelay)
	if ctx.Err() != nil || late {
		sweep(cmd)
	}
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return out, fmt.Errorf("%w (%w)", errSilent, context.Cause(ctx))
	case late, errors.As(err, &status):
		return out, nil // late: a child of its own held the pipe, what it wrote is whole
	}
	return out, err
}
