package main

import "syscall"

// childAttributes puts a child in a process group of its own, so that Ctrl-C
// reaches only this process, which then ends the child in order; and has the
// kernel end the child should this process be killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
