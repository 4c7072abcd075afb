//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attempt is one try to get out of the cage. Its script prints "ESCAPED" or a canary if it succeeds, and
// "TRIED" at its end. {data} is the data folder, {pid} the program that started it, {home} its home.
type attempt struct {
	name, script string
	ends         Reason // it is ended for this; then it need not print TRIED
	dies         bool   // it ends itself
	readOnly     bool
}

// ok makes a script that has escaped if its command succeeds.
func ok(command string) string { return "if " + command + "; then echo ESCAPED; fi; echo TRIED" }

// raw makes a script that runs a function of calls.
func raw(name string) string { return "./escape " + name + " {pid} {data}" }

var attempts = []attempt{
	// files outside
	{name: "read the database", script: "cat {data}/bot.db; echo TRIED"},
	{name: "read the configuration", script: "cat {data}/config.yaml; echo TRIED"},
	{name: "list the data folder", script: ok("ls {data}")},
	{name: "climb up", script: "cat ../../../bot.db ../../bot.db ../bot.db; echo TRIED"},
	{name: "enter the data folder", script: "cd {data} && cat bot.db; cat {data}/work/../bot.db; echo TRIED"},
	{name: "another room's folder", script: "cat {data}/work/other/secret.txt; echo TRIED"},
	{name: "symbolic link", script: "ln -s {data}/bot.db link; cat link; echo TRIED"},
	{name: "symbolic link to a folder", script: "ln -s {data} dir; cat dir/bot.db; " + ok("touch dir/new")},
	{name: "hard link", script: "ln {data}/bot.db hard; cat hard; echo TRIED"},
	{name: "move a file out", script: "echo x > f; " + ok("mv f {data}/f")},
	{name: "move a file in", script: "mv {data}/bot.db .; cat bot.db; echo TRIED"},
	{name: "create outside", script: ok("echo x > {data}/new")},
	{name: "append outside", script: ok("echo x >> {data}/bot.db")},
	{name: "truncate outside", script: ok("(: > {data}/bot.db)")},
	{name: "truncate by path", script: raw("truncate")},
	{name: "delete outside", script: ok("rm -f {data}/bot.db")},
	{name: "make a folder outside", script: ok("mkdir {data}/new")},
	{name: "change the mode outside", script: ok("chmod 777 {data}/bot.db")},
	{name: "change the mode outside by an open path", script: raw("chmod")},
	{name: "change the owner outside", script: ok("chown 1:1 {data}/bot.db")},
	{name: "change the time outside", script: ok("touch -d 2001-01-01 {data}/bot.db")},
	{name: "change attributes outside", script: raw("xattr")},
	{name: "the passwords of the system", script: ok("cat /etc/shadow || cat /etc/passwd")},
	{name: "the homes", script: ok("ls /root || ls /home")},
	{name: "the program's home", script: ok("echo x >> {home}/.profile || mkdir {home}/.ssh")},
	{name: "temporary folders", script: ok("echo x > /tmp/escaped || echo x > /var/tmp/escaped || echo x > /dev/shm/escaped")},
	{name: "cron", script: ok("echo x > /etc/cron.d/escaped || echo x > /var/spool/cron/crontabs/root || echo true | at now")},
	{name: "preload for all programs", script: ok("echo /x.so > /etc/ld.so.preload")},
	{name: "programs", script: ok("touch /usr/bin/escaped || rm /bin/true")},
	{name: "write in a read-only folder", readOnly: true, script: ok("echo x > f || rm escape || mkdir d || ln -s a b")},
	// the process file system and devices
	{name: "own environment", script: ok("cat /proc/self/environ") + "; env"},
	{name: "the program's environment", script: "cat /proc/{pid}/environ /proc/$PPID/environ /proc/1/environ; " + ok("ls /proc")},
	{name: "the program's root", script: ok("ls /proc/1/root/ || ls /proc/{pid}/root/ || ls /proc/{pid}/cwd/")},
	{name: "the program's memory", script: ok("cat /proc/{pid}/maps || cat /proc/$PPID/maps || head -c 1 /proc/{pid}/mem")},
	{name: "memory and disks", script: ok("head -c 1 /dev/mem || head -c 1 /dev/kmsg || head -c 1 /dev/vda || head -c 1 /dev/sda")},
	{name: "make a device", script: ok("mknod mem c 1 1 || mknod disk b 254 0 || mkfifo pipe")},
	{name: "the terminal", script: ok("echo x > /dev/tty || echo x > /dev/pts/0 || echo x > /dev/console")},
	{name: "type into the terminal", script: raw("tiocsti")},
	{name: "open files", script: "for n in 3 4 5 6 7 8 9; do (eval \"cat <&$n\"); done; echo TRIED"},
	{name: "the kernel's settings", script: ok("echo 1 > /proc/sys/kernel/sysrq || ls /sys || ls /sys/fs/cgroup")},
	// other processes
	{name: "trace", script: raw("ptrace")},
	{name: "read memory", script: raw("process_vm_readv")},
	{name: "signal the program", script: raw("kill") + "; kill -0 $PPID && echo ESCAPED"},
	{name: "signal all", script: "kill -9 -1; echo TRIED", dies: true},
	{name: "signal by a process descriptor", script: raw("pidfd")},
	{name: "limits of the program", script: raw("prlimit")},
	{name: "priority of the program", script: raw("priority")},
	{name: "processors of the program", script: raw("affinity")},
	// sockets
	{name: "TCP", script: raw("inet")},
	{name: "UDP", script: raw("inet6")},
	{name: "unix socket", script: raw("unix")},
	{name: "abstract socket", script: raw("abstract")},
	{name: "netlink", script: raw("netlink")},
	{name: "packet", script: raw("packet")},
	{name: "vsock", script: raw("vsock")},
	{name: "system calls of 32 bits", script: "./call32; [ $? = 7 ] && echo ESCAPED; echo TRIED"},
	// the kernel
	{name: "mount", script: raw("mount") + "; " + ok("mount -t tmpfs none .")},
	{name: "new namespaces", script: raw("unshare") + "; " + ok("unshare -r true")},
	{name: "clone into namespaces", script: raw("clone")},
	{name: "enter namespaces", script: raw("setns")},
	{name: "change the root", script: raw("chroot")},
	{name: "keys", script: raw("keyctl")},
	{name: "bpf", script: raw("bpf")},
	{name: "io_uring", script: raw("io_uring")},
	{name: "userfaultfd", script: raw("userfaultfd")},
	{name: "perf", script: raw("perf")},
	{name: "modules", script: raw("module")},
	{name: "clock and name", script: raw("clock")},
	{name: "memory that outlives processes", script: raw("ipc")},
	{name: "files by handle", script: raw("handle")},
	{name: "a file with its owner's rights", script: ok("cp /bin/sh s && chmod 4755 s") + "; " + raw("suid")},
	{name: "become root", script: ok("su -c true || sudo -n true") + "; " + raw("setuid")},
	// limits, and what stays
	{name: "fork bomb", script: "bomb() { bomb & bomb & sleep 4711; }; bomb; sleep 50", ends: TooMany, dies: true},
	{name: "memory", script: raw("memory"), dies: true},
	{name: "memory of many", script: "for i in 1 2 3 4; do ./escape half & done; sleep 50", ends: MemoryFull},
	{name: "one large file", script: "head -c 99999999 /dev/zero > large; ls -s large; sleep 50", ends: QuotaFull},
	{name: "many files", script: "i=0; while :; do head -c 500000 /dev/zero > f$i; i=$((i+1)); done", ends: QuotaFull},
	{name: "a deleted file", script: raw("unlinked"), ends: QuotaFull},
	{name: "space at once", script: raw("fallocate")},
	{name: "core dump", script: "ulimit -c unlimited; sh -c 'kill -SEGV $$'; ls; " + ok("ls | grep -q core")},
	{name: "for ever", script: "while :; do :; done", ends: TimeUp},
	{name: "survive by setsid", script: "setsid sleep 4711 & echo TRIED"},
	{name: "survive by nohup", script: "(nohup sh -c 'trap \"\" TERM HUP INT; sleep 4711' > /dev/null 2>&1 &) ; echo TRIED"},
	{name: "survive by a double fork", script: raw("daemon")},
}

