//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The arguments with which the program starts itself.
const (
	keeperName   = "sandbox-child"
	confinedName = "sandbox-confined"
	scriptName   = "sandbox-script"
)

// A child takes over here, before the rest of the program is initialized, and never comes back.
var _ = actAsChild()

func actAsChild() bool {
	switch {
	case isChild(keeperName):
		os.Exit(keep())
	case isChild(confinedName):
		os.Exit(confined(nil))
	}
	return true
}

// isChild reports whether this process was started as name.
func isChild(name string) bool { return len(os.Args) == 2 && os.Args[0] == "bot" && os.Args[1] == name }

// The open files of a child besides the standard streams.
const (
	ordersFile = 3 // the order; for the keeper, its end is the end of the program
	reportFile = 4
)

// tick is how often the keeper looks at what the processes use; after calmAfter it is ten times rarer.
const (
	tick      = 100 * time.Millisecond
	calmAfter = 10 * time.Second
)

// keep runs one order and reports how it ended. It returns an exit status.
func keep() int {
	orders, out := os.NewFile(ordersFile, "orders"), os.NewFile(reportFile, "report")
	if unix.CloseRange(ordersFile, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) != nil ||
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		return 1
	}
	var o order
	if json.NewDecoder(orders).Decode(&o) != nil {
		return 1
	}
	o.Namespaced = os.Getpid() == 1
	r := report{Namespaced: o.Namespaced}
	if err := r.run(o, orders); err != nil {
		r.Failed = err.Error()
	}
	_ = json.NewEncoder(out).Encode(r) // a program that has ended reads no report
	return 0
}

// run starts the confined process, watches it, and ends all that it has started. orders ends when the
// program does.
func (r *report) run(o order, orders io.Reader) error {
	var err error
	if o.Temporary, err = os.MkdirTemp(o.Temporary, "sandbox"); err != nil {
		return err
	}
	defer removeAll(o.Temporary)
	cmd, failure, err := startConfined(o)
	if err != nil {
		return err
	}
	defer r.endAll()
	gone, ended := make(chan struct{}), make(chan syscall.WaitStatus, 1)
	// go: ends with this process
	go func() { _, _ = io.Copy(io.Discard, orders); close(gone) }()
	// go: ends when the confined process does, or with this process
	go func() { ended <- reapUntil(cmd.Process.Pid) }()
	allowed := o.Time
	if o.Command == "" {
		allowed += time.Second // a script that takes too long says so itself
	}
	limit, look, free := time.After(allowed), time.NewTimer(tick), freeSpace(o.Temporary)
	calm := time.Now().Add(calmAfter)
	r.Code = 128 + int(syscall.SIGKILL) // unless it ends by itself
	for {
		select {
		case status := <-ended:
			if status.Signaled() {
				r.Code = 128 + int(status.Signal())
			} else {
				r.Code = status.ExitStatus()
			}
			if text, _ := io.ReadAll(failure); len(text) > 0 {
				return errors.New(string(text))
			}
			return nil
		case <-gone:
			return nil
		case <-limit:
			r.Ended = TimeUp
			return nil
		case <-look.C:
			began := time.Now()
			if r.Ended = o.exceeded(free); r.Ended != Finished {
				return nil
			}
			pause := max(tick, 5*time.Since(began))
			if began.After(calm) {
				pause *= 10
			}
			look.Reset(pause)
		}
	}
}

// startConfined starts the confined process. What can be read from failure says why it did not begin.
func startConfined(o order) (cmd *exec.Cmd, failure *os.File, err error) {
	cmd = exec.Command("/proc/self/exe", confinedName)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if o.Command == "" {
		cmd.Args[1], cmd.Stderr = scriptName, nil // not the runtime's words on its own end
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	failure, orders, err := spawn(cmd, o)
	if err == nil {
		err = orders.Close()
	}
	return cmd, failure, err
}

// reapUntil collects the children that have ended, until process pid has.
func reapUntil(pid int) (status syscall.WaitStatus) {
	for {
		switch child, err := syscall.Wait4(-1, &status, 0, nil); {
		case child == pid:
			return status
		case err != nil && !errors.Is(err, syscall.EINTR): // another one collected it
			return status
		}
	}
}

// endAll ends every process that the confined one has started. Orphans became children of the keeper.
func (r *report) endAll() {
	for range 10_000 {
		if r.Namespaced {
			_ = syscall.Kill(-1, syscall.SIGKILL) // all in the namespace but this one
		} else {
			all, _ := descendants()
			for _, pid := range all {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.ECHILD) {
				return
			}
			if pid <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// exceeded returns the limit that the processes are beyond. free was the free space at the start: files
// that are deleted but open take it, too.
func (o *order) exceeded(free int64) Reason {
	running, memory := descendants()
	switch {
	case len(running) > maxProcesses:
		return TooMany
	case memory > maxMemory:
		return MemoryFull
	case sizeOf(o.Dir) > o.Quota, sizeOf(o.Temporary) > o.Quota, free-freeSpace(o.Temporary) > 2*o.Quota:
		return QuotaFull
	}
	return Finished
}

// descendants lists the processes below this one, as /proc counts, which may be another namespace. It
// returns the bytes of memory that they use.
func descendants() (found []int, memory int64) {
	self, err := os.Readlink("/proc/self")
	names, failed := os.ReadDir("/proc")
	if err != nil || failed != nil {
		return nil, 0
	}
	children, used := map[string][]int{}, map[int]int64{}
	for _, entry := range names {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil { // it has ended
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // proc(5), from the third on
		if len(fields) < 22 {
			continue
		}
		pages, _ := strconv.ParseInt(fields[21], 10, 64)
		children[fields[1]] = append(children[fields[1]], pid)
		used[pid] = pages * int64(os.Getpagesize())
	}
	for next := []string{self}; len(next) > 0; next = next[1:] {
		for _, pid := range children[next[0]] {
			found = append(found, pid)
			memory += used[pid]
			next = append(next, strconv.Itoa(pid))
		}
	}
	return found, memory
}

// freeSpace returns the free bytes of the file system of dir.
func freeSpace(dir string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize
}

// sizeOf returns the bytes on disk of the files below dir; "" has none.
func sizeOf(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		var s unix.Stat_t
		if unix.Lstat(path, &s) == nil { // otherwise it has been deleted
			size += (s.Blocks + 1) * 512 // one more, so that many empty files count
		}
		return nil
	})
	return size
}

// removeAll deletes dir, also folders in it that were made unreadable.
func removeAll(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
