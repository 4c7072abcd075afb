package homeserver

import "syscall"

// OwnGroup puts the server into its own process group, so that a Ctrl-C in the terminal reaches only
// its owner, who shuts it down. The server ends when its owner is killed.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