// calls are the attempts by system call; nil = it worked.
var calls = map[string]func(pid int, data string) error{
	"truncate": func(_ int, data string) error { return unix.Truncate(data+"/bot.db", 0) },
	"chmod": func(_ int, data string) error {
		fd, err := unix.Open(data+"/bot.db", unix.O_PATH, 0)
		if err != nil {
			return err
		}
		return first(unix.Fchmod(fd, 0o777), unix.Fchmodat(fd, "", 0o777, unix.AT_EMPTY_PATH), unix.Fchownat(fd, "", 1, 1, unix.AT_EMPTY_PATH),
			unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o777))
	},
	"xattr": func(_ int, data string) error { return unix.Setxattr(data+"/bot.db", "user.x", []byte("x"), 0) },
	"tiocsti": func(int, string) error {
		text := byte('x')
		for fd := range 3 {
			if _, _, err := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&text))); err == 0 {
				return nil
			}
		}
		return unix.ENOTTY
	},
	"ptrace": func(pid int, _ string) error { return first(unix.PtraceAttach(pid), unix.PtraceSeize(os.Getppid())) },
	"process_vm_readv": func(pid int, _ string) error {
		local := make([]byte, 8)
		_, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &local[0], Len: 8}}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
		return err
	},
	"kill": func(pid int, _ string) error {
		return first(unix.Kill(pid, 0), unix.Kill(1, 0), unix.Tgkill(pid, pid, 0))
	},
	"pidfd": func(pid int, _ string) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		_, stolen := unix.PidfdGetfd(fd, 1, 0)
		return first(unix.PidfdSendSignal(fd, 0, nil, 0), stolen)
	},
	"prlimit": func(pid int, _ string) error {
		return first(unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, new(unix.Rlimit)), unix.Prlimit(os.Getppid(), unix.RLIMIT_CORE, nil, new(unix.Rlimit)))
	},
	"priority": func(pid int, _ string) error {
		return first(unix.Setpriority(unix.PRIO_PROCESS, pid, 19), unix.Setpriority(unix.PRIO_USER, os.Getuid(), 19), unix.Setpriority(unix.PRIO_PROCESS, 0, -20))
	},
	"affinity": func(pid int, _ string) error {
		var one unix.CPUSet
		one.Set(0)
		return unix.SchedSetaffinity(pid, &one)
	},
	"inet": func(int, string) error {
		_, err := net.DialTimeout("tcp", "127.0.0.1:22", time.Second)
		return first(err, socket(unix.AF_INET, unix.SOCK_STREAM), socket(unix.AF_INET, unix.SOCK_RAW))
	},
	"inet6": func(int, string) error {
		return first(socket(unix.AF_INET6, unix.SOCK_DGRAM), socket(unix.AF_INET, unix.SOCK_DGRAM))
	},
	"unix": func(_ int, data string) error {
		_, err := net.Dial("unix", data+"/socket")
		return first(err, socket(unix.AF_UNIX, unix.SOCK_STREAM))
	},
	"abstract": func(int, string) error { _, err := net.Dial("unix", "@sandbox-escape"); return err },
	"netlink":  func(int, string) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW) },
	"packet":   func(int, string) error { return socket(unix.AF_PACKET, unix.SOCK_RAW) },
	"vsock":    func(int, string) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM) },
	"mount": func(_ int, data string) error {
		return first(unix.Mount(data, ".", "", unix.MS_BIND, ""), call(unix.SYS_FSOPEN, name("tmpfs")), call(unix.SYS_OPEN_TREE, ^uintptr(99), name("/"), 1))
	},
	"unshare": func(int, string) error {
		return first(unix.Unshare(unix.CLONE_NEWUSER), unix.Unshare(unix.CLONE_NEWNS))
	},
	"clone": func(int, string) error {
		flags := [11]uint64{unix.CLONE_NEWUSER, 0, 0, 0, uint64(unix.SIGCHLD)}
		if pid, _, err := unix.RawSyscall(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0); err == 0 {
			if pid == 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
			return nil
		}
		pid, _, err := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&flags)), 88, 0)
		if err == 0 && pid == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		return call(0, 0, err)
	},
	"setns": func(pid int, _ string) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		return unix.Setns(fd, unix.CLONE_NEWNS)
	},
	"chroot": func(int, string) error { return first(unix.Chroot("."), unix.PivotRoot(".", ".")) },
	"keyctl": func(int, string) error {
		_, err := unix.AddKey("user", "x", []byte("x"), unix.KEY_SPEC_USER_KEYRING)
		_, get := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
		return first(err, get)
	},
	"bpf": func(int, string) error { return call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(new([128]byte))), 48) },
	"io_uring": func(int, string) error {
		return call(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(new([120]byte))))
	},
	"userfaultfd": func(int, string) error { return call(unix.SYS_USERFAULTFD, 1) },
	"perf": func(int, string) error {
		_, err := unix.PerfEventOpen(&unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: unix.PERF_ATTR_SIZE_VER1}, 0, -1, -1, 0)
		return err
	},
	"module": func(int, string) error {
		return first(call(unix.SYS_INIT_MODULE, 0, 0, name("")), call(unix.SYS_KEXEC_LOAD, 0, 0, 0), call(unix.SYS_FINIT_MODULE, 0, name(""), 0),
			call(unix.SYS_REBOOT, 0xfee1dead, 672274793, 0))
	},
	"clock": func(int, string) error {
		now := unix.NsecToTimeval(time.Now().UnixNano())
		return first(unix.Settimeofday(&now), unix.Sethostname([]byte("escaped")))
	},
	"ipc": func(int, string) error {
		_, err := unix.SysvShmGet(4711, 4096, unix.IPC_CREAT|0o600)
		return first(err, call(unix.SYS_MSGGET, 4711, unix.IPC_CREAT|0o600), call(unix.SYS_SEMGET, 4711, 1, unix.IPC_CREAT|0o600),
			call(unix.SYS_MQ_OPEN, name("escaped"), unix.O_CREAT|unix.O_RDWR, 0o600))
	},
	"handle": func(_ int, data string) error {
		_, _, err := unix.NameToHandleAt(unix.AT_FDCWD, data, 0)
		return err
	},
	"suid": func(int, string) error {
		f, err := os.Create("rights")
		if err != nil {
			return err
		}
		return unix.Fchmod(int(f.Fd()), 0o4755)
	},
	"setuid": func(int, string) error {
		if os.Getuid() != 0 {
			return unix.Setuid(0)
		}
		return first(unix.Setuid(1), unix.Setgroups([]int{1}))
	},
	"memory": func(int, string) error { return touch(1200 << 20) },
	"unlinked": func(int, string) error {
		var open []*os.File
		for n := 0; ; n++ {
			f, err := os.Create(fmt.Sprintf("gone%d", n))
			if err != nil {
				time.Sleep(50 * time.Second)
				return fmt.Errorf("%d files: %w", len(open), err)
			}
			open = append(open, f)
			os.Remove(f.Name())
			block := make([]byte, 1<<20)
			for range 30 {
				if _, err := f.Write(block); err != nil {
					break
				}
			}
		}
	},
	"fallocate": func(int, string) error {
		f, err := os.Create("space")
		if err != nil {
			return err
		}
		return unix.Fallocate(int(f.Fd()), 0, 0, 16<<20)
	},
	"daemon": func(int, string) error {
		p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "setsid sh -c 'setsid sleep 4711 & sleep 4711' & sleep 0.1"},
			&os.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true}})
		if err != nil {
			return err
		}
		_, _ = p.Wait()
		return unix.EAGAIN // it has survived if it is found later
	},
}

