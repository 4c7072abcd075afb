package homeserver

import "syscall"

// OwnGroup keeps a Ctrl-C in the terminal from reaching the server before its
// owner has shut down in order, and ends the server when its owner is killed.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
