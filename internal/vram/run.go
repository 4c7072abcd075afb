package vram

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// Limits of one call of a tool.
const (
	keptOutput = 64 << 10
	keptErrors = 4 << 10
	grace      = 500 * time.Millisecond // a pipe may stay open so long after the tool ended
)

// errSilent: the tool did not answer in time. It tells nothing about the GPU.
var errSilent = errors.New("no answer in time")

// output is what a tool wrote, cut at the limits.
type output struct {
	text, errors []byte
	code         int // the exit status; -1 = killed
}

// bounded keeps the first bytes and reads the rest away, so that the writer
// never waits.
type bounded struct {
	kept []byte
	room int
}

func (b *bounded) Write(p []byte) (int, error) {
	take := min(len(p), b.room)
	b.kept, b.room = append(b.kept, p[:take]...), b.room-take
	return len(p), nil
}

// runTool calls the tool at path with env and nothing else, and kills it when ctx ends. It
// returns when the kernel gives the child back, which one in uninterruptible sleep delays.
// An exit status is no error.
func runTool(ctx context.Context, path string, args, env []string) (output, error) {
	text, errs := &bounded{room: keptOutput}, &bounded{room: keptErrors}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = text, errs
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return output{}, err
	}
	err := cmd.Wait()
	out := output{text: text.kept, errors: errs.kept, code: cmd.ProcessState.ExitCode()}
	var status *exec.ExitError
	switch {
	case err != nil && ctx.Err() != nil:
		return out, fmt.Errorf("%w (%w)", errSilent, context.Cause(ctx))
	case errors.Is(err, exec.ErrWaitDelay), errors.As(err, &status):
		return out, nil // a child of its own held the pipe: what it wrote is whole
	}
	return out, err
}
