//go:build amd64 || arm64

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"

	"reverie/internal/test/process"
)

const canary = "canary-7f3e"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && filepath.Base(os.Args[0]) == "escape" {
		escape(os.Args[1:])
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "host" {
		host(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

func needsKernel(t *testing.T) {
	t.Helper()
	if err := Supported(); err != nil {
		t.Skip(err)
	}
}

// users returns who the cages are tried as. Only root can be another user.
func users() []int {
	if own := os.Getuid(); own != 0 {
		return []int{own}
	}
	return []int{0, 65534}
}

// host stands for the bot: it runs the specs that it reads, without what the kernel is said to lack.
func host(lacks string) {
	filter := seccomp.SyscallGroup{Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM)}
	switch lacks {
	case "namespaces": // as in a container
		filter.NamesWithCondtions = []seccomp.NameWithConditions{when("clone", at(0, seccomp.BitsSet, unix.CLONE_NEWPID|unix.CLONE_NEWUSER))}
	case "guard":
		filter.Action, filter.Names = seccomp.ActionErrno|seccomp.Action(unix.ENOSYS), []string{"landlock_create_ruleset"}
	case "calls":
		filter.Action, filter.Names = seccomp.ActionErrno|seccomp.Action(unix.ENOSYS), []string{"landlock_restrict_self"}
	}
	if lacks != "nothing" {
		if err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{filter}}}); err != nil {
			panic(err)
		}
	}
	in := json.NewDecoder(os.Stdin)
	for {
		var s Spec
		if in.Decode(&s) != nil {
			return
		}
		var a answer
		var err error
		if s.Command == "available" {
			a.Output, err = Available(context.Background(), s.Hidden...)
		} else {
			a.Result, err = Run(context.Background(), s)
		}
		if err != nil {
			a.Failed = err.Error()
		}
		_ = json.NewEncoder(os.Stdout).Encode(a)
	}
}

type answer struct {
	Result
	Failed string
}

// bot is a process that runs specs.
type bot struct {
	*exec.Cmd
	ask    *json.Encoder
	answer *json.Decoder
	dir    string // its data folder
}

// startHost starts a host as user, with a data folder, secrets and open sockets.
func startHost(t *testing.T, user int, lacks string) *bot {
	t.Helper()
	group := user
	if user == os.Getuid() {
		group = os.Getgid()
	}
	dir, err := os.MkdirTemp("", "sandboxtest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	b := &bot{dir: filepath.Join(dir, "data")}
	files := map[string]string{"data/bot.db": canary, "data/config.yaml": "password: " + canary, "data/work/other/secret.txt": canary, "home/.profile": "",
		"data/work/room/note.txt": "hello", "tmp/x": "", "bot": string(program), "data/work/room/escape": string(program), "data/work/room/call32": string(call32())}
	for path, text := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error { return os.Chown(path, user, group) })
	if err != nil {
		t.Fatal(err)
	}
	secret, err := os.Open(filepath.Join(b.dir, "bot.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { secret.Close() })
	if l, err := net.Listen("unix", "@sandbox-escape"); err == nil { // otherwise the test has one already
		t.Cleanup(func() { l.Close() })
	}
	b.Cmd = exec.Command(filepath.Join(dir, "bot"), "host", lacks)
	b.Env = []string{"CANARY=" + canary, "HOME=" + dir + "/home", "TMPDIR=" + dir + "/tmp"}
	b.ExtraFiles = []*os.File{secret, secret} // open in the host, and not closed on exec
	b.Stderr, b.Dir = os.Stderr, dir
	if user != os.Getuid() {
		b.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(group)}}
	}
	in, err := b.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := b.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = b.Process.Kill(); _ = b.Wait() })
	b.ask, b.answer = json.NewEncoder(in), json.NewDecoder(out)
	return b
}

func (b *bot) run(t *testing.T, s Spec) answer {
	t.Helper()
	if s.Command != "" {
		s.Command = strings.NewReplacer("{data}", b.dir, "{pid}", strconv.Itoa(b.Process.Pid), "{home}", filepath.Dir(b.dir)+"/home").Replace(s.Command)
		s.Dir, s.Hidden = filepath.Join(b.dir, "work/room"), []string{b.dir + "/bot.db"}
	}
	var a answer
	if err := errors.Join(b.ask.Encode(s), b.answer.Decode(&a)); err != nil {
		t.Fatal(err)
	}
	return a
}

