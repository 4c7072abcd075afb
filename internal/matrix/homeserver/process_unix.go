//go:build unix && !linux

package homeserver

import "syscall"

// OwnGroup puts the server into its own process group, so that a Ctrl-C in the terminal reaches only
// its owner, who shuts it down.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
