package homeserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	dendriteBin = "dendrite"
	keysBin     = "generate-keys"
	stampFile   = "built-from"
)

// buildArgs is part of the stamp: a change of it causes a new build.
var buildArgs = []string{"-mod=readonly", "-trimpath", "-ldflags=-s -w", "-buildvcs=false"}

// ErrNoGo reports that the homeserver cannot be built because there is no go command.
var ErrNoGo = errors.New("the go command is not on the PATH: it is needed once, to build the homeserver")

// Build builds the homeserver's two programs from repo/test/homeserver into binDir. It does nothing
// if they were built from the same go.mod and go.sum. A cold build takes one to two minutes and
// downloads modules. progress (may be nil) gets a line at the start, about every ten seconds, and at
// the end. Concurrent calls of any process wait for each other. Without a go command the error is
// ErrNoGo.
func Build(ctx context.Context, repo, binDir string, progress io.Writer) error {
	if progress == nil {
		progress = io.Discard
	}
	source := filepath.Join(repo, "test", "homeserver")
	want, err := stamp(source)
	if err != nil {
		return fmt.Errorf("build homeserver: %w", err)
	}
	if isBuilt(binDir, want) {
		return nil
	}
	if binDir, err = filepath.Abs(binDir); err != nil {
		return fmt.Errorf("build homeserver: %w", err)
	}
	if err := os.MkdirAll(binDir, 0o755); err != nil {
		return fmt.Errorf("build homeserver: %w", err)
	}
	lock, err := waitForLock(ctx, filepath.Join(binDir, ".lock"), progress)
	if err != nil {
		return fmt.Errorf("build homeserver: %w", err)
	}
	defer lock.Close()
	if isBuilt(binDir, want) { // by the last holder of the lock
		return nil
	}
	goBin, err := exec.LookPath("go")
	if err != nil {
		return ErrNoGo
	}
	return compile(ctx, goBin, source, binDir, want, progress)
}

// compile builds into a folder beside the target and renames it, so that an interrupted build never
// looks complete.
func compile(ctx context.Context, goBin, source, binDir, want string, progress io.Writer) error {
	temp, err := os.MkdirTemp(binDir, ".build-")
	if err != nil {
		return fmt.Errorf("build homeserver: %w", err)
	}
	defer os.RemoveAll(temp)

	fmt.Fprintln(progress, "Building the homeserver (Dendrite). Once only; 1 to 2 minutes the first time.")
	args := append([]string{"build", "-C", source}, buildArgs...)
	args = append(args, "-o", temp+string(filepath.Separator),
		"github.com/element-hq/dendrite/cmd/"+dendriteBin,
		"github.com/element-hq/dendrite/cmd/"+keysBin)
	cmd := exec.CommandContext(ctx, goBin, args...)
	// GOFLAGS is replaced: the bot's own flags and tags do not apply there.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go then removes its work folder
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out

	began := time.Now()
	if err := runWithTicks(cmd, 10*time.Second, func() {
		fmt.Fprintf(progress, "  still building the homeserver: %s so far\n", time.Since(began).Round(time.Second))
	}); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("build homeserver: %w", context.Cause(ctx))
		}
		return fmt.Errorf("build homeserver: go build in %s: %w\n%s", source, err, lastLines(out.String(), 15))
	}
	for _, name := range []string{dendriteBin, keysBin} {
		if err := os.Rename(filepath.Join(temp, name), filepath.Join(binDir, name)); err != nil {
			return fmt.Errorf("build homeserver: %w", err)
		}
	}
	// The stamp is written last: without it the build does not count.
	if err := os.WriteFile(filepath.Join(binDir, stampFile), []byte(want+"\n"), 0o644); err != nil {
		return fmt.Errorf("build homeserver: %w", err)
	}
	fmt.Fprintf(progress, "The homeserver is built (%s).\n", time.Since(began).Round(time.Second))
	return nil
}

// runWithTicks runs cmd and calls tick at every interval until it ends.
func runWithTicks(cmd *exec.Cmd, interval time.Duration, tick func()) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	// go: waits for the process; the loop below waits for this goroutine.
	go func() { ended <- cmd.Wait() }()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-ticker.C:
			tick()
		}
	}
}

// stamp identifies the inputs of a build: the module's two files and the flags.
func stamp(source string) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(data))
		sum.Write(data)
	}
	fmt.Fprintln(sum, strings.Join(buildArgs, " "))
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func isBuilt(binDir, want string) bool {
	for _, name := range []string{dendriteBin, keysBin} {
		info, err := os.Stat(filepath.Join(binDir, name))
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			return false
		}
	}
	got, err := os.ReadFile(filepath.Join(binDir, stampFile))
	return err == nil && strings.TrimSpace(string(got)) == want
}

// waitForLock waits for an exclusive lock on a file. Closing the file or ending the process releases
// it.
func waitForLock(ctx context.Context, path string, progress io.Writer) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for told := false; ; told = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
		}
		if !told {
			fmt.Fprintln(progress, "Another process is building the homeserver; waiting for it.")
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// lastLines returns the last n lines of text, for error messages.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
