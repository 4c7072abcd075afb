package vram

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"reverie/internal/test/expect"
)

// bench is a prober whose tool and clock the test controls.
type bench struct {
	*Prober
	now   time.Time
	calls int
	reply func(ctx context.Context) (output, error)
}

func newBench(config Config) *bench {
	b := &bench{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	config.goos, config.root, config.deadline, config.Log = "linux", fstest.MapFS{}, time.Minute, slog.New(slog.DiscardHandler)
	config.now = func() time.Time { return b.now }
	config.find = func() (string, bool) { return "/usr/bin/nvidia-smi", true }
	config.run = func(ctx context.Context, _ string, _, _ []string) (output, error) {
		b.calls++
		return b.reply(ctx)
	}
	b.reply = func(context.Context) (output, error) { return output{text: []byte(goodRow)}, nil }
	b.Prober = New(config)
	return b
}

func (b *bench) want(t *testing.T, state State, calls int) Report {
	t.Helper()
	r := b.Probe(t.Context())
	if r.State != state || b.calls != calls {
		t.Fatalf("got %v after %d calls; want %v after %d (%s)", r.State, b.calls, state, calls, r.Reason)
	}
	return r
}

func TestNotAskedYet(t *testing.T) {
	b := newBench(Config{})
	if r := b.Last(); r.State != Unknown || r.Reason != "not asked yet" || r.Devices == nil || r.Steps == nil || b.calls != 0 {
		t.Fatalf("before the first asking: %+v", r)
	}
	b.want(t, Known, 1)
}

// A timeout keeps the previous report; any answer replaces it.
func TestSilenceKeepsWhatIsKnown(t *testing.T) {
	b := newBench(Config{})
	b.want(t, Known, 1)
	b.reply = func(context.Context) (output, error) { return output{code: -1}, errNoAnswer }
	b.now = b.now.Add(time.Hour)
	r := b.want(t, Known, 2)
	if r.Total != 24564<<20 || !strings.Contains(strings.Join(r.Steps, "\n"), "no answer in time") {
		t.Errorf("total %d, steps %q", r.Total, r.Steps)
	}
	b.reply = func(context.Context) (output, error) { return output{text: []byte("mismatch"), code: 18}, nil }
	b.now = b.now.Add(time.Hour)
	b.want(t, Unknown, 3)
}

// A probe cancelled by its caller changes nothing.
func TestBrokenOff(t *testing.T) {
	b := newBench(Config{})
	ctx, cancel := context.WithCancel(t.Context())
	b.reply = func(ctx context.Context) (output, error) {
		cancel()
		<-ctx.Done()
		return output{code: -1}, errNoAnswer
	}
	if r := b.Probe(ctx); r.Reason != "not asked yet" || b.Last().Reason != "not asked yet" {
		t.Errorf("%+v", r)
	}
}

func TestConfigured(t *testing.T) {
	b := newBench(Config{Size: 16 << 30})
	if r := b.want(t, Known, 0); r.Total != 16<<30 {
		t.Errorf("configured 16 GiB: %+v", r)
	}
	b = newBench(Config{Off: true, Size: 16 << 30})
	if r := b.want(t, Unknown, 0); !strings.Contains(r.Reason, "switched off") {
		t.Errorf("switched off: %s", r.Reason)
	}
}

// unreadable denies access to the files that it names.
type unreadable struct {
	fs.FS
	name string
}

func (u unreadable) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, u.name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.FS.Open(name)
}

func TestUnreadable(t *testing.T) {
	card, _ := load(t, "testdata/machines/amd-7900xtx.txtar")
	inside, _ := load(t, "testdata/machines/amd-strix-halo.txtar")
	for _, c := range []struct {
		machine machine
		name    string
		state   State
	}{
		{card, "nothing at all", Known},
		{card, "mem_info_vram_total", Unknown},
		{card, "vendor", Unknown},
		{card, "product_name", Known},
		{card, "class", Unknown},
		{inside, "mem_info_gtt_total", Known},
	} {
		p := c.machine.prober()
		devices, err := fs.Glob(c.machine.root, "sys/bus/pci/devices/*/vendor")
		if err != nil || len(devices) != 1 {
			t.Fatalf("%q, %v", devices, err)
		}
		p.config.root = unreadable{c.machine.root, filepath.Join(filepath.Dir(devices[0]), c.name)}
		if r := p.Probe(t.Context()); r.State != c.state {
			t.Errorf("%s unreadable: %v; want %v (%s)", c.name, r.State, c.state, r.Reason)
		}
	}
}

// A program in the working directory is not used as nvidia-smi.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(dir, "nvidia-smi"), nil, 0o755))
	t.Setenv("PATH", dir)
	if path, ok := findSMI(); !ok || path != filepath.Join(dir, "nvidia-smi") {
		t.Errorf("%q, %v", path, ok)
	}
	t.Chdir(dir)
	for _, path := range []string{".", ""} {
		t.Setenv("PATH", path)
		if path, ok := findSMI(); ok && !filepath.IsAbs(path) {
			t.Errorf("%q", path)
		}
	}
}

