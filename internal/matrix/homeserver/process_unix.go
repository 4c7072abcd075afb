//go:build unix && !linux

package homeserver

import "syscall"

// OwnGroup keeps a Ctrl-C in the terminal from reaching the server before its
// owner has shut down in order.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
