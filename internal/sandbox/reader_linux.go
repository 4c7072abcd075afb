package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

const readerName = "sandbox-reader"

// readerLimits are the limits of a reader beside limitMemory: ten seconds of processor time, and a file
// size of 0, which allows writing to pipes only.
var readerLimits = map[int]uint64{unix.RLIMIT_CPU: 10, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 32}

// limitMemory runs a program with 256 MB of address space. The shell sets the limit, because a Go process
// reserves more than that and dies now and then where it wants more.
var limitMemory = []string{"/bin/sh", "-c", `ulimit -v 262144 && exec "$@"`, "sh"}

// systemFolders hold programs and their libraries.
var systemFolders = []string{"/bin", "/lib", "/lib64", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share", "/nix/store",
	"/gnu/store"}

// Reader returns a command for a program that reads standard input, with readerLimits. Landlock lets it
// open systemFolders and its own folder only, without network and signals to others; as much of that
// as the kernel has, possibly nothing.
func Reader(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{readerName, program}, args...)...)
	cmd.Args[0] = "bot"
	return cmd
}

// A child takes over here, like actAsChild.
var _ = actAsReader()

func actAsReader() bool {
	if len(os.Args) < 3 || os.Args[0] != "bot" || os.Args[1] != readerName {
		return true
	}
	program := os.Args[2:]
	err := landlock.V6.BestEffort().Restrict(landlock.RODirs(append(systemFolders, filepath.Dir(program[0]))...).IgnoreIfMissing(),
		landlock.ROFiles("/etc/ld.so.cache").IgnoreIfMissing())
	for limit, most := range readerLimits {
		err = errors.Join(err, unix.Setrlimit(limit, &unix.Rlimit{Cur: most, Max: most}))
	}
	if err == nil {
		err = syscall.Exec(limitMemory[0], append(limitMemory, program...), nil) //nolint:gosec // that is what it is for
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
	return false
}
