package vram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// probe is one probe and its findings so far.
type probe struct {
	findings
	config Config
	kernel kernel
}

// run executes a tool; see runTool.
type run func(ctx context.Context, path string, args, env []string) (output, error)

// queryAll queries every source of this kind of machine. It starts with the kernel, which needs no
// process.
func (a *probe) queryAll(ctx context.Context) {
	if a.config.goos == "darwin" {
		a.apple(ctx)
		return
	}
	seen := "" // a description of an NVIDIA GPU that the kernel lists
	for _, c := range a.kernel.cards() {
		switch d := a.kernel.intel(c); {
		case c.vendor == "0x10de":
			seen = "an NVIDIA GPU is at " + c.slot
		case c.vendor == "0x1002":
			a.addDevice(c, a.kernel.amd(c))
		case c.vendor == "0x8086" && (d.Total > 0 || !strings.HasSuffix(c.slot, ":00:02.0")): // :00:02.0 is the GPU inside the processor
			a.addDevice(c, d)
		default:
			a.step("kernel: %s is not read (vendor %q)", c.slot, c.vendor)
		}
	}
	a.nvidia(ctx, seen)
}

func (a *probe) addDevice(c card, d Device) {
	a.devices = append(a.devices, d)
	a.step("kernel: %s at %s: %s%s", d.Name, c.slot, Size(d.Total), withDash(d.Note))
}

func (a *probe) apple(ctx context.Context) {
	out, err := a.config.run(ctx, sysctlPath, sysctlNames, toolEnvironment(sysctlPath))
	if err != nil {
		a.timedOut = errors.Is(err, errNoAnswer)
		a.doubt("sysctl: %v", err)
		return
	}
	d, err := parseSysctl(out.text)
	if err != nil {
		a.doubt("sysctl: %v", err)
		return
	}
	a.step("sysctl: %s, %s", d.Name, d.Note)
	a.devices = append(a.devices, d)
}

// nvidia queries nvidia-smi. seen describes an NVIDIA GPU that the kernel lists; "" = none.
func (a *probe) nvidia(ctx context.Context, seen string) {
	tool, ok := a.config.find()
	switch {
	case !ok && seen != "":
		a.doubt("%s, but nvidia-smi was not found: install the NVIDIA driver's tools, or in a container the NVIDIA container toolkit", seen)
		return
	case !ok:
		a.step("nvidia-smi: not found in PATH or the usual places")
		return
	}
	out, err := a.config.run(ctx, tool, query, toolEnvironment(tool))
	if err != nil {
		a.timedOut = errors.Is(err, errNoAnswer)
		a.doubt("%s: %v", tool, err)
		return
	}
	rows, other := parseSMI(out.text)
	said := clip(strings.Join(append(other, cleanLines(out.errors)...), " / "), 200)
	for _, g := range rows {
		d := g.device()
		if sharedMemoryChips().MatchString(g.name) {
			d = a.kernel.asUnified(d)
		}
		a.step("nvidia-smi: GPU %d %s: %s%s", g.index, g.name, Size(d.Total), withDash(d.Note))
		a.devices = append(a.devices, d)
	}
	switch nothing := out.code == 0 && said == "" || strings.Contains(strings.ToLower(said), "no devices were found"); {
	case len(rows) > 0 && said != "":
		a.step("nvidia-smi: also said %q", said)
	case len(rows) > 0:
	case nothing && seen == "":
		a.step("nvidia-smi: lists no GPU")
	case nothing:
		a.doubt("nvidia-smi lists no GPU, but %s", seen)
	default:
		a.doubt("%s ended with status %d and said: %s", filepath.Base(tool), out.code, cmp.Or(said, "nothing"))
	}
}

func withDash(note string) string {
	if note == "" {
		return ""
	}
	return " – " + note
}

// Limits of one call of a tool.
const (
	keptOutput = 64 << 10
	keptErrors = 4 << 10
	grace      = 500 * time.Millisecond // how long a pipe may stay open after the tool ended
)

// errNoAnswer means that a tool did not answer in time. It says nothing about the GPU.
var errNoAnswer = errors.New("no answer in time")

// output is what a tool wrote, truncated at the limits.
type output struct {
	text, errors []byte
	code         int // the exit status; -1 = killed
}

// limitedBuffer keeps the first bytes and discards the rest, so that the writer never blocks.
type limitedBuffer struct {
	kept []byte
	room int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	take := min(len(p), b.room)
	b.kept, b.room = append(b.kept, p[:take]...), b.room-take
	return len(p), nil
}

// runTool runs the tool at path with env only, and kills it when ctx ends. It returns once the
// kernel releases the process, which may be late for one in uninterruptible sleep. An exit status
// is no error.
func runTool(ctx context.Context, path string, args, env []string) (output, error) {
	text, errs := &limitedBuffer{room: keptOutput}, &limitedBuffer{room: keptErrors}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = text, errs
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return output{}, err
	}
	err := cmd.Wait()
	out := output{text: text.kept, errors: errs.kept, code: cmd.ProcessState.ExitCode()}
	var status *exec.ExitError
	switch {
	case err != nil && ctx.Err() != nil:
		return out, fmt.Errorf("%w (%w)", errNoAnswer, context.Cause(ctx))
	case errors.Is(err, exec.ErrWaitDelay), errors.As(err, &status):
		return out, nil // a child held the pipe open; the output is complete
	}
	return out, err
}
