package vram

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// Config says where to look and how long. The zero value is right for the
// machine the program runs on.
type Config struct {
	// Size, if not 0, is what the owner says there is, in bytes: nothing is asked.
	Size uint64
	// Off asks nothing: the answer is Unknown.
	Off bool

	// GOOS is the kind of system; "" = this one.
	GOOS string
	// Root is the machine's file system; nil = "/".
	Root fs.FS
	// SMI is the path of nvidia-smi; "" = LookPath, then Places.
	SMI string
	// LookPath finds a program in PATH; nil = exec.LookPath.
	LookPath func(name string) (string, error)
	// Places are paths where nvidia-smi may be besides; nil = the usual ones.
	Places []string
	// Env is added to what the tools get, which is little: their language, and
	// where the NVIDIA libraries lie. Nothing is inherited.
	Env []string

	Deadline time.Duration // of one asking, all tools together; 0 = 3 s
	Fresh    time.Duration // how long an answer holds before it is asked again; 0 = 1 min
	Hangs    int           // askings in a row without an answer until there is a pause; 0 = 2
	Pause    time.Duration // how long no tool is asked after that; 0 = 10 min

	Now func() time.Time // nil = time.Now
	Log *slog.Logger     // nil = slog.Default()
}

// places are where nvidia-smi lies when PATH does not say so: distributions,
// Windows below Linux, containers, NixOS.
func places(goos string) []string {
	if goos == "windows" {
		return []string{`C:\Windows\System32\nvidia-smi.exe`, `C:\Program Files\NVIDIA Corporation\NVSMI\nvidia-smi.exe`}
	}
	return []string{
		"/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi",
		"/opt/nvidia/bin/nvidia-smi", "/opt/bin/nvidia-smi", "/run/current-system/sw/bin/nvidia-smi",
	}
}

