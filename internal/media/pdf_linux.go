package media

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pdfLimits are the program's resource limits. A file size of 0 allows writing to pipes only.
var pdfLimits = map[int]uint64{
	unix.RLIMIT_AS: pdfMemory, unix.RLIMIT_CPU: uint64(pdfCPUTime / time.Second),
	unix.RLIMIT_FSIZE: 0, unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 32,
}

// startConfined starts a program with pdfLimits that cannot open the bot's files. The limits are set before
// it gets any input: its standard input is a pipe.
func startConfined(cmd *exec.Cmd) error {
	started := make(chan error)
	// go: start waits for it.
	go func() {
		runtime.LockOSThread() // never unlocked: Go ends the restricted thread with this goroutine
		err := restrictThread(filepath.Dir(cmd.Path))
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	if err := <-started; err != nil {
		return err
	}
	for limit, most := range pdfLimits {
		if err := unix.Prlimit(cmd.Process.Pid, limit, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
			return errors.Join(fmt.Errorf("set limit %d: %w", limit, err), cmd.Process.Kill(), cmd.Wait())
		}
	}
	return nil
}

// systemFolders hold programs and their libraries.
var systemFolders = []string{
	"/bin", "/lib", "/lib64", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share", "/etc/ld.so.cache",
	"/nix/store", "/gnu/store",
}

// landlockFiles are the file rights of Landlock's first version.
const landlockFiles = unix.LANDLOCK_ACCESS_FS_REFER - 1

// restrictThread limits the thread and its children to reading systemFolders and program. They get
// no TCP connections and no signals to others. It uses as much of Landlock as the kernel has,
// possibly nothing.
func restrictThread(program string) error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return nil
	}
	handled := unix.LandlockRulesetAttr{Handled_access_fs: landlockFiles}
	if version >= 3 {
		handled.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 4 {
		handled.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= 6 {
		handled.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	rules, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&handled)), unsafe.Sizeof(handled), 0)
	if errno != 0 {
		return fmt.Errorf("make Landlock rules: %w", errno)
	}
	defer unix.Close(int(rules))
	for _, folder := range append(systemFolders[:len(systemFolders):len(systemFolders)], program) {
		if err := allowReading(rules, folder); err != nil {
			return fmt.Errorf("allow reading %s: %w", folder, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0); errno != 0 {
		return fmt.Errorf("apply Landlock rules: %w", errno)
	}
	return nil
}

// allowReading adds a rule for a file, or a folder and its contents. A missing one needs no rule.
func allowReading(rules uintptr, name string) error {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil {
		return err
	}
	rule := unix.LandlockPathBeneathAttr{Parent_fd: int32(fd)}
	rule.Allowed_access = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	if is.Mode&unix.S_IFMT == unix.S_IFDIR {
		rule.Allowed_access |= unix.LANDLOCK_ACCESS_FS_READ_DIR
	}
	const kind = unix.LANDLOCK_RULE_PATH_BENEATH
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules, kind, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
