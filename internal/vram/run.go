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
	grace      = 500 * time.Millisecond // how long a pipe may stay open after the tool ended
)

// errNoAnswer means that a tool did not answer in time. It says nothing about the GPU.
var errNoAnswer = errors.New("no answer in time")

// output is what a tool wrote, truncated at the limits.
type output struct {
	text, errors []byte
	code         int // the exit status; -1 = killed
}

// limitedBuffer keeps the first bytes and discards the rest, so that the writer never blocks.
type limitedBuffer struct {
	kept []byte
	room int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	take := min(len(p), b.room)
	b.kept, b.room = append(b.kept, p[:take]...), b.room-take
	return len(p), nil
}

// runTool runs the tool at path with env only, and kills it when ctx ends. It returns once the
// kernel releases the process, which may be late for one in uninterruptible sleep. An exit status
// is no error.
func runTool(ctx context.Context, path string, args, env []string) (output, error) {
	text, errs := &limitedBuffer{room: keptOutput}, &limitedBuffer{room: keptErrors}
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
		return out, fmt.Errorf("%w (%w)", errNoAnswer, context.Cause(ctx))
	case errors.Is(err, exec.ErrWaitDelay), errors.As(err, &status):
		return out, nil // a child held the pipe open; the output is complete
	}
	return out, err
}
