package vram

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
)

// kernel reads what Linux says of its GPUs in files. root is "/", or a tree of a test.
type kernel struct{ root fs.FS }

func (k kernel) read(name string) []byte {
	raw, _ := fs.ReadFile(k.root, name) // an unreadable file counts as empty
	return raw
}

// readText returns a small file as one clean line; "" if it cannot be read.
func (k kernel) readText(name string) string {
	return clip(strings.Join(cleanLines(k.read(name)), " "), 100)
}

// readNumber parses a file that holds a plausible decimal number of bytes.
func (k kernel) readNumber(name string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(k.readText(name), 10, 64)
	return n, err == nil && n <= maxSize
}

// card is a GPU on the PCI bus.
type card struct{ dir, slot, vendor, device string }

// cards lists the GPUs on PCI, including those without a screen.
func (k kernel) cards() (cards []card) {
	devices, _ := fs.ReadDir(k.root, "sys/bus/pci/devices") // an unreadable folder counts as empty
	for _, d := range devices {
		dir := "sys/bus/pci/devices/" + d.Name()
		if class := k.readText(dir + "/class"); strings.HasPrefix(class, "0x03") || strings.HasPrefix(class, "0x12") {
			vendor, device := strings.ToLower(k.readText(dir+"/vendor")), strings.ToLower(k.readText(dir+"/device"))
			cards = append(cards, card{dir, d.Name(), vendor, device})
		}
	}
	return cards
}

// integratedAMD are device ids of AMD processors with a GPU. The firmware reserves its own memory;
// the rest is shared with the machine.
var integratedAMD = []string{
	"0x15dd", "0x15d8", // Raven, Picasso
	"0x1636", "0x164c", "0x1638", "0x15e7", // Renoir, Lucienne, Cezanne, Barcelo
	"0x1681", "0x164d", "0x164e", "0x13c0", // Rembrandt, Raphael, Granite Ridge
	"0x163f", "0x1435", "0x1506", // Van Gogh, Sephiroth, Mendocino
	"0x15bf", "0x15c8", "0x1900", "0x1901", // Phoenix, Hawk Point
	"0x150e", "0x1586", "0x1114", // Strix, Strix Halo, Krackan
}

// amd returns one AMD card. Note says why a size is unknown.
func (k kernel) amd(c card) Device {
	d := Device{Vendor: "amd", Name: "AMD GPU " + c.device}
	if name := k.readText(c.dir + "/product_name"); name != "" {
		d.Name = name
	}
	total, ok := k.readNumber(c.dir + "/mem_info_vram_total")
	if !ok {
		d.Note = "its driver does not tell how much memory it has"
		return d
	}
	d.Total, d.Unified = total, slices.Contains(integratedAMD, c.device)
	if !d.Unified {
		return d
	}
	lent, ok := k.readNumber(c.dir + "/mem_info_gtt_total")
	if !ok {
		return d
	}
	if ram := parseMeminfo(k.read("proc/meminfo")); ram > 0 {
		lent = min(lent, ram/8*7) // some machines are set to lend more than they have; leave some for the system
	}
	d.Total = total + lent
	d.Note = fmt.Sprintf("%s set aside and %s of the machine's memory", Size(total), Size(lent))
	return d
}

// intel returns one Intel card. The driver xe reports a size for each tile.
func (k kernel) intel(c card) Device {
	d := Device{Vendor: "intel", Name: "Intel GPU " + c.device}
	for tile := range 16 {
		size, ok := k.readNumber(fmt.Sprintf("%s/tile%d/physical_vram_size_bytes", c.dir, tile))
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

// parseMeminfo returns the total of /proc/meminfo in bytes; 0 = unknown.
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

// asUnified gives d the memory that it shares with the processor: three quarters of the machine's.
func (k kernel) asUnified(d Device) Device {
	total := parseMeminfo(k.read("proc/meminfo"))
	d.Unified, d.Total, d.Note = true, total/4*3, "it shares the machine's memory, which is not readable"
	if total > 0 {
		d.Note = fmt.Sprintf("shares the machine's memory: three quarters of %s", Size(total))
	}
	return d
}
