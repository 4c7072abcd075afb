package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/store"
)

// TestLock: one holder at a time, which others can see without being in its way.
// Holds F28.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	look := func(want bool) {
		t.Helper()
		pid, since, held, err := store.Holder(dir)
		if err != nil || held != want || held == since.IsZero() || held && pid != os.Getpid() {
			t.Errorf("held %v by process %d since %v, %v", held, pid, since, err)
		}
	}
	look(false)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking left something behind: %v", err)
	}
	for range 2 { // the second time with a file that is there
		l, err := store.AcquireLock(dir)
		if err != nil {
			t.Fatal(err)
		}
		look(true)
		look(true)
		_, err = store.AcquireLock(dir)
		if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
			t.Errorf("second lock: %v", err)
		}
		if err := errors.Join(l.Release(), l.Release()); err != nil {
			t.Fatal(err)
		}
		look(false)
	}
}

// TestLockChild is the other process of the test below.
func TestLockChild(t *testing.T) {
	dir := os.Getenv("REVERIE_TEST_LOCK")
	if dir == "" {
		t.Skip("not started by TestLockEndsWithItsProcess")
	}
	l, err := store.AcquireLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Release() }() // a lock that nobody holds on to is collected, and its file closed
	fmt.Println("\nlocked")
	select {} // until killed
}

// Holds F28.
func TestLockEndsWithItsProcess(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestLockChild$")
	child.Env = append(os.Environ(), "REVERIE_TEST_LOCK="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	for lines := bufio.NewScanner(out); lines.Text() != "locked"; {
		if !lines.Scan() {
			t.Fatal("the child ended without the lock")
		}
	}
	_, err = store.AcquireLock(dir)
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(child.Process.Pid)) {
		t.Fatalf("while the child lives: %v", err)
	}
	if err := child.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = child.Wait()
	l, err := store.AcquireLock(dir)
	if err != nil {
		t.Fatalf("after the child was killed: %v", err)
	}
	_ = l.Release()
}

func TestGuardLetsOneIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", ".guard")
	unlock, err := store.Guard(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, held, err := store.TryGuard(path); !held || err != nil {
		t.Errorf("beside it: held %v, %v", held, err)
	}
	second := make(chan error)
	go func() {
		free, err := store.Guard(path)
		if err == nil {
			free()
		}
		second <- err
	}()
	select {
	case err := <-second:
		t.Errorf("two are inside, %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	unlock()
	if err := <-second; err != nil {
		t.Error(err)
	}
	free, held, err := store.TryGuard(path)
	if held || err != nil {
		t.Fatalf("afterwards: held %v, %v", held, err)
	}
	free()
}