// first returns nil if one of errs is nil, else the first.
func first(errs ...error) error {
	for _, err := range errs {
		if err == nil {
			return nil
		}
	}
	return errs[0]
}

func socket(domain, kind int) error {
	_, err := unix.Socket(domain, kind, 0)
	return err
}

func name(text string) uintptr {
	b := append([]byte(text), 0)
	return uintptr(unsafe.Pointer(&b[0]))
}

func call(number uintptr, args ...any) error {
	var a [6]uintptr
	for i, arg := range args {
		switch arg := arg.(type) {
		case uintptr:
			a[i] = arg
		case int:
			a[i] = uintptr(arg)
		case syscall.Errno:
			if arg == 0 {
				return nil
			}
			return arg
		}
	}
	if _, _, err := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); err != 0 {
		return err
	}
	return nil
}

// touch uses memory.
func touch(size int) error {
	block := make([]byte, size)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	time.Sleep(50 * time.Second)
	runtime.KeepAlive(block)
	return nil
}

// escape is the program ./escape in the work folder.
func escape(args []string) {
	if args[0] == "half" {
		_ = touch(400 << 20)
		return
	}
	pid, _ := strconv.Atoi(args[1])
	err := calls[args[0]](pid, args[2])
	if err == nil {
		fmt.Println("ESCAPED")
	}
	fmt.Println("TRIED", err)
}

