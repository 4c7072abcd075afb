//go:build unix && !linux

package homeserver

import "syscall"

// ownGroup keeps a Ctrl-C in the terminal from reaching the server before its
// owner has shut down in order.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
