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

// Config says where to look. The zero value suits the machine that the program runs on.
type Config struct {
	// Size, if not 0, is the owner's figure in bytes; nothing is queried.
	Size uint64
	// Off disables all queries; the answer is Unknown.
	Off bool
	Log *slog.Logger // nil = slog.Default()

	// For tests.
	goos     string
	root     fs.FS
	find     func() (path string, ok bool) // of nvidia-smi
	run      run
	deadline time.Duration // of one probe, all tools together
	now      func() time.Time
}

// Prober measures GPU memory and keeps the result. It is safe for concurrent use.
type Prober struct {
	config Config
	last   atomic.Pointer[Report] // Asked zero = no result yet
}

// New returns a prober without a result.
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

// Last returns the latest report without waiting; before the first it is Unknown. The report is
// shared and must not be changed.
func (p *Prober) Last() Report { return *p.last.Load() }

// Probe measures GPU memory within three seconds. If a tool does not answer, the previous report
// stays.
func (p *Prober) Probe(ctx context.Context) Report {
	now, last := p.config.now(), p.Last()
	a := &probe{config: p.config, kernel: kernel{p.config.root}}
	switch {
	case p.config.Off:
		a.doubt("asking is switched off in the configuration")
	case p.config.Size > 0:
		a.devices = []Device{{Vendor: "configured", Name: "GPU memory as configured", Total: p.config.Size}}
		a.step("configuration: %s; nothing was asked", Size(p.config.Size))
	default:
		within, cancel := context.WithTimeout(ctx, p.config.deadline)
		defer cancel()
		a.queryAll(within)
	}
	r := a.report(now)
	switch {
	case ctx.Err() != nil:
		return last
	case a.timedOut && last.State == Known:
		last.Asked, last.Steps = now, append(r.Steps, "the answer is an earlier one: "+last.Reason)
		r = last
	case r.State != last.State || last.Asked.IsZero():
		p.config.Log.Info("GPU memory", "state", r.State, "reason", r.Reason)
	}
	p.last.Store(&r)
	return r
}

// smiPaths are paths of nvidia-smi outside PATH: distributions, WSL, containers, NixOS.
var smiPaths = []string{
	"/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi",
	"/opt/nvidia/bin/nvidia-smi", "/opt/bin/nvidia-smi", "/run/current-system/sw/bin/nvidia-smi",
}

// findSMI returns the path of nvidia-smi. It ignores a program in the working directory, which
// anybody may have put there.
func findSMI() (path string, ok bool) {
	if path, err := exec.LookPath("nvidia-smi"); err == nil && filepath.IsAbs(path) {
		return path, true
	}
	for _, place := range smiPaths {
		if info, err := os.Stat(place); err == nil && info.Mode().IsRegular() {
			return place, true
		}
	}
	return "", false
}

// toolEnvironment returns the environment for a tool at path: language and library path, and no
// secrets. Where the driver is mounted into a container, its libraries are beside the tool and not
// where the loader looks.
func toolEnvironment(path string) []string {
	env := []string{"LC_ALL=C", "LANG=C"}
	if base := filepath.Dir(filepath.Dir(path)); filepath.Base(base) == "nvidia" {
		env = append(env, "LD_LIBRARY_PATH="+filepath.Join(base, "lib64")+":"+filepath.Join(base, "lib"))
	}
	return env
}
