//go:build !linux

package sandbox

import (
	"context"
	"os/exec"
)

// Reader returns a command for a program that reads standard input. It is not confined on this system.
func Reader(ctx context.Context, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, program, args...)
}
