package test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"reverie/internal/test/expect"
)

// TestServiceTellsSystemd: systemd hears that the service is ready after the first sync, that it is alive,
// also while the homeserver is away, and that it stops.
func TestServiceTellsSystemd(t *testing.T) {
	w := newWorld(t)
	socket := filepath.Join(t.TempDir(), "notify")
	conn := expect.Must(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"}))(t)
	defer conn.Close()
	hear := func(want string) {
		t.Helper()
		expect.OK(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		for b := make([]byte, 100); ; {
			n, err := conn.Read(b)
			if err != nil {
				t.Fatalf("%s was not heard: %v", want, err)
			}
			if string(b[:n]) == want {
				return
			}
		}
	}
	t.Setenv("NOTIFY_SOCKET", socket)
	p := w.bot(t, "reverie", newModel(t), "@me:"+w.home.Name)
	hear("READY=1")
	if !strings.Contains(p.log.String(), "first sync done") {
		t.Error("ready before the first sync")
	}
	hear("WATCHDOG=1")
	expect.OK(t, w.home.Stop())
	hear("WATCHDOG=1")
	hear("WATCHDOG=1")
	expect.OK(t, p.cmd.Process.Signal(syscall.SIGTERM))
	hear("STOPPING=1")
}

// TestUnitIsConfined: the service has few rights.
func TestUnitIsConfined(t *testing.T) {
	needs(t, "systemd-analyze")
	out := runs(t, "systemd-analyze", "security", "--offline=true", "../deploy/reverie.service")
	found := regexp.MustCompile(`Overall exposure level for reverie\.service: ([0-9.]+)`).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("no exposure level:\n%s", out)
	}
	if exposure := expect.Must(strconv.ParseFloat(found[1], 64))(t); exposure > 2 {
		t.Errorf("the exposure level is %.1f, want 2.0 at most:\n%s", exposure, out)
	}
}

// TestPackages: a .deb and an .rpm hold the program and what belongs to it, and the same files give the same bytes.
func TestPackages(t *testing.T) {
	nfpm := expect.Must(filepath.Abs("../bin/tools/nfpm"))(t)
	needs(t, nfpm)
	program, dir := buildBot(t), t.TempDir()
	t.Setenv("PROGRAM", program)
	t.Setenv("ARCH", "amd64")
	t.Setenv("VERSION", "1.2.3")
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	pack := func(kind, file string) string {
		t.Helper()
		path := filepath.Join(dir, file)
		cmd := exec.CommandContext(t.Context(), nfpm, "package", "--config", "deploy/nfpm.yaml", "--packager", kind, "--target", path)
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return path
	}
	want := []string{"/etc/reverie/environment", "/usr/bin/reverie", "/usr/lib/reverie/reverie", "/usr/lib/systemd/system/reverie.service",
		"/usr/share/bash-completion/completions/reverie", "/usr/share/doc/reverie/manual.md", "/usr/share/fish/vendor_completions.d/reverie.fish",
		"/usr/share/man/man1/reverie.1"}
	t.Run("deb", func(t *testing.T) {
		needs(t, "dpkg-deb")
		deb := pack("deb", "reverie.deb")
		again := pack("deb", "again.deb")
		if string(expect.Must(os.ReadFile(deb))(t)) != string(expect.Must(os.ReadFile(again))(t)) {
			t.Error("two packages of the same files differ")
		}
		root := filepath.Join(dir, "root")
		expect.OK(t, os.Mkdir(root, 0o700))
		runs(t, "dpkg-deb", "-x", deb, root)
		for _, path := range append(want, "/usr/share/zsh/vendor-completions/_reverie") {
			info, err := os.Lstat(filepath.Join(root, path))
			if err != nil {
				t.Error(err)
				continue
			}
			mode := os.FileMode(0o644)
			switch {
			case path == "/etc/reverie/environment":
				mode = 0o600
			case strings.HasSuffix(path, "bin/reverie"), strings.HasSuffix(path, "lib/reverie/reverie"):
				mode = 0o755
			}
			expect.Equal(t, info.Mode(), mode, path)
		}
		listing := runs(t, "dpkg-deb", "-c", deb)
		if !regexp.MustCompile(`(?m)^drwxr-x--- root/root .* \./etc/reverie/$`).MatchString(listing) {
			t.Errorf("/etc/reverie is open to others:\n%s", listing)
		}
		expect.Has(t, runs(t, "dpkg-deb", "-f", deb, "Version", "Recommends"), "1.2.3-1", "poppler-utils")
		expect.Has(t, runs(t, filepath.Join(root, "usr/lib/reverie/reverie"), "version"), "Reverie ")
		out, err := exec.CommandContext(t.Context(), filepath.Join(root, "usr/lib/reverie/reverie"), "memry").CombinedOutput()
		if err == nil {
			t.Error("an unknown command succeeded")
		}
		expect.Has(t, string(out), "reverie: unknown command memry", "Try `reverie help`.")
	})
	t.Run("rpm", func(t *testing.T) {
		needs(t, "rpm")
		rpm := pack("rpm", "reverie.rpm")
		listing := runs(t, "rpm", "-qpl", "--scripts", rpm)
		expect.Has(t, listing, append(want, "/usr/share/zsh/site-functions/_reverie", "useradd --system")...)
	})
	t.Run("scripts", func(t *testing.T) {
		for _, script := range []string{"reverie", "postinstall.sh", "preremove.sh", "postremove.sh"} {
			runs(t, "sh", "-n", "../deploy/"+script)
		}
	})
}

// needs skips the test if a program is not there.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed", filepath.Base(program))
	}
}

// runs runs a program, which must succeed, and returns what it prints.
func runs(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}
