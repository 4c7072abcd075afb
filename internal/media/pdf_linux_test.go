package media

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"reverie/internal/test/expect"
)

// instead replaces pdftotext by a shell script.
func instead(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(dir, pdfProgram), []byte("#!/bin/sh\n"+script), 0o700))
	t.Setenv("PATH", dir)
}

// TestConfinedPDF: the PDF reader has its limits and an empty environment. With Landlock it opens
// no file of the bot, writes none, and sends no signals.
func TestConfinedPDF(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "bot.db")
	expect.OK(t, os.WriteFile(secret, []byte("secret\n"), 0o600))
	t.Setenv("REVERIE_SECRET", "secret")
	instead(t, fmt.Sprintf(`while read -r line; do :; done
echo "limits $(ulimit -v) $(ulimit -t) $(ulimit -f) $(ulimit -c) $(ulimit -n)"
echo "variable ${REVERIE_SECRET:-none}"
echo "folder $(pwd)"
{ read -r line < %[1]s; } 2>/dev/null && echo "file $line"
{ : > %[1]s.new; } 2>/dev/null && echo "written"
kill -0 %[2]d 2>/dev/null && echo "signalled"
echo end`, secret, os.Getpid()))
	want := "limits 262144 10 0 0 32\nvariable none\nfolder /\n"
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno != 0 {
		want += "file secret\nwritten\nsignalled\n"
	}
	if text, err := pdfText(t.Context(), []byte("%PDF-1.7\n")); text != want+"end\n" || err != nil {
		t.Errorf("%q instead of %q, %v", text, want, err)
	}
	if read, err := os.ReadFile(secret); string(read) != "secret\n" || err != nil {
		t.Errorf("this process reads its own file as %q, %v", read, err)
	}
}

// TestPDFEnds: an endless writer is killed and its output used; the limits and the file's faults
// each have a reason.
func TestPDFEnds(t *testing.T) {
	instead(t, `while echo "on and on and on and on and on and on and on and on and on and on"; do :; done`)
	expect.Equal(t, len(expect.Must(pdfText(t.Context(), []byte("%PDF-1.7\n")))(t)), maxText, "bytes")
	for script, want := range map[string]error{
		`kill -9 $$`: errLimits, `echo "Out of memory" >&2; exit 1`: errLimits, `exit 1`: errPDF, `echo text; kill -9 $$`: nil,
		`echo "Command Line Error: Incorrect password" >&2; exit 1`: errLocked, strings.Repeat(" ", 10) + `exit 0`: nil,
	} {
		instead(t, script)
		if _, err := pdfText(t.Context(), []byte("%PDF-1.7\n")); !errors.Is(err, want) {
			t.Errorf("%s: %v", script, err)
		}
	}
}
