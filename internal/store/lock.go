package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked is in the error of AcquireLock if another process uses the folder.
var ErrLocked = errors.New("the data folder is in use by another process")

const lockName = ".lock"

// Lock is the exclusive right to use a data folder. The kernel releases it when the process ends,
// so a crash never leaves a folder locked.
type Lock struct{ f *os.File }

// AcquireLock locks dir, creating it (0700) if needed. It writes the process id into dir/.lock for
// people. It does not wait: if the folder is in use, the error is ErrLocked and names the process.
// The file stays after Release; only the kernel's lock on it counts.
func AcquireLock(dir string) (*Lock, error) {
	path := filepath.Join(dir, lockName)
	f, err := openLocked(path, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w (process %d): stop it first, or use another folder than %s", ErrLocked, holderID(path), dir)
	}
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	// The id is for people; the lock holds without it, even on a full disk.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Lock{f: f}, nil
}

// Release unlocks the folder. A second call does nothing.
func (l *Lock) Release() error {
	if err := l.f.Close(); err != nil && !errors.Is(err, os.ErrClosed) { // closing is what releases
		return fmt.Errorf("release data folder: %w", err)
	}
	return nil
}

func holderID(path string) int {
	b, _ := os.ReadFile(path)
	pid, _ := strconv.Atoi(string(bytes.TrimSpace(b))) // it may just be written
	return pid
}

// LockFile waits for the lock file at path and holds it until unlock is called. It excludes other
// processes; within a process use a mutex as well.
func LockFile(path string) (unlock func(), err error) {
	f, err := openLocked(path, unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	return func() { _ = f.Close() }, nil // closing releases the lock
}

// TryLockFile is LockFile without waiting: held is true if another process, or another part of this
// one, has the lock.
func TryLockFile(path string) (unlock func(), held bool, err error) {
	f, err := openLocked(path, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("guard: %w", err)
	}
	return func() { _ = f.Close() }, false, nil
}

// openLocked opens the file at path and locks it. If needed, it creates the file (0600) and its
// folder (0700).
func openLocked(path string, how int) (*os.File, error) {
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), how)
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(f.Fd()), how)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w; its file system may not support locks, use a local disk", path, err), f.Close())
	}
	return f, nil
}

// LockHolder returns the process that has locked dir, and since when; 0 = it is not locked. The check
// takes a shared lock for a moment.
func LockHolder(dir string) (pid int, since time.Time, err error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, time.Time{}, nil
	}
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("look at the lock: %w", err)
	}
	defer f.Close() // releases the shared lock
	if err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return 0, time.Time{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("look at the lock: %w", err)
	}
	return holderID(f.Name()), info.ModTime(), nil
}
