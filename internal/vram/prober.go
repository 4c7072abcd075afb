package vram

import (
	"context"
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
	// LookPath finds a program in PATH; nil = exec.LookPath.
	LookPath func(name string) (string, error)
	// Places are paths where nvidia-smi may be besides; nil = the usual ones.
	Places []string

	Deadline time.Duration // of one asking, all tools together; 0 = 3 s

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
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// fresh is how long an answer holds before the machine is asked again.
const fresh = time.Minute

// Prober asks how much GPU memory there is and keeps the answer. Its methods may
// be called from anywhere at any time; however many ask, at most one asking is
// under way and at most one tool runs.
type Prober struct {
	config Config
	run    run // runTool, but in a test
	life   context.Context
	end    context.CancelFunc

	mu    sync.Mutex
	last  Report        // Asked zero = none yet
	round chan struct{} // closed when the asking under way ends; nil = none is
}

// New makes a prober. It asks nothing yet.
func New(config Config) *Prober {
	p := &Prober{config: config.withDefaults(), run: runTool}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// Close ends an asking that is under way and lets no new one begin; Last goes on
// to answer. It does not wait: a tool that cannot be killed is left alone.
func (p *Prober) Close() { p.end() }

// Last is the latest answer, at once. Before the first it is Unknown. Others have the same
// answer: nobody changes what is in it.
func (p *Prober) Last() Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.last
	if r.Asked.IsZero() {
		r = Report{Reason: "not asked yet", Devices: []Device{}, Steps: []string{}}
		if p.round != nil {
			r.Reason = "asked, and no answer yet"
		}
	}
	return r
}

// Probe answers how much GPU memory there is. An answer of the last minute comes
// at once. Otherwise Probe waits: until the answer is there, ctx ends, or the
// deadline has passed, and then answers what was known before. The asking goes on
// when the caller no longer waits, and what it brings is the next answer.
func (p *Prober) Probe(ctx context.Context) Report {
	round := p.ask()
	if round == nil {
		return p.Last()
	}
	patience := time.NewTimer(p.config.Deadline + 3*grace) // the tools' own deadline comes first
	defer patience.Stop()
	select {
	case <-round:
	case <-ctx.Done():
	case <-patience.C:
		p.config.Log.Warn("asking for GPU memory takes too long; going on without", "deadline", p.config.Deadline)
	}
	return p.Last()
}

// ask returns the asking under way, and begins one if one is due.
func (p *Prober) ask() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.config.Now()
	age := now.Sub(p.last.Asked) // negative: the clock was set back
	if p.round != nil || !p.last.Asked.IsZero() && age >= 0 && age < fresh || p.life.Err() != nil {
		return p.round
	}
	round := make(chan struct{})
	p.round = round
	// go: one per prober at most (round). Its tools have a deadline; one that cannot be killed holds
	// this goroutine until the kernel gives it back, and no other is started meanwhile
	go func() {
		r, silent := p.inquire(now)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.keep(r, silent)
		p.round = nil
		close(round)
	}()
	return round
}

// inquire asks all sources once. silent tells that a tool did not answer, so
// that less may be known than before.
func (p *Prober) inquire(asked time.Time) (r Report, silent bool) {
	a := &asking{config: p.config, kernel: kernel{p.config.Root}, run: p.run}
	switch {
	case p.config.Off:
		a.doubt("asking is switched off in the configuration")
	case p.config.Size > 0:
		a.devices = []Device{{Vendor: "configured", Name: "GPU memory as configured", Total: p.config.Size}}
		a.step("configuration: %s; nothing was asked", Size(p.config.Size))
	default:
		ctx, cancel := context.WithTimeout(p.life, p.config.Deadline)
		defer cancel()
		a.look(ctx)
	}
	return a.conclude(asked), a.silent
}

// keep needs the lock. It makes r the answer, unless a tool was silent: that tells nothing new.
func (p *Prober) keep(r Report, silent bool) {
	switch {
	case silent && p.life.Err() != nil: // ended by Close
	case silent && p.last.State == Known:
		p.last.Steps = append(r.Steps, "the answer is an earlier one: "+p.last.Reason)
	default:
		if r.State != p.last.State || p.last.Asked.IsZero() {
			p.config.Log.Info("GPU memory", "state", r.State, "reason", r.Reason)
		}
		p.last = r
	}
}

// find tells where nvidia-smi is.
func (c Config) find() (path string, ok bool) {
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

// environment is all that a tool at path gets to see, its language and where the NVIDIA
// libraries lie: no secret of ours is in it. Where the driver is mounted into a container,
// they lie beside it and not where the loader looks.
func environment(path string) []string {
	env := []string{"LC_ALL=C", "LANG=C"}
	if base := filepath.Dir(filepath.Dir(path)); filepath.Base(base) == "nvidia" {
		env = append(env, "LD_LIBRARY_PATH="+filepath.Join(base, "lib64")+":"+filepath.Join(base, "lib"))
	}
	return env
}
