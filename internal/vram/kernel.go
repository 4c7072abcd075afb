package vram

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kernel reads the files in which Linux describes its GPUs. The root is the
// machine's, or a tree of a test.
type kernel struct{ root fs.FS }

// text is the content of a small file in one clean line; ok is false when it
// cannot be read. Files of the kernel can be endless (a pipe, a mistake), so no
// more than one page is read.
func (k kernel) text(name string) (content string, ok bool) {
	raw, err := k.read(name, 4<<10)
	return clean(string(raw), 4<<10), err == nil
}

func (k kernel) read(name string, limit int64) ([]byte, error) {
	f, err := k.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// number is a decimal number of bytes in a file, if it is one that can be.
func (k kernel) number(name string) (n uint64, ok bool) {
	content, ok := k.text(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(content, 10, 64)
	return n, err == nil && n <= most
}

func (k kernel) exists(name string) bool {
	_, err := fs.Stat(k.root, name)
	return err == nil
}

// card is one GPU as the kernel lists it.
type card struct {
	dir            string // the folder of the device
	vendor, device string // 0x10de, 0x2684; vendor "" = not on PCI
	driver, slot   string
}

func (c card) String() string {
	if c.slot == "" {
		return path.Base(path.Dir(c.dir))
	}
	return c.slot
}

var cardDir = regexp.MustCompile(`^card[0-9]+$`) // card0-HDMI-A-1 is a socket for a screen

// cards lists the GPUs: those with a driver for screens or computing, and those
// on PCI that have none. complete tells that the kernel has shown all it has.
func (k kernel) cards() (cards []card, complete bool) {
	folders, err := fs.ReadDir(k.root, "sys/class/drm")
	screens := err == nil
	seen := map[string]bool{}
	for _, folder := range folders {
		if !cardDir.MatchString(folder.Name()) {
			continue
		}
		c := k.card("sys/class/drm/" + folder.Name() + "/device")
		if c.slot == "" || !seen[c.slot] {
			cards = append(cards, c)
		}
		seen[c.slot] = true
	}
	devices, err := fs.ReadDir(k.root, "sys/bus/pci/devices")
	for _, device := range devices {
		dir := "sys/bus/pci/devices/" + device.Name()
		class, readable := k.text(dir + "/class")
		if !readable {
			err = errors.Join(err, fs.ErrPermission)
		}
		accelerator := strings.HasPrefix(class, "0x12") // some GPUs without a screen are
		if !strings.HasPrefix(class, "0x03") && !accelerator || seen[device.Name()] {
			continue
		}
		c := k.card(dir)
		if accelerator && c.vendor == "0x8086" {
			continue // the part of Intel's processors for small networks
		}
		c.slot = device.Name()
		cards = append(cards, c)
	}
	return cards, err == nil || errors.Is(err, fs.ErrNotExist) && k.without("sys/bus", "pci") && (screens || k.without("sys/class", "drm"))
}

// without tells that the kernel lists what it has in dir, and name is not in it.
// An empty folder is a sandbox that shows nothing.
func (k kernel) without(dir, name string) bool {
	entries, err := fs.ReadDir(k.root, dir)
	return err == nil && len(entries) > 0 && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
}

func (k kernel) card(dir string) card {
	c := card{dir: dir}
	c.vendor, _ = k.text(dir + "/vendor")
	c.device, _ = k.text(dir + "/device")
	raw, _ := k.read(dir+"/uevent", 4<<10)
	for _, line := range lines(raw) {
		if driver, ok := strings.CutPrefix(line, "DRIVER="); ok {
			c.driver = shorten(driver, 40)
		}
		if slot, ok := strings.CutPrefix(line, "PCI_SLOT_NAME="); ok {
			c.slot = shorten(slot, 40)
		}
	}
	return c
}

// integratedAMD are the device numbers of AMD processors with a GPU inside. Its
// own memory is what the firmware set aside; the rest is the machine's.
var integratedAMD = []string{
	"0x15dd", "0x15d8", // Raven, Picasso
	"0x1636", "0x164c", "0x1638", "0x15e7", // Renoir, Lucienne, Cezanne, Barcelo
	"0x1681", "0x164d", "0x164e", "0x13c0", // Rembrandt, Raphael, Granite Ridge
	"0x163f", "0x1435", "0x1506", // Van Gogh, Sephiroth, Mendocino
	"0x15bf", "0x15c8", "0x1900", "0x1901", // Phoenix, Hawk Point
	"0x150e", "0x1586", "0x1114", // Strix, Strix Halo, Krackan
}

// amd reads one AMD card.
func (k kernel) amd(c card) Device {
	d := Device{Vendor: "amd", Name: "AMD GPU " + c.device, PCI: c.slot}
	if name, ok := k.text(c.dir + "/product_name"); ok && name != "" {
		d.Name = shorten(name, 100)
	}
	total, ok := k.number(c.dir + "/mem_info_vram_total")
	if !ok {
		d.Note = "mem_info_vram_total is not readable (driver " + orNone(c.driver) + ")"
		return d
	}
	d.Total = total
	if used, ok := k.number(c.dir + "/mem_info_vram_used"); ok && used <= total {
		d.Free, d.FreeKnown = total-used, true
	} else {
		d.Note = "what is in use is not readable"
	}
	if !slices.Contains(integratedAMD, strings.ToLower(c.device)) {
		return d
	}
	d.Unified = true
	lent, ok := k.number(c.dir + "/mem_info_gtt_total")
	if !ok {
		d.Note = "how much of the machine's memory it may use is not readable; only what the firmware set aside is counted"
		return d
	}
	ram, available, known := k.memory()
	if known { // some are set to lend more than there is; the machine needs some itself
		lent = min(lent, ram/8*7)
	}
	d.Total += lent
	used, ok := k.number(c.dir + "/mem_info_gtt_used")
	d.FreeKnown = d.FreeKnown && ok && used <= lent && known
	d.Free += min(lent-min(used, lent), available)
	d.Note = fmt.Sprintf("%s set aside and %s of the machine's memory", Size(total), Size(lent))
	return d
}

// intel reads one discrete Intel card: the xe driver tells a size per tile, some
// i915 drivers tell one. Neither says how much is in use.
func (k kernel) intel(c card) Device {
	d := Device{Vendor: "intel", Name: "Intel GPU " + c.device, PCI: c.slot}
	for tile := range 16 {
		size, ok := k.number(fmt.Sprintf("%s/tile%d/physical_vram_size_bytes", c.dir, tile))
		if !ok {
			break
		}
		d.Total += size
	}
	if d.Total == 0 {
		d.Total, _ = k.number(path.Dir(c.dir) + "/lmem_total_bytes")
	}
	d.Note = "the driver does not tell how much is free"
	if d.Total == 0 {
		d.Note = "the driver " + orNone(c.driver) + " does not tell how much memory it has; give its size in the configuration"
	}
	return d
}

// integratedIntel sit at this place of the PCI bus, and nothing else does.
func integratedIntel(c card) bool { return strings.HasSuffix(c.slot, ":00:02.0") }

func orNone(driver string) string {
	if driver == "" {
		return "none"
	}
	return driver
}

// memory is the machine's own, in bytes: all of it and what can be had now.
func (k kernel) memory() (total, available uint64, ok bool) {
	raw, err := k.read("proc/meminfo", 64<<10)
	if err != nil {
		return 0, 0, false
	}
	return parseMeminfo(raw)
}

// parseMeminfo reads /proc/meminfo. Old kernels have no MemAvailable; then
// available is what is free and counts low, never high.
func parseMeminfo(raw []byte) (total, available uint64, ok bool) {
	values := map[string]uint64{}
	for line := range strings.Lines(string(raw)) {
		name, rest, found := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if !found || len(fields) != 2 || fields[1] != "kB" {
			continue
		}
		if n, err := strconv.ParseUint(fields[0], 10, 64); err == nil && n <= math.MaxUint64>>10 {
			values[name] = n << 10
		}
	}
	available, found := values["MemAvailable"]
	if !found {
		available = values["MemFree"]
	}
	total = values["MemTotal"]
	return total, min(available, total), total > 0
}

// limit is what the container this process lives in may use, if there is a limit.
func (k kernel) limit() (bytes uint64, limited bool) {
	for _, name := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if n, ok := k.number(name); ok && n > 0 { // for "none" version 1 writes a number that cannot be
			return n, true
		}
	}
	return 0, false
}

// unify gives d the memory it shares with the processor: three quarters of the
// machine's, as the rest is needed to run it, within the container's limit.
func (k kernel) unify(d Device) Device {
	d.Unified, d.Total, d.Free, d.FreeKnown = true, 0, 0, false
	total, available, ok := k.memory()
	if !ok {
		d.Note = "it shares the machine's memory, and /proc/meminfo is not readable"
		return d
	}
	d.Total = total / 4 * 3
	d.Note = fmt.Sprintf("shares the machine's memory: three quarters of %s", Size(total))
	if limit, limited := k.limit(); limited && limit < d.Total {
		d.Total = limit
		d.Note = fmt.Sprintf("shares the machine's memory: %s of %s, the limit of this container", Size(limit), Size(total))
	}
	d.Free, d.FreeKnown = min(available, d.Total), true
	return d
}

// jetson tells the name of an NVIDIA machine without a GPU on PCI.
func (k kernel) jetson() (name string, ok bool) {
	compatible, _ := k.read("proc/device-tree/compatible", 4<<10) // names with a zero byte after each
	if !k.exists("etc/nv_tegra_release") && !bytes.Contains(compatible, []byte("nvidia,tegra")) {
		return "", false
	}
	if model, ok := k.text("proc/device-tree/model"); ok && model != "" {
		return shorten(model, 100), true
	}
	return "NVIDIA Jetson", true
}

// traces are signs of an NVIDIA driver that nvidia-smi itself would confirm.
func (k kernel) traces() (signs []string) {
	if gpus, err := fs.ReadDir(k.root, "proc/driver/nvidia/gpus"); err == nil && len(gpus) > 0 {
		signs = append(signs, fmt.Sprintf("/proc/driver/nvidia lists %d", len(gpus)))
	}
	files, _ := fs.ReadDir(k.root, "dev")
	for _, file := range files {
		rest, ok := strings.CutPrefix(file.Name(), "nvidia")
		if _, err := strconv.Atoi(rest); ok && err == nil || file.Name() == "dxg" {
			signs = append(signs, "/dev/"+file.Name()+" is there")
		}
	}
	return signs
}
