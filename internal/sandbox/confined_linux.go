//go:build amd64 || arm64

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// TakeOver runs the script that this process was started for and ends it. In any other process it does
// nothing. Package script calls it; there is one caller only.
func TakeOver(run func(code string, limit time.Duration) int) bool {
	if isChild(scriptName) {
		os.Exit(confined(run))
	}
	return true
}

// confined gives up the rights of this process and runs the order, a script with run. It returns an
// exit status.
func confined(run func(code string, limit time.Duration) int) int {
	runtime.LockOSThread()
	orders, failure := os.NewFile(ordersFile, "orders"), os.NewFile(reportFile, "failure")
	if unix.CloseRange(ordersFile, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) != nil {
		return 1
	}
	var o order
	err := json.NewDecoder(orders).Decode(&o)
	_ = time.Local.String() // reads the time zone's file, as long as that is possible
	// Where the machine's memory runs out, this ends first, and not the bot.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 10) // the keeper and the bot go first
	if err == nil {
		err = o.confine()
	}
	if err == nil && o.Command == "" {
		failure.Close()
		return run(o.Code, o.Time)
	}
	if err == nil && o.Probe {
		failure.Close()
		return probe(o.Dir, o.Hidden)
	}
	if err == nil {
		for name, value := range o.Environment {
			err = errors.Join(err, os.Setenv(name, value))
		}
		if err = errors.Join(err, os.Chdir(o.Dir)); err == nil {
			err = syscall.Exec("/bin/sh", []string{"sh", "-c", o.Command}, os.Environ()) //nolint:gosec // that is what it is for
		}
	}
	fmt.Fprint(failure, err)
	return 1
}

// readable lists what every command may read and run: the programs of the system. Everything below a
// folder is included.
func readable(network bool) []string {
	paths := []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
		"/etc/alternatives", "/etc/localtime", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/ssl/cert.pem",
		"/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted"}
	if network {
		paths = append(paths, "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols")
	}
	return paths
}

const (
	rightsRead  = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	rightsWrite = rightsRead | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSym | ll.AccessFSRefer // but no devices, pipes and sockets
	rightsOfFiles = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
)