func (c Config) withDefaults() Config {
	if c.GOOS == "" {
		c.GOOS = runtime.GOOS
	}
	if c.Root == nil {
		c.Root = os.DirFS("/")
	}
	if c.LookPath == nil {
		c.LookPath = exec.LookPath
	}
	if c.Places == nil {
		c.Places = places(c.GOOS)
	}
	if c.Deadline <= 0 {
		c.Deadline = 3 * time.Second
	}
	if c.Fresh <= 0 {
		c.Fresh = time.Minute
	}
	if c.Hangs <= 0 {
		c.Hangs = 2
	}
	if c.Pause <= 0 {
		c.Pause = 10 * time.Minute
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Prober asks how much GPU memory there is and keeps the answer. Its methods may
// be called from anywhere at any time; however many ask, at most one asking is
// under way and at most one tool runs.
type Prober struct {
	config Config
	run    run // of a runner of its own, but in a test
	life   context.Context
	end    context.CancelFunc

	mu    sync.Mutex
	last  Report        // Asked zero = none yet
	round chan struct{} // closed when the asking under way ends; nil = none is
	hangs int           // askings in a row without an answer
	quiet time.Time     // until then no tool is asked
}

// New makes a prober. It asks nothing yet.
func New(config Config) *Prober {
	config = config.withDefaults()
	p := &Prober{config: config, run: new(runner).run}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// Close ends an asking that is under way and lets no new one begin; Last goes on
// to answer. It does not wait: a tool that cannot be killed is left alone.
func (p *Prober) Close() { p.end() }

// Last is the latest answer, at once. Before the first it is Unknown.
func (p *Prober) Last() Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer()
}

// Ask makes sure that a fresh answer is there or on its way, and does not wait.
func (p *Prober) Ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ask()
}

// Probe answers how much GPU memory there is. An answer that is fresh comes at
// once, and so does the last one, marked Stale, while another caller's asking is
// under way. Otherwise Probe waits: until the answer is there, ctx ends, or the
// deadline has passed. The asking goes on when the caller no longer waits, and
// what it brings is the next answer.
func (p *Prober) Probe(ctx context.Context) Report {
	p.mu.Lock()
	underWay := p.round != nil
	p.ask()
	round, known := p.round, !p.last.Asked.IsZero()
	if round == nil || underWay && known {
		defer p.mu.Unlock()
		return p.answer()
	}
	p.mu.Unlock()
	patience := time.NewTimer(p.config.Deadline + 6*grace) // the tools' own deadline comes first
	defer patience.Stop()
	select {
	case <-round:
	case <-ctx.Done():
	case <-patience.C:
		p.config.Log.Warn("asking for GPU memory takes too long; going on without", "deadline", p.config.Deadline)
	}
	return p.Last()
}

// answer needs the lock.
func (p *Prober) answer() Report {
	if p.last.Asked.IsZero() {
		r := Report{Reason: "not asked yet", Devices: []Device{}, Steps: []string{}}
		if p.round != nil {
			r.Reason = "asked, and no answer yet"
		}
		return r
	}
	r := p.last
	r.Devices, r.Steps = append([]Device{}, r.Devices...), append([]string{}, r.Steps...)
	r.Age = max(0, p.config.Now().Sub(r.Asked))
	r.Stale = r.Stale || r.Age >= p.config.Fresh
	return r
}

// ask needs the lock. It begins an asking unless one is under way or none is due.
func (p *Prober) ask() {
	now := p.config.Now()
	age := now.Sub(p.last.Asked)
	fresh := !p.last.Asked.IsZero() && age >= 0 && age < p.config.Fresh
	if p.round != nil || fresh || p.life.Err() != nil {
		return
	}
	round := make(chan struct{})
	p.round = round
	quiet := now.Before(p.quiet)
	// go: one per prober at most (round); its tools have a deadline and Close ends them, Probe waits for it
	go func() {
		r, silent := p.inquire(now, quiet)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.settle(r, silent, quiet)
		p.round = nil
		close(round)
	}()
}

// errQuiet: the tools hung before and are left alone for a while.
var errQuiet = fmt.Errorf("it did not answer before and is left alone for a while: %w", errSilent)

// inquire asks all sources once. silent tells that a tool did not answer, so
// that less may be known than before.
func (p *Prober) inquire(asked time.Time, quiet bool) (r Report, silent bool) {
	a := &asking{config: p.config, kernel: kernel{p.config.Root}, run: p.run}
	switch {
	case p.config.Off:
		a.doubt("asking is switched off in the configuration")
	case p.config.Size > 0:
		a.devices = []Device{{Vendor: "configured", Name: "GPU memory as configured", Total: p.config.Size}}
		a.step("configuration: %s; nothing was asked", Size(p.config.Size))
	default:
		if quiet {
			a.run = func(context.Context, string, []string, []string) (output, error) { return output{}, errQuiet }
		}
		ctx, cancel := context.WithTimeout(p.life, p.config.Deadline)
		defer cancel()
		a.look(ctx)
	}
	return a.conclude(asked), a.silent
}

// settle needs the lock. It keeps the answer and counts the hangs.
func (p *Prober) settle(r Report, silent, quiet bool) {
	if p.life.Err() != nil && silent {
		return // ended by Close, which says nothing about the driver
	}
	switch {
	case !silent:
		p.hangs, p.quiet = 0, time.Time{}
	case !quiet:
		p.hangs++
		if p.hangs >= p.config.Hangs {
			p.quiet = p.config.Now().Add(p.config.Pause)
			r.Steps = append(r.Steps, fmt.Sprintf("no answer %d times in a row: no tool is asked for %s", p.hangs, p.config.Pause))
			p.config.Log.Warn("GPU tools do not answer; leaving them alone for a while", "times", p.hangs, "pause", p.config.Pause, "reason", r.Reason)
		}
	}
	if silent && p.last.State == Known {
		// Silence tells nothing new. What was known stays, with its age.
		p.last.Stale = true
		p.last.Steps = append(r.Steps, "the answer is an earlier one: "+p.last.Reason)
		return
	}
	if r.State != p.last.State || p.last.Asked.IsZero() {
		p.config.Log.Info("GPU memory", "state", r.State, "reason", r.Reason)
	}
	p.last = r
}

// find tells where nvidia-smi is.
func (c Config) find() (path string, ok bool) {
	if c.SMI != "" {
		return c.SMI, true
	}
	// A program in the working directory is nobody's nvidia-smi.
	if path, err := c.LookPath("nvidia-smi"); err == nil && filepath.IsAbs(path) {
		return path, true
	}
	for _, place := range c.Places {
		if info, err := os.Stat(place); err == nil && info.Mode().IsRegular() {
			return place, true
		}
	}
	return "", false
}

// environment is all that a tool at path gets to see: no secret of ours is in it.
// Where the driver is mounted into a container, its libraries lie beside it and
// not where the loader looks.
func environment(path string, more []string) []string {
	env := []string{"LC_ALL=C", "LANG=C"}
	if base := filepath.Dir(filepath.Dir(path)); filepath.Base(base) == "nvidia" {
		env = append(env, "LD_LIBRARY_PATH="+filepath.Join(base, "lib64")+":"+filepath.Join(base, "lib"))
	}
	return append(env, more...)
}
