package vram

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// asking is one round over the sources, with what it found so far.
type asking struct {
	findings
	config Config
	kernel kernel
	run    run
}

// run calls a tool; see runTool.
type run func(ctx context.Context, path string, args, env []string) (output, error)

// look asks every source of this kind of machine.
func (a *asking) look(ctx context.Context) {
	switch a.config.GOOS {
	case "darwin":
		a.apple(ctx)
	case "linux":
		a.linux(ctx)
	default:
		if a.nvidia(ctx) == absent {
			a.doubt("no nvidia-smi here, and other GPUs are not read on %s", a.config.GOOS)
		} else if len(a.devices) == 0 && len(a.doubts) == 0 {
			a.doubt("nvidia-smi lists no GPU, and others are not read on %s", a.config.GOOS)
		}
	}
}

func (a *asking) apple(ctx context.Context) {
	out, err := a.run(ctx, sysctlPath, sysctlNames, environment(sysctlPath))
	if err != nil {
		a.silent = errors.Is(err, errSilent)
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

// linux asks the kernel first, which costs no process, then nvidia-smi.
func (a *asking) linux(ctx context.Context) {
	cards, complete := a.kernel.cards()
	var nvidia []card
	harmless := map[string]bool{}
	for _, c := range cards {
		switch strings.ToLower(c.vendor) {
		case "0x10de":
			nvidia = append(nvidia, c)
		case "0x1002":
			a.found(a.kernel.amd(c))
		case "0x8086":
			if integratedIntel(c) {
				harmless["an Intel GPU inside the processor"] = true
				a.step("kernel: %s is an Intel GPU inside the processor, without memory of its own", c)
				continue
			}
			a.found(a.kernel.intel(c))
		default:
			if !display(c) {
				a.doubt("kernel: %s is a GPU of vendor %q (driver %s) that is not known here", c, c.vendor, orNone(c.driver))
				continue
			}
			harmless["a plain display adapter"] = true
			a.step("kernel: %s is a plain display adapter (vendor %q, driver %s)", c, c.vendor, orNone(c.driver))
		}
	}
	if len(a.devices) > 0 && !a.kernel.exists("dev/dri") {
		a.step("kernel: no /dev/dri here: this container may not use those GPUs itself")
	}
	answer := a.nvidia(ctx)
	a.compare(nvidia, answer)
	switch {
	case len(cards) == 0 && complete:
		a.step("kernel: lists no GPU")
		a.nothing = "this machine has no GPU"
	case complete:
		a.nothing = "this machine has no GPU with memory of its own, only " + strings.Join(slices.Sorted(maps.Keys(harmless)), " and ")
	case len(a.devices) == 0 && len(a.doubts) == 0:
		a.doubt("the kernel does not list its devices here (/sys is not readable)")
	}
}

func (a *asking) found(d Device) {
	a.devices = append(a.devices, d)
	a.step("kernel: %s at %s: %s (%s)", d.Name, d.PCI, Size(d.Total), orFine(d.Note))
}

func orFine(note string) string {
	if note == "" {
		return "read from the driver's files"
	}
	return note
}

// display tells adapters that only show a picture: those of servers, virtual
// machines and small boards.
func display(c card) bool {
	switch strings.ToLower(c.vendor) {
	case "0x102b", "0x1a03", "0x1234", "0x1013", "0x1b36", "0x1af4", "0x15ad", "0x1414", "0x80ee":
		return true // Matrox, ASPEED, Bochs, Cirrus, QXL, virtio, VMware, Hyper-V, VirtualBox
	case "":
		switch c.driver {
		case "vc4-drm", "vc4", "v3d", "simple-framebuffer", "simpledrm", "vkms", "virtio_gpu", "bochs-drm", "hyperv_drm":
			return true
		}
	}
	return false
}

// answer is what came of asking nvidia-smi.
type answer int

const (
	absent  answer = iota // there is no nvidia-smi
	failed                // it said why not, or nothing in time: a doubt is noted
	empty                 // it lists no GPU
	listing               // it lists GPUs
)

// compare holds what nvidia-smi said against the signs of an NVIDIA GPU.
func (a *asking) compare(nvidia []card, said answer) {
	if said == listing || said == failed {
		return
	}
	if name, ok := a.kernel.jetson(); ok {
		d := a.kernel.unify(Device{Vendor: "nvidia", Name: name})
		a.devices = append(a.devices, d)
		a.step("kernel: %s: %s", name, d.Note)
		return
	}
	signs := a.kernel.traces()
	for _, c := range nvidia {
		signs = append(signs, fmt.Sprintf("an NVIDIA GPU is at %s (driver %s)", c, orNone(c.driver)))
	}
	switch {
	case len(signs) == 0 && said == empty:
		a.step("nvidia-smi: lists no GPU")
	case len(signs) == 0:
		a.step("nvidia-smi: not found in PATH or the usual places")
	case said == empty:
		a.doubt("nvidia-smi lists no GPU, but %s", strings.Join(signs, ", "))
	default:
		a.doubt("%s, but nvidia-smi was not found: install the NVIDIA driver's tools, or in a container the NVIDIA container toolkit", strings.Join(signs, ", "))
	}
}

// nvidia asks nvidia-smi and adds its devices to f.
func (a *asking) nvidia(ctx context.Context) answer {
	tool, ok := a.config.find()
	if !ok {
		return absent
	}
	out, err := a.run(ctx, tool, query, environment(tool))
	if err != nil {
		a.silent = a.silent || errors.Is(err, errSilent)
		a.doubt("%s: %v", tool, err)
		return failed
	}
	rows, other := parseSMI(out.text)
	if len(rows) == 0 {
		return a.noRows(tool, out, other)
	}
	if len(other) > 0 {
		a.step("nvidia-smi: also said %q", strings.Join(other, " / "))
	}
	if out.code != 0 {
		a.step("nvidia-smi: ended with status %d, its table is used all the same", out.code)
	}
	a.rows(rows)
	return listing
}

// noRows tells a machine without GPUs from a driver that does not work.
func (a *asking) noRows(tool string, out output, other []string) answer {
	said := strings.Join(append(other, lines(out.errors)...), " / ")
	if out.code == 0 && said == "" || strings.Contains(strings.ToLower(said), "no devices were found") {
		return empty
	}
	if said == "" {
		said = "nothing"
	}
	a.doubt("%s ended with status %d and said: %s", filepath.Base(tool), out.code, shorten(said, 200))
	return failed
}

// rows makes devices of rows.
func (a *asking) rows(rows []gpu) {
	_, jetson := a.kernel.jetson()
	for _, g := range rows {
		d := g.device()
		if sharesMemory(g.name) || jetson && g.total == 0 {
			d = a.kernel.unify(d)
			a.step("nvidia-smi: %s (%s); %s", g.name, orFine(d.Note), "it has no memory of its own")
		} else {
			a.step("nvidia-smi: GPU %d %s: %s in all, %s free%s", g.index, g.name, spoken(g.total, g.noTotal), spoken(g.free, g.noFree), dash(d.Note))
		}
		a.devices = append(a.devices, d)
	}
}

func spoken(size uint64, words string) string {
	if words != "" {
		return words
	}
	return Size(size)
}

func dash(note string) string {
	if note == "" {
		return ""
	}
	return " – " + note
}
