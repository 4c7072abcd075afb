//go:build !linux

package main

import "syscall"

// childAttributes puts a child in a process group of its own, so that Ctrl-C
// reaches only this process, which then ends the child in order.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
