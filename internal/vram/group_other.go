//go:build !unix

package vram

import "os/exec"

func group(*exec.Cmd) {}

func terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func sweep(*exec.Cmd) {}
