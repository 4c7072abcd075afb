package vram

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
)

// kernel reads the files in which Linux describes its GPUs. The root is the
// machine's, or a tree of a test.
type kernel struct{ root fs.FS }

func (k kernel) read(name string) []byte {
	raw, _ := fs.ReadFile(k.root, name) // what cannot be read is not known
	return raw
}

// text is the content of a small file in one clean line; empty when it cannot be read.
func (k kernel) text(name string) string { return clean(string(k.read(name)), 100) }

// number is a decimal number of bytes in a file, if it is one that can be.
func (k kernel) number(name string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(k.text(name), 10, 64)
	return n, err == nil && n <= most
}

// card is one GPU as the kernel lists it.
type card struct{ dir, slot, vendor, device string }

// cards lists the GPUs on PCI, those without a screen too.
func (k kernel) cards() (cards []card) {
	devices, _ := fs.ReadDir(k.root, "sys/bus/pci/devices") // where nothing can be read, nothing is known
	for _, d := range devices {
		dir := "sys/bus/pci/devices/" + d.Name()
		if class := k.text(dir + "/class"); strings.HasPrefix(class, "0x03") || strings.HasPrefix(class, "0x12") {
			cards = append(cards, card{dir, d.Name(), strings.ToLower(k.text(dir + "/vendor")), strings.ToLower(k.text(dir + "/device"))})
		}
	}
	return cards
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

// amd reads one AMD card. What it has in note is why a size is not known.
func (k kernel) amd(c card) Device {
	d := Device{Vendor: "amd", Name: "AMD GPU " + c.device}
	if name := k.text(c.dir + "/product_name"); name != "" {
		d.Name = name
	}
	total, ok := k.number(c.dir + "/mem_info_vram_total")
	if !ok {
		d.Note = "its driver does not tell how much memory it has"
		return d
	}
	d.Total, d.Unified = total, slices.Contains(integratedAMD, c.device)
	if !d.Unified {
		return d
	}
	lent, ok := k.number(c.dir + "/mem_info_gtt_total")
	if !ok {
		return d
	}
	if ram := parseMeminfo(k.read("proc/meminfo")); ram > 0 {
		lent = min(lent, ram/8*7) // some are set to lend more than there is; the machine needs some itself
	}
	d.Total = total + lent
	d.Note = fmt.Sprintf("%s set aside and %s of the machine's memory", Size(total), Size(lent))
	return d
}

// intel reads one Intel card: the driver xe tells a size for each tile.
func (k kernel) intel(c card) Device {
	d := Device{Vendor: "intel", Name: "Intel GPU " + c.device}
	for tile := range 16 {
		size, ok := k.number(fmt.Sprintf("%s/tile%d/physical_vram_size_bytes", c.dir, tile))
		if !ok {
			break
		}
		d.Total += size
	}
	if d.Total == 0 {
		d.Note = "its driver does not tell how much memory it has; give its size in the configuration"
	}
	return d
}

// parseMeminfo reads /proc/meminfo: all of the machine's memory in bytes, 0 = not known.
func parseMeminfo(raw []byte) uint64 {
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "MemTotal:" || fields[2] != "kB" {
			continue
		}
		if n, err := strconv.ParseUint(fields[1], 10, 64); err == nil && n <= math.MaxUint64>>10 {
			return n << 10
		}
	}
	return 0
}

// unify gives d the memory that it shares with the processor: three quarters of the machine's,
// as the rest is needed to run it.
func (k kernel) unify(d Device) Device {
	total := parseMeminfo(k.read("proc/meminfo"))
	d.Unified, d.Total, d.Note = true, total/4*3, "it shares the machine's memory, which is not readable"
	if total > 0 {
		d.Note = fmt.Sprintf("shares the machine's memory: three quarters of %s", Size(total))
	}
	return d
}
