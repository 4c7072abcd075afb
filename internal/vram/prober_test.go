package vram

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"
)

// noGPU is a machine that shows a PCI bus without GPUs.
var noGPU = fstest.MapFS{"sys/bus/pci/devices/0000:00:00.0/class": {Data: []byte("0x060000\n")}}

// bench is a prober whose tool and clock belong to the test.
type bench struct {
	*Prober
	mu    sync.Mutex
	now   time.Time
	calls atomic.Int32
	reply func(ctx context.Context) (output, error)
}

// inPath is what exec.LookPath says.
func inPath(path string, err error) func(string) (string, error) {
	return func(string) (string, error) { return path, err }
}

func newBench(t *testing.T, config Config) *bench {
	t.Helper()
	b := &bench{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	config.Now = func() time.Time {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.now
	}
	config.GOOS, config.LookPath, config.Log = "linux", inPath("/usr/bin/nvidia-smi", nil), slog.New(slog.DiscardHandler)
	if config.Root == nil {
		config.Root = noGPU
	}
	b.Prober = New(config)
	t.Cleanup(b.Close)
	b.good()
	b.run = func(ctx context.Context, _ string, _, _ []string) (output, error) {
		b.calls.Add(1)
		b.mu.Lock()
		reply := b.reply
		b.mu.Unlock()
		return reply(ctx)
	}
	return b
}

func (b *bench) answers(reply func(context.Context) (output, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reply = reply
}

func (b *bench) good() {
	b.answers(func(context.Context) (output, error) { return output{text: []byte(goodRow)}, nil })
}

func (b *bench) hang() {
	b.answers(func(context.Context) (output, error) { return output{code: -1}, errSilent })
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func (b *bench) want(t *testing.T, state State, calls int32) Report {
	t.Helper()
	r := b.Probe(t.Context())
	if r.State != state || b.calls.Load() != calls {
		t.Fatalf("got %v after %d calls; want %v after %d (%s)", r.State, b.calls.Load(), state, calls, r.Reason)
	}
	return r
}

func TestAnswerHolds(t *testing.T) {
	b := newBench(t, Config{})
	if r := b.Last(); r.State != Unknown || r.Reason != "not asked yet" || r.Devices == nil || r.Steps == nil || b.calls.Load() != 0 {
		t.Fatalf("before the first asking: %+v", r)
	}
	b.want(t, Known, 1)
	b.pass(59 * time.Second)
	b.want(t, Known, 1)
	b.pass(time.Second)
	b.want(t, Known, 2)
	b.pass(-time.Hour) // the clock was set back: the answer is as good as none
	b.want(t, Known, 3)
}

func TestManyAskAtOnce(t *testing.T) {
	b := newBench(t, Config{})
	release := make(chan struct{})
	b.answers(func(context.Context) (output, error) {
		<-release
		return output{text: []byte(goodRow)}, nil
	})
	reports := make(chan Report, 100)
	for range cap(reports) {
		go func() { reports <- b.Probe(context.Background()) }()
	}
	close(release)
	for range cap(reports) {
		if r := <-reports; r.State != Known {
			t.Errorf("one of many gets %v: %s", r.State, r.Reason)
		}
	}
	if n := b.calls.Load(); n != 1 {
		t.Errorf("%d calls for one answer", n)
	}
}

func (b *bench) settled(t *testing.T) {
	t.Helper()
	b.Prober.mu.Lock()
	round := b.round
	b.Prober.mu.Unlock()
	if round == nil {
		return
	}
	select {
	case <-round:
	case <-time.After(20 * time.Second):
		t.Fatal("the asking does not end")
	}
}

// Silence tells nothing new; an answer does, whatever it is.
func TestSilenceKeepsWhatIsKnown(t *testing.T) {
	b := newBench(t, Config{})
	b.want(t, Known, 1)
	b.hang()
	b.pass(time.Hour)
	r := b.want(t, Known, 2)
	if r.Total != 24564<<20 || !strings.Contains(strings.Join(r.Steps, "\n"), "no answer in time") {
		t.Errorf("total %d, steps %q", r.Total, r.Steps)
	}
	b.answers(func(context.Context) (output, error) { return output{text: []byte("mismatch"), code: 18}, nil })
	b.want(t, Unknown, 3)
}

func TestClose(t *testing.T) {
	b := newBench(t, Config{})
	started := make(chan struct{})
	b.answers(func(ctx context.Context) (output, error) {
		close(started)
		<-ctx.Done()
		return output{code: -1}, errSilent
	})
	b.ask()
	<-started
	b.Close()
	b.settled(t)
	if r := b.Probe(t.Context()); r.State != Unknown || b.calls.Load() != 1 {
		t.Errorf("after the end: %v, %d calls", r.State, b.calls.Load())
	}
}

func TestConfigured(t *testing.T) {
	b := newBench(t, Config{Size: 16 << 30})
	if r := b.want(t, Known, 0); r.Total != 16<<30 || r.FreeKnown {
		t.Errorf("configured 16 GiB: %+v", r)
	}
	b = newBench(t, Config{Off: true, Size: 16 << 30})
	if r := b.want(t, Unknown, 0); !strings.Contains(r.Reason, "switched off") {
		t.Errorf("switched off: %s", r.Reason)
	}
}

// stuck is a file system one file of which never opens, as those of a driver
// that hangs.
type stuck struct {
	fs.FS
	until chan struct{}
}

func (s stuck) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, "sys/class/drm") {
		<-s.until
	}
	return s.FS.Open(name)
}

// Nobody is held by them: neither a caller that does not want to wait, nor one that does.
// The answer comes all the same.
func TestFilesThatHang(t *testing.T) {
	t.Parallel()
	root := stuck{noGPU, make(chan struct{})}
	b := newBench(t, Config{Root: root, Deadline: time.Millisecond})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{ended, context.Background()} {
		if r := b.Probe(ctx); r.State != Unknown || r.Reason != "asked, and no answer yet" {
			t.Errorf("got %v: %s", r.State, r.Reason)
		}
	}
	first := b.round
	for range 10 {
		b.ask()
	}
	if b.round != first || first == nil {
		t.Error("a second asking began beside one that hangs")
	}
	close(root.until)
	b.settled(t)
	b.want(t, Known, 1)
}

// unreadable lets nobody read what it names.
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
	m, _ := load(t, "testdata/machines/amd-7900xtx.txtar")
	const device = "sys/class/drm/card1/device/"
	card := m.root
	cases := []struct {
		root  fs.FS
		name  string
		state State
		free  bool
	}{
		{card, "nothing at all", Known, true},
		{card, device + "mem_info_vram_used", Known, false},
		{card, device + "mem_info_vram_total", Unknown, false},
		{card, device + "vendor", Unknown, false},
		{card, device + "product_name", Known, true},
		{card, device, Known, true},      // the PCI bus lists it too
		{card, "sys/class", Known, true}, // the PCI bus lists it too
		{card, "sys/bus", Known, true},
		{card, "sys", Unknown, false},
		{card, "proc", Known, true},
		{noGPU, "sys/bus/pci/devices/0000:00:00.0/class", Unknown, false}, // a device that does not tell what it is
	}
	for _, c := range cases {
		p := New(Config{GOOS: "linux", Root: unreadable{c.root, c.name}, LookPath: inPath("", os.ErrNotExist),
			Places: []string{}, Log: slog.New(slog.DiscardHandler)})
		if r := p.Probe(t.Context()); r.State != c.state || r.FreeKnown != c.free {
			t.Errorf("%s unreadable: %v, free known %v; want %v, %v (%s)", c.name, r.State, r.FreeKnown, c.state, c.free, r.Reason)
		}
		p.Close()
	}
}