// state describes what an escape may have changed.
func (b *bot) state(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, root := range []string{b.dir, filepath.Dir(b.dir) + "/home"} {
		_ = filepath.WalkDir(root, func(path string, d os.DirEntry, _ error) error {
			if path == filepath.Join(b.dir, "work/room") {
				return filepath.SkipDir
			}
			info, err := d.Info()
			if err != nil {
				t.Fatal(err)
			}
			s := info.Sys().(*syscall.Stat_t)
			fmt.Fprintln(&text, path, info.Mode(), info.Size(), info.ModTime(), s.Uid, s.Nlink)
			return nil
		})
	}
	return text.String()
}

// survivors lists processes that an attempt has left.
func survivors() []string { return process.Running("sleep 4711", "./escape") }

func TestNothingEscapes(t *testing.T) {
	needsKernel(t)
	for _, user := range users() {
		for _, lacks := range []string{"nothing", "namespaces"} {
			t.Run(fmt.Sprintf("user=%d/lacks=%s", user, lacks), func(t *testing.T) {
				b := startHost(t, user, lacks)
				before := b.state(t)
				if user == 0 && lacks == "namespaces" { // nothing bounds the number of root's processes
					if got := b.run(t, Spec{Command: "echo ran"}); got.Failed == "" || got.Output != "" {
						t.Errorf("ran as root without a process namespace: %+v", got)
					}
					return
				}
				level := b.run(t, Spec{Command: "available"})
				if level.Failed != "" || strings.Contains(level.Output, "namespace") == (lacks == "namespaces") {
					t.Errorf("the level is %q, error %q", level.Output, level.Failed)
				}
				for _, a := range attempts {
					if strings.Contains(a.name, "32 bits") && runtime.GOARCH != "amd64" {
						continue
					}
					s := Spec{Command: a.script, ReadOnly: a.readOnly, Time: time.Minute, Quota: 64 << 20} // a busy machine is slow
					if a.ends == TimeUp {
						s.Time = time.Second
					}
					got := b.run(t, s)
					switch {
					case got.Failed != "":
						t.Errorf("%s: did not run: %s", a.name, got.Failed)
					case strings.Contains(got.Output, "ESCAPED"), strings.Contains(got.Output, canary):
						t.Errorf("%s: escaped: %s", a.name, got.Output)
					case got.Ended != a.ends && !(a.dies && got.Ended == Finished && got.Code != 0):
						t.Errorf("%s: ended by %q, want %q (%d): %.300s", a.name, got.Ended, a.ends, got.Code, got.Output)
					case a.ends == Finished && !a.dies && !strings.Contains(got.Output, "TRIED"):
						t.Errorf("%s: was not tried (%d): %s", a.name, got.Code, got.Output)
					}
					if left := survivors(); len(left) > 0 {
						t.Errorf("%s: left behind: %v", a.name, left)
					}
					clean(t, b)
				}
				if after := b.state(t); after != before {
					t.Errorf("something outside changed:\n%s\nbefore:\n%s", after, before)
				}
				if left, _ := os.ReadDir(filepath.Dir(b.dir) + "/tmp"); len(left) > 1 {
					t.Errorf("temporary folders are left: %v", left)
				}
			})
		}
	}
	t.Logf("%d attempts, as users %v", len(attempts), users())
}

// clean removes what an attempt left in the work folder.
func clean(t *testing.T, b *bot) {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(b.dir, "work/room"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if n := f.Name(); n != "escape" && n != "call32" && n != "note.txt" {
			removeAll(filepath.Join(b.dir, "work/room", n))
		}
	}
}

// Without a guard nothing runs, whichever part is missing.
func TestNothingRunsUnguarded(t *testing.T) {
	needsKernel(t)
	for _, user := range users() {
		for _, lacks := range []string{"guard", "calls"} {
			b := startHost(t, user, lacks)
			for _, a := range attempts {
				if got := b.run(t, Spec{Command: a.script}); got.Failed == "" || got.Output != "" {
					t.Errorf("user %d without the %s: %s ran: %+v", user, lacks, a.name, got)
				}
			}
			if got := b.run(t, Spec{Command: "available"}); got.Failed == "" {
				t.Errorf("user %d without the %s: said to be available", user, lacks)
			}
		}
	}
}

