package vram

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"
)

// Config says where to look. The zero value is right for the machine the program runs on.
type Config struct {
	// Size, if not 0, is what the owner says there is, in bytes: nothing is asked.
	Size uint64
	// Off asks nothing: the answer is Unknown.
	Off bool
	Log *slog.Logger // nil = slog.Default()

	// For tests.
	goos     string
	root     fs.FS
	find     func() (path string, ok bool) // of nvidia-smi
	run      run
	deadline time.Duration // of one asking, all tools together
	now      func() time.Time
}

// Prober asks how much GPU memory there is and keeps the answer. Its methods may
// be called from anywhere at any time.
type Prober struct {
	config Config
	last   atomic.Pointer[Report] // Asked zero = none yet
}

// New makes a prober. It asks nothing yet.
func New(c Config) *Prober {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.goos == "" {
		c.goos, c.root, c.find, c.run, c.deadline, c.now = runtime.GOOS, os.DirFS("/"), findSMI, runTool, 3*time.Second, time.Now
	}
	p := &Prober{config: c}
	p.last.Store(&Report{State: Unknown, Reason: "not asked yet", Devices: []Device{}, Steps: []string{}})
	return p
}

// Last is the latest answer, at once. Before the first it is Unknown. Others have the same
// answer: nobody changes what is in it.
func (p *Prober) Last() Report { return *p.last.Load() }

// Probe asks how much GPU memory there is, for three seconds at most. A tool that does not
// answer tells nothing new.
func (p *Prober) Probe(ctx context.Context) Report {
	now, last := p.config.now(), p.Last()
	a := &asking{config: p.config, kernel: kernel{p.config.root}}
	switch {
	case p.config.Off:
		a.doubt("asking is switched off in the configuration")
	case p.config.Size > 0:
		a.devices = []Device{{Vendor: "configured", Name: "GPU memory as configured", Total: p.config.Size}}
		a.step("configuration: %s; nothing was asked", Size(p.config.Size))
	default:
		within, cancel := context.WithTimeout(ctx, p.config.deadline)
		defer cancel()
		a.look(within)
	}
	r := a.conclude(now)
	switch {
	case ctx.Err() != nil:
		return last
	case a.silent && last.State == Known:
		last.Asked, last.Steps = now, append(r.Steps, "the answer is an earlier one: "+last.Reason)
		r = last
	case r.State != last.State || last.Asked.IsZero():
		p.config.Log.Info("GPU memory", "state", r.State, "reason", r.Reason)
	}
	p.last.Store(&r)
	return r
}

// places are where nvidia-smi lies when PATH does not say so: distributions,
// Windows below Linux, containers, NixOS.
var places = []string{
	"/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi",
	"/opt/nvidia/bin/nvidia-smi", "/opt/bin/nvidia-smi", "/run/current-system/sw/bin/nvidia-smi",
}

// findSMI tells where nvidia-smi is. A program in the working directory is nobody's nvidia-smi.
func findSMI() (path string, ok bool) {
	if path, err := exec.LookPath("nvidia-smi"); err == nil && filepath.IsAbs(path) {
		return path, true
	}
	for _, place := range places {
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