// call32 is a program that asks for a socket in the way of 32-bit programs. It exits with 7 if it gets one.
func call32() []byte {
	code := []byte{
		0xb8, 0x67, 0x01, 0, 0, // mov eax, 359 (socket)
		0xbb, 2, 0, 0, 0, // mov ebx, AF_INET
		0xb9, 1, 0, 0, 0, // mov ecx, SOCK_STREAM
		0x31, 0xd2, // xor edx, edx
		0xcd, 0x80, // int 0x80
		0xbf, 7, 0, 0, 0, // mov edi, 7
		0x85, 0xc0, // test eax, eax
		0x79, 0x05, // jns +5
		0xbf, 1, 0, 0, 0, // mov edi, 1
		0xb8, 60, 0, 0, 0, // mov eax, 60 (exit)
		0x0f, 0x05, // syscall
	}
	const base, header = 0x400000, 64 + 56
	le := func(n uint64, size int) (b []byte) {
		for range size {
			b, n = append(b, byte(n)), n>>8
		}
		return b
	}
	elf := append([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0}, make([]byte, 8)...)
	for _, f := range [][2]uint64{{2, 2}, {62, 2}, {1, 4}, {base + header, 8}, {64, 8}, {0, 8}, {0, 4}, {64, 2}, {56, 2}, {1, 2}, {0, 2}, {0, 2}, {0, 2},
		{1, 4}, {5, 4}, {0, 8}, {base, 8}, {base, 8}, {uint64(header + len(code)), 8}, {uint64(header + len(code)), 8}, {0x1000, 8}} {
		elf = append(elf, le(f[0], int(f[1]))...)
	}
	return append(elf, code...)
}