// When the bot is killed, everything that a command started ends, and its temporary folder goes.
func TestKilledBotLeavesNothing(t *testing.T) {
	needsKernel(t)
	for _, lacks := range []string{"nothing", "namespaces"} {
		for _, user := range users() {
			if user == 0 && lacks == "namespaces" {
				continue // nothing runs, see TestNothingEscapes
			}
			b := startHost(t, user, lacks)
			script := "touch $TMPDIR/x; setsid sleep 4711 & (nohup sleep 4711 &) ; echo x > begun; sleep 4711"
			if err := b.ask.Encode(Spec{Command: script, Dir: filepath.Join(b.dir, "work/room"), Time: time.Minute}); err != nil {
				t.Fatal(err)
			}
			await(t, "the command begins", func() bool {
				_, err := os.Stat(filepath.Join(b.dir, "work/room/begun"))
				return err == nil && len(survivors()) >= 3
			})
			_ = b.Process.Kill()
			await(t, "all processes end", func() bool { return len(survivors()) == 0 })
			await(t, "the temporary folder goes", func() bool {
				left, _ := os.ReadDir(filepath.Dir(b.dir) + "/tmp")
				return len(left) == 1
			})
		}
	}
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: not within ten seconds; running: %v", what, survivors())
}

func TestWork(t *testing.T) {
	needsKernel(t)
	dir := t.TempDir()
	run := func(s Spec) Result {
		t.Helper()
		s.Dir = dir
		r, err := Run(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := run(Spec{Command: "echo one > a; cat a; echo two >&2; pwd; exit 3", Zone: "Asia/Tokyo"}); r.Code != 3 || r.Output != "one\ntwo\n"+dir+"\n" {
		t.Errorf("got %+v", r)
	}
	if r := run(Spec{Command: "cat a; echo x > $TMPDIR/x && cat $TMPDIR/x; date +%Z; echo $HOME", Zone: "Asia/Tokyo"}); r.Output != "one\nx\nJST\n"+dir+"\n" {
		t.Errorf("got %+v", r)
	}
	if r := run(Spec{Command: "seq 100000"}); len(r.Output) > maxOutput+100 || !strings.HasPrefix(r.Output, "1\n2\n") ||
		!strings.HasSuffix(r.Output, "\n100000\n") || !strings.Contains(r.Output, "bytes left out here") {
		t.Errorf("got %d bytes", len(r.Output))
	}
	in, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(write, "asked")
	write.Close()
	var out, failed Output
	more := t.TempDir()
	if err := os.WriteFile(more+"/tool", []byte("#!/bin/sh\necho tool $KEY $HOME"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r := run(Spec{Command: "cat; echo no >&2; tool; echo x > " + more + "/y", Input: in, Output: &out, Errors: &failed, Folders: []string{more},
		Environment: map[string]string{"KEY": "secret", "PATH": more + ":/usr/bin:/bin"}}); r.Output != "" || out.String() != "asked\ntool secret "+dir+"\n" ||
		!strings.HasPrefix(failed.String(), "no\n") || !strings.Contains(failed.String(), "Permission denied") {
		t.Errorf("got %+v, output %s, errors %s", r, out.String(), failed.String())
	}
	if r := run(Spec{Command: "cat " + more + "/tool"}); r.Code == 0 {
		t.Errorf("read a folder of another: %+v", r)
	}
	if r := run(Spec{Command: "kill -9 $$"}); r.Code != 137 || r.Ended != Finished {
		t.Errorf("got %+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	if _, err := Run(ctx, Spec{Command: "setsid sleep 4711", Dir: dir}); !errors.Is(err, context.Canceled) || len(survivors()) > 0 {
		t.Errorf("error %v, running %v", err, survivors())
	}
}

func TestNetworkWhereAllowed(t *testing.T) {
	needsKernel(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		text, _ := io.ReadAll(c)
		got <- string(text)
	}()
	if _, err := exec.LookPath("/usr/bin/perl"); err != nil {
		t.Skip("needs perl")
	}
	script := fmt.Sprintf(`perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new("%s") or die "no: $!"; print $s "hello"'
		perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) and print "UNIX"'`, l.Addr())
	for _, network := range []bool{false, true} {
		r, err := Run(t.Context(), Spec{Command: script, Dir: t.TempDir(), Network: network})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(r.Output, "no:") == network || strings.Contains(r.Output, "UNIX") {
			t.Errorf("network %t: %+v", network, r)
		}
	}
	if text := <-got; text != "hello" {
		t.Errorf("got %q", text)
	}
}

func TestHiddenBelowPrograms(t *testing.T) {
	needsKernel(t)
	dir := t.TempDir()
	for _, hidden := range []string{"/usr/share", "/bin", dir, dir + "/config.yaml"} {
		if _, err := Run(t.Context(), Spec{Command: "true", Dir: dir, Hidden: []string{hidden}}); err == nil {
			t.Errorf("%s could be read", hidden)
		}
	}
	for _, folder := range []string{"/", filepath.Dir(dir), dir, dir + "/work"} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), Spec{Command: "true", Dir: t.TempDir(), Folders: []string{folder}, Hidden: []string{dir}}); err == nil {
			t.Errorf("%s was allowed", folder)
		}
	}
}