// Of a GPU inside the processor both parts must be readable to know what is free.
func TestUnreadableParts(t *testing.T) {
	m, _ := load(t, "testdata/machines/amd-strix-halo.txtar")
	for _, file := range []string{"mem_info_vram_used", "mem_info_gtt_used", "mem_info_gtt_total"} {
		k := kernel{unreadable{m.root, "sys/class/drm/card1/device/" + file}}
		cards, _ := k.cards()
		d := k.amd(cards[0])
		if want := file == "mem_info_gtt_total"; d.FreeKnown != want || d.Total == 0 || !d.Unified {
			t.Errorf("%s unreadable: %+v; want free known %v", file, d, want)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, "nvidia-smi")
	if err := os.WriteFile(place, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name   string
		config Config
		want   string
	}{
		{"in PATH", Config{LookPath: inPath("/b/smi", nil), Places: []string{place}}, "/b/smi"},
		{"in the working directory", Config{LookPath: inPath("./nvidia-smi", exec.ErrDot), Places: []string{}}, ""},
		{"by a relative PATH", Config{LookPath: inPath("bin/nvidia-smi", nil), Places: []string{}}, ""},
		{"in a usual place", Config{LookPath: inPath("", exec.ErrNotFound), Places: []string{dir, filepath.Join(dir, "no"), place}}, place},
		{"nowhere", Config{LookPath: inPath("", exec.ErrNotFound), Places: []string{dir}}, ""},
	}
	for _, c := range cases {
		if got, ok := c.config.find(); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", c.name, got, ok, c.want)
		}
	}
}

// The whole way, with real children, none of which outlives the deadline.
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
		{"nothing", "exit 0", None, "no GPU"},
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
			p := New(Config{GOOS: "linux", Root: noGPU, LookPath: inPath(tool, nil), Deadline: deadline, Log: slog.New(slog.DiscardHandler)})
			defer p.Close()
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
