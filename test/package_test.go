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
	dir := t.TempDir()
	t.Setenv("PROGRAM", buildBot(t))
	t.Setenv("ARCH", "amd64")
	t.Setenv("VERSION", "1.2.3")
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	pack := func(file string) string {
		t.Helper()
		path := filepath.Join(dir, file)
		kind := filepath.Ext(file)[1:]
		cmd := exec.CommandContext(t.Context(), nfpm, "package", "--config", "deploy/nfpm.yaml", "--packager", kind, "--target", path)
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return path
	}
	deb, rpm := pack("reverie.deb"), pack("reverie.rpm")
	want := []string{"/etc/reverie/environment", "/usr/bin/reverie", "/usr/libexec/reverie", "/usr/lib/systemd/system/reverie.service",
		"/usr/share/bash-completion/completions/reverie", "/usr/share/doc/reverie/manual.md", "/usr/share/fish/vendor_completions.d/reverie.fish",
		"/usr/share/man/man1/reverie.1"}
	t.Run("deb", func(t *testing.T) {
		needs(t, "dpkg-deb")
		again := pack("again.deb")
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
			case path == "/usr/bin/reverie", path == "/usr/libexec/reverie":
				mode = 0o755
			}
			expect.Equal(t, info.Mode(), mode, path)
		}
		listing := runs(t, "dpkg-deb", "-c", deb)
		if !regexp.MustCompile(`(?m)^drwxr-x--- root/root .* \./etc/reverie/$`).MatchString(listing) {
			t.Errorf("/etc/reverie is open to others:\n%s", listing)
		}
		expect.Has(t, runs(t, "dpkg-deb", "-f", deb, "Version", "Recommends"), "1.2.3-1", "poppler-utils")
		expect.Has(t, runs(t, filepath.Join(root, "usr/libexec/reverie"), "version"), "Reverie ")
		out, err := exec.CommandContext(t.Context(), filepath.Join(root, "usr/libexec/reverie"), "memry").CombinedOutput()
		if err == nil {
			t.Error("an unknown command succeeded")
		}
		expect.Has(t, string(out), "reverie: unknown command memry", "Try `reverie help`.")
	})
	t.Run("rpm", func(t *testing.T) {
		needs(t, "rpm")
		listing := runs(t, "rpm", "-qpl", "--scripts", rpm)
		expect.Has(t, listing, append(want, "/usr/share/zsh/site-functions/_reverie", "useradd --system")...)
		flags := runs(t, "rpm", "-qp", "--qf", "[%{filenames} %{fileflags:fflags}\n]", rpm)
		expect.Has(t, flags, "/etc/reverie/environment cn\n") // config, noreplace
	})
	t.Run("installed", func(t *testing.T) {
		files := map[string]string{}
		for file, commands := range map[string][2]string{
			deb: {"dpkg --root=ROOT --force-depends -i", "dpkg --root=ROOT -r"},
			rpm: {"rpm --root=ROOT --dbpath=/var/lib/rpm --nodeps -U", "rpm --root=ROOT --dbpath=/var/lib/rpm -e"},
		} {
			t.Run(filepath.Ext(file), func(t *testing.T) { files[file] = lifeOfPackage(t, pack, file, commands[0], commands[1]) })
		}
		if len(files) == 2 {
			expect.Equal(t, strings.ReplaceAll(files[rpm], "zsh/site-functions", "zsh/vendor-completions"), files[deb], ".rpm and .deb")
		}
	})
	t.Run("scripts", func(t *testing.T) {
		for _, script := range []string{"reverie", "postinstall.sh", "preremove.sh", "postremove.sh"} {
			runs(t, "sh", "-n", "../deploy/"+script)
		}
	})
}

// lifeOfPackage installs, upgrades and removes a package in a root of its own. It returns the installed files with modes and owners.
func lifeOfPackage(t *testing.T, pack func(string) string, file, install, remove string) (files string) {
	needs(t, strings.Fields(install)[0])
	root := newRoot(t)
	do := func(command, arg string) {
		t.Helper()
		args := append(strings.Fields(strings.ReplaceAll(command, "ROOT", root)), arg)
		runs(t, args[0], args[1:]...)
	}
	inside := func(args ...string) string { t.Helper(); return runs(t, "chroot", append([]string{root}, args...)...) }
	write := func(path, text string) { expect.OK(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o755)) }
	do(install, file)
	files = inside("sh", "-c", "find etc/reverie usr var/lib/reverie -printf '%p %M %u %g\\n' | sort")
	expect.Has(t, files, "etc/reverie drwxr-x--- root reverie\n", "etc/reverie/environment -rw------- root root\n",
		"usr/libexec/reverie -rwxr-xr-x root root\n", "var/lib/reverie drwx------ reverie reverie\n")
	expect.Has(t, inside("reverie", "version"), "Reverie ")
	expect.Equal(t, inside("cat", "systemctl.log"), "daemon-reload\ntry-restart reverie.service\n")

	// The next version's program is a script.
	write("next", "#!/bin/sh\necho the next version\n")
	t.Setenv("PROGRAM", filepath.Join(root, "next"))
	t.Setenv("VERSION", "1.2.4")
	write("etc/reverie/environment", "KEY=secret\n")
	write("etc/reverie/config.yaml", "language: en\n")
	write("var/lib/reverie/bot.db", "memories\n")
	do(install, pack("next"+filepath.Ext(file)))
	expect.Equal(t, inside("reverie", "version"), "the next version\n")
	expect.Equal(t, inside("cat", "etc/reverie/environment"), "KEY=secret\n")
	expect.Lacks(t, inside("cat", "systemctl.log"), "disable")

	do(remove, "reverie")
	expect.Has(t, inside("cat", "systemctl.log"), "disable --now reverie.service\n")
	expect.Equal(t, inside("find", ".", "-path", "./usr/*", "-type", "f"), "")
	left := inside("sh", "-c", "cat etc/reverie/environment* etc/reverie/config.yaml var/lib/reverie/bot.db")
	expect.Equal(t, left, "KEY=secret\nlanguage: en\nmemories\n")
	return files
}

// newRoot returns a folder to install packages in. It has what their scripts need, and a systemctl that only logs its arguments.
func newRoot(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root installs packages")
	}
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/usr/bin:/sbin:/bin") // also of what runs in the root
	root := t.TempDir()
	runs(t, "sh", "-ec", `cd "$0"; mkdir -p bin dev etc run/systemd/system var/lib/dpkg/info var/lib/dpkg/updates
		programs=$(for p in cat chgrp find getent groupadd id install setpriv sh sort useradd; do command -v $p; done)
		cp -L $programs bin; cp -L --parents $(ldd $programs "$PROGRAM" | grep -o ' /[^ ]*\|^\s/lib[^ ]*') .
		echo root:x:0:0::/:/bin/sh > etc/passwd; echo root:x:0: > etc/group; touch var/lib/dpkg/status
		printf '#!/bin/sh\necho "$*" >> /systemctl.log\n' > bin/systemctl; chmod +x bin/systemctl; install -m 666 /dev/null dev/null`, root)
	return root
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
