package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"reverie/internal/store"
)

// Holds F28.
func TestLockRefusesASecondHolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	l, err := store.AcquireLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.AcquireLock(dir)
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("second lock: %v", err)
	}
	for range 2 {
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
	again, err := store.AcquireLock(dir)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
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
	inside, most := 0, 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				unlock, err := store.Guard(path)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				inside++
				most = max(most, inside)
				mu.Unlock()
				for range 10 {
					runtime.Gosched() // let whoever may come in come in
				}
				mu.Lock()
				inside--
				mu.Unlock()
				unlock()
			}
		})
	}
	wg.Wait()
	if most != 1 {
		t.Errorf("%d were inside at once", most)
	}
}

func TestHolderLooksOnly(t *testing.T) {
	dir := t.TempDir()
	look := func() (int, bool) {
		t.Helper()
		pid, since, held, err := store.Holder(dir)
		if err != nil || held == since.IsZero() {
			t.Fatalf("holder: held %v since %v, %v", held, since, err)
		}
		return pid, held
	}
	if _, held := look(); held {
		t.Error("a folder that was never locked is held")
	}
	if _, err := os.Stat(filepath.Join(dir, ".lock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking left a file behind: %v", err)
	}
	l, err := store.AcquireLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if pid, held := look(); !held || pid != os.Getpid() {
			t.Errorf("held %v by process %d, want %d", held, pid, os.Getpid())
		}
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if _, held := look(); held {
		t.Error("a released folder is held")
	}
}
