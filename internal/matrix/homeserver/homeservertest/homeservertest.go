// Package homeservertest starts real homeservers in tests.
package homeservertest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"reverie/internal/matrix/homeserver"
)

// Start builds the homeserver if needed, starts one with an empty folder, and stops it at the end of
// the test. Without a go command the test is skipped.
func Start(t testing.TB) *homeserver.Server {
	t.Helper()
	server, err := homeserver.Start(t.Context(), homeserver.Config{BinDir: Build(t), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// Build builds the homeserver's programs and returns their folder, which all tests share. Without a
// go command the test is skipped.
func Build(t testing.TB) (binDir string) {
	t.Helper()
	repo := Repo(t)
	binDir = filepath.Join(repo, "bin", "homeserver")
	err := homeserver.Build(t.Context(), repo, binDir, os.Stderr)
	if errors.Is(err, homeserver.ErrNoGo) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return binDir
}

// Repo returns the root folder of the running test's repository.
func Repo(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "test", "homeserver", "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("not inside the repository: no folder above has test/homeserver/go.mod")
		}
		dir = parent
	}
}