// confine gives up the rights of all threads of this process. Each step must succeed.
func (o *order) confine() error {
	unix.Umask(0o077)
	for _, step := range []func() error{dropCapabilities, o.setLimits, o.restrictFiles, o.filterCalls} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// dropCapabilities takes the rights that root has, for this process and all that it starts.
func dropCapabilities() error {
	for c := uintptr(0); c <= 63; c++ {
		_, _, err := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0)
		if errors.Is(err, unix.EINVAL) { // beyond the last
			break
		}
		if err != 0 && os.Geteuid() == 0 {
			return fmt.Errorf("drop capabilities: %w", err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, err := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	if err != 0 {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

func (o *order) setLimits() error {
	seconds := uint64(o.Time.Seconds()) + 2
	limits := map[int]uint64{unix.RLIMIT_DATA: maxMemory, unix.RLIMIT_AS: maxAddresses, unix.RLIMIT_CORE: 0,
		unix.RLIMIT_CPU: seconds, unix.RLIMIT_FSIZE: uint64(o.Quota),
		unix.RLIMIT_NOFILE: 256, unix.RLIMIT_MEMLOCK: 0, unix.RLIMIT_MSGQUEUE: 0, unix.RLIMIT_NPROC: 2 * maxProcesses}
	if !o.Namespaced { // the user's processes outside count, too
		limits[unix.RLIMIT_NPROC] = 16 * maxProcesses
	}
	if o.Command == "" {
		limits[unix.RLIMIT_FSIZE], limits[unix.RLIMIT_DATA] = 0, maxMemory/2
	}
	for what, n := range limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(what, &now); err != nil {
			return fmt.Errorf("set limits: %w", err)
		}
		n = min(n, now.Max)
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return fmt.Errorf("set limits: %w", err)
		}
	}
	return nil
}

// restrictFiles confines files, TCP ports, signals and abstract sockets by Landlock.
func (o *order) restrictFiles() error {
	c := landlock.V6
	var rules []landlock.Rule
	if o.Command != "" {
		allow := func(rights landlock.AccessFSSet, paths ...string) {
			for _, path := range paths {
				info, err := os.Stat(path)
				if err != nil {
					continue // it grants nothing
				}
				of := rights
				if !info.IsDir() {
					of &= rightsOfFiles
				}
				rules = append(rules, landlock.PathAccess(of, path))
			}
		}
		allow(rightsRead, append(readable(o.Network), o.Folders...)...)
		allow(ll.AccessFSReadFile|ll.AccessFSWriteFile, "/dev/null")
		allow(ll.AccessFSReadFile, "/dev/zero", "/dev/urandom", "/dev/random")
		allow(rightsWrite, o.Temporary)
		if o.ReadOnly {
			allow(rightsRead, o.Dir)
		} else {
			allow(rightsWrite, o.Dir)
		}
		if o.Network {
			c.HandledAccessNet = 0
		}
	}
	if err := c.Restrict(rules...); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

// forbidden are system calls that reach other processes, the kernel's settings, or memory that outlives
// a process. Landlock does not decide on attributes of files, so they change by open files only.
var forbidden = []string{
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp", "migrate_pages",
	"move_pages", "perf_event_open", "bpf", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick",
	"mount_setattr", "unshare", "setns", "name_to_handle_at", "open_by_handle_at", "fanotify_init", "quotactl", "quotactl_fd",
	"keyctl", "add_key", "request_key", "init_module", "finit_module", "delete_module", "create_module", "kexec_load", "kexec_file_load",
	"reboot", "swapon", "swapoff", "acct", "syslog", "iopl", "ioperm", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime",
	"sethostname", "setdomainname", "vhangup", "nfsservctl", "lookup_dcookie", "uselib", "_sysctl", "personality",
	"shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semctl", "semtimedop",
	"mq_open", "mq_unlink",
	"chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "setxattr", "lsetxattr", "removexattr", "lremovexattr",
	"utime", "utimes", "futimesat", "mknod", "mknodat",
}

// conditional are system calls that are forbidden with some arguments.
var conditional = []seccomp.NameWithConditions{
	when("clone", at(0, seccomp.BitsSet, unix.CLONE_NEWUSER|unix.CLONE_NEWNS|unix.CLONE_NEWPID|unix.CLONE_NEWNET|unix.CLONE_NEWIPC|
		unix.CLONE_NEWUTS|unix.CLONE_NEWCGROUP)),
	when("utimensat", at(1, seccomp.NotEqual, 0)), // by path
	// limits and priorities of other processes
	when("prlimit64", at(0, seccomp.NotEqual, 0)),
	when("setpriority", at(0, seccomp.NotEqual, 0)), when("setpriority", at(1, seccomp.NotEqual, 0)),
	when("ioprio_set", at(0, seccomp.NotEqual, 1)), when("ioprio_set", at(1, seccomp.NotEqual, 0)),
	when("sched_setaffinity", at(0, seccomp.NotEqual, 0)), when("sched_setscheduler", at(0, seccomp.NotEqual, 0)),
	when("sched_setparam", at(0, seccomp.NotEqual, 0)), when("sched_setattr", at(0, seccomp.NotEqual, 0)),
	// files with the rights of their owner
	when("fchmod", at(1, seccomp.BitsSet, unix.S_ISUID|unix.S_ISGID)),
}

func when(name string, conditions ...seccomp.Condition) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: conditions}
}

func at(argument uint32, is seccomp.Operation, value uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: is, Value: value}
}

// filterCalls forbids system calls by seccomp, for all threads.
func (o *order) filterCalls() error {
	known, err := arch.GetInfo("")
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	if err := filterForeign(uint32(known.ID)); err != nil {
		return err
	}
	answer := func(no syscall.Errno, names ...string) seccomp.SyscallGroup {
		return seccomp.SyscallGroup{Action: seccomp.ActionErrno | seccomp.Action(no), Names: names}
	}
	denied := answer(unix.EPERM)
	absent := answer(unix.ENOSYS, "clone3")       // its flags cannot be seen; programs use clone instead
	large := answer(unix.EOPNOTSUPP, "fallocate") // it fills a disk at once; programs write instead
	for _, name := range forbidden {
		if _, ok := known.SyscallNames[name]; ok { // not every architecture has each
			denied.Names = append(denied.Names, name)
		}
	}
	for _, c := range conditional {
		if _, ok := known.SyscallNames[c.Name]; ok {
			denied.NamesWithCondtions = append(denied.NamesWithCondtions, c)
		}
	}
	if o.Network && o.Command != "" {
		denied.NamesWithCondtions = append(denied.NamesWithCondtions,
			when("socket", at(0, seccomp.NotEqual, unix.AF_INET), at(0, seccomp.NotEqual, unix.AF_INET6)))
	} else {
		denied.Names = append(denied.Names, "socket")
	}
	err = seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{denied, absent, large}}})
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}

// newestCall is the last system call that forbidden was written for: mseal. The later ones set attributes
// by path, among others.
const newestCall = 462

// filterForeign forbids the system calls of other architectures that the processor may know, which
// have other numbers, and those that are newer than newestCall.
func filterForeign(native uint32) error {
	const number, architecture = 0, 4 // offsets in seccomp_data
	refuse := uint32(unix.SECCOMP_RET_ERRNO | unix.ENOSYS)
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: architecture},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: native, Jf: 2},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: newestCall, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: refuse},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	load := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&load)))
	if err != 0 {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}

// held is what probe prints if nothing worked that must fail.
const held = "held"

// probe tries to get out of the work folder dir, and prints what it could do.
func probe(dir string, hidden []string) int {
	said := held
	check := func(what string, err error, wanted bool) {
		if (err == nil) != wanted {
			said = fmt.Sprintf("%s: %v", what, err)
		}
	}
	check("write into the work folder", os.WriteFile(dir+"/probe", []byte("x"), 0o600), true)
	for _, path := range append([]string{"/proc/self/environ", "/etc/shadow", "/root", "/dev/mem"}, hidden...) {
		f, err := os.Open(path)
		check("open "+path, err, false)
		if err == nil {
			f.Close()
		}
	}
	_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	check("open a socket", err, false)
	check("signal the parent", unix.Kill(os.Getppid(), 0), false)
	fmt.Println(said)
	return 0
}
