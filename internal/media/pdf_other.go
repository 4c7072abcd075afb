//go:build !linux

package media

import "os/exec"

// start starts a program. On this system only its time and output are limited.
func start(cmd *exec.Cmd) error { return cmd.Start() }