// The whole path with real processes, none of which outlives the deadline.
func TestProbeWithRealTools(t *testing.T) {
	cases := []struct {
		name, body string
		state      State
		reason     string
	}{
		{"good", "printf '" + goodRow + "'", Known, "RTX 4090 with 24564 MiB"},
		{"status 18", "echo 'Driver/library version mismatch'; exit 18", Unknown, "status 18"},
		{"on stderr", "echo 'cannot open shared object' >&2; exit 127", Unknown, "cannot open shared object"},
		{"garbage", "head -c 2000 /dev/urandom; exit 0", Unknown, "and said"},
		{"2 MiB of garbage", "head -c 2097152 /dev/zero | tr '\\0' x", Unknown, "and said"},
		{"2 MiB after the table", "printf '" + goodRow + "'; head -c 2097152 /dev/zero | tr '\\0' x", Known, "RTX 4090"},
		{"a grandchild holds the pipe", "printf '" + goodRow + "'; sleep 20 &", Known, "RTX 4090"},
		{"hangs", "printf '" + goodRow + "'; echo $$ >PID; exec sleep 600", Unknown, "no answer in time"},
		{"ignores SIGTERM", "trap '' TERM; echo $$ >PID; while :; do sleep 1; done", Unknown, "no answer in time"},
		{"writes for ever", "echo $$ >PID; exec yes", Unknown, "no answer in time"},
		{"nothing, and a bad status", "exit 3", Unknown, "status 3 and said: nothing"},
		{"nothing", "exit 0", Unknown, "no GPU"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			deadline, hangs := 30*time.Second, strings.Contains(c.body, "PID")
			if hangs {
				deadline = time.Second
			}
			pid := filepath.Join(t.TempDir(), "pid")
			tool := fake(t, strings.ReplaceAll(c.body, "PID", pid))
			p := newBench(Config{}).Prober
			p.config.find, p.config.run, p.config.deadline = func() (string, bool) { return tool, true }, runTool, deadline
			r := p.Probe(t.Context())
			if hangs {
				gone(t, pid)
			}
			if r.State != c.state || !strings.Contains(r.Reason, c.reason) {
				t.Errorf("got %v: %s\nwant %v: …%s…", r.State, r.Reason, c.state, c.reason)
			}
			invariants(t, r)
		})
	}
}

const goodRow = "0, 24564, NVIDIA GeForce RTX 4090\n"

// fake writes a shell script in place of nvidia-smi.
func fake(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nvidia-smi")
	// A process of another test, forked while the file is open for writing, would block its
	// execution.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	expect.OK(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755))
	return path
}

// gone waits until the process whose id is in file has ended.
func gone(t *testing.T, file string) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		raw, _ := os.ReadFile(file)
		id, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		if err == nil && (syscall.Kill(id, 0) != nil || zombie(id)) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("process %q still lives", strings.TrimSpace(string(raw)))
		}
	}
}

// zombie reports an ended process that was not waited for; a grandchild becomes one if process 1
// does not reap it.
func zombie(id int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	_, rest, _ := strings.Cut(string(raw), ") ")
	return err != nil || strings.HasPrefix(rest, "Z")
}

func TestToolThatIsNone(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "nvidia-smi")
	expect.OK(t, os.WriteFile(plain, []byte("no program"), 0o644))
	for _, path := range []string{plain, filepath.Join(dir, "absent"), dir} {
		if _, err := runTool(t.Context(), path, nil, nil); err == nil || errors.Is(err, errNoAnswer) {
			t.Errorf("%s: error %v, want one that says why it cannot be run", path, err)
		}
	}
}

// Tools get nothing of this process's environment.
func TestToolSeesNoSecrets(t *testing.T) {
	t.Setenv("REVERIE_SECRET", "hunter2")
	out := expect.Must(runTool(t.Context(), fake(t, "env"), nil, toolEnvironment("/usr/local/nvidia/bin/nvidia-smi")))(t)
	for _, want := range []string{"LC_ALL=C\n", "LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/nvidia/lib\n"} {
		if !strings.Contains(string(out.text), want) {
			t.Errorf("the tool does not see %q:\n%s", want, out.text)
		}
	}
	if strings.Contains(string(out.text), "hunter2") {
		t.Errorf("the tool sees a secret:\n%s", out.text)
	}
}

// On a machine with an NVIDIA GPU (GPU_E2E=1) the report equals nvidia-smi's own answer.
func TestOnThisMachine(t *testing.T) {
	if os.Getenv("GPU_E2E") != "1" {
		t.Skip("GPU_E2E=1 asks the GPU of this machine")
	}
	p := New(Config{})
	p.config.deadline = 30 * time.Second // the first call wakes the GPU, which can take long
	r := p.Probe(t.Context())
	t.Logf("%v: %s\n%s", r.State, r.Reason, strings.Join(r.Steps, "\n"))
	if r.State != Known {
		t.Fatalf("want a GPU: %+v", r)
	}
	invariants(t, r)
	tool, ok := findSMI()
	if !ok {
		t.Fatal("nvidia-smi is not found")
	}
	out := expect.Must(runTool(t.Context(), tool, []string{"--query-gpu=memory.total", "--format=csv,noheader,nounits"}, toolEnvironment(tool)))(t)
	t.Logf("nvidia-smi by itself: %q", out.text)
	var total uint64
	for line := range strings.Lines(string(out.text)) {
		mib := expect.Must(strconv.ParseUint(strings.TrimSpace(line), 10, 64))(t)
		total += mib << 20
	}
	if difference := max(r.Total, total) - min(r.Total, total); difference > total/100 {
		t.Errorf("%s found, nvidia-smi says %s", Size(r.Total), Size(total))
	}
}
