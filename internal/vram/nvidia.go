package vram

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What nvidia-smi is asked. The name stands last, because names hold commas.
// Drivers that know nothing of divided GPUs refuse the whole question, so it is
// asked again without that column.
var (
	columns    = []string{"index", "uuid", "pci.bus_id", "memory.total", "memory.used", "memory.free", "mig.mode.current", "name"}
	oldColumns = []string{"index", "uuid", "pci.bus_id", "memory.total", "memory.used", "memory.free", "name"}
)

func query(columns []string) []string {
	return []string{"--query-gpu=" + strings.Join(columns, ","), "--format=csv,noheader,nounits"}
}

// gpu is one row of nvidia-smi as it stands: sizes are bytes, and what is no
// size keeps its words ("[N/A]").
type gpu struct {
	index              int
	uuid, pci, name    string
	total, used, free  uint64
	noTotal, noFree    string // the words in place of the number; "" = there is one
	divided            bool   // MIG is on: the GPU's own numbers are not for use
	insufficientRights bool
}

// parseSMI reads the CSV of nvidia-smi. Lines that are no rows (warnings before
// the table, a header, the text of an error) come back as other, cut short.
func parseSMI(out []byte, columns []string) (rows []gpu, other []string) {
	for _, line := range lines(out) {
		if row, ok := parseRow(line, columns); ok {
			rows = append(rows, row)
		} else if len(other) < 8 && !strings.HasPrefix(line, columns[0]+",") {
			other = append(other, shorten(line, 200))
		}
	}
	return rows, other
}

// lines are the lines with something on them, clean of carriage returns, byte
// order marks and whatever no terminal should see.
func lines(out []byte) (all []string) {
	for line := range strings.Lines(strings.ToValidUTF8(string(out), "?")) {
		line = strings.Map(func(r rune) rune {
			switch {
			case r == '\t' || r == '\u00a0':
				return ' '
			case !unicode.IsPrint(r):
				return -1
			}
			return r
		}, line)
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

func parseRow(line string, columns []string) (g gpu, ok bool) {
	cells := strings.SplitN(line, ",", len(columns))
	if len(cells) != len(columns) {
		return g, false
	}
	for i, column := range columns {
		cell := strings.TrimSpace(cells[i])
		switch column {
		case "index":
			index, err := strconv.ParseUint(cell, 10, 16)
			if err != nil {
				return g, false
			}
			g.index = int(index)
		case "uuid":
			g.uuid = plainCell(cell)
		case "pci.bus_id":
			g.pci = address(plainCell(cell))
		case "memory.total":
			g.total, g.noTotal = memory(cell)
			g.insufficientRights = strings.Contains(strings.ToLower(cell), "insufficient permission")
		case "memory.used":
			g.used, _ = memory(cell)
		case "memory.free":
			g.free, g.noFree = memory(cell)
		case "mig.mode.current":
			g.divided = strings.EqualFold(strings.Trim(cell, "[]"), "enabled")
		case "name":
			g.name = shorten(plainCell(strings.Trim(cell, `"`)), 100)
		}
	}
	if g.name == "" {
		g.name = "NVIDIA GPU " + strconv.Itoa(g.index)
	}
	return g, true
}

// plainCell is the cell, or nothing where the driver wrote why there is nothing.
func plainCell(cell string) string {
	if strings.HasPrefix(cell, "[") || cell == "N/A" || cell == "ERR!" {
		return ""
	}
	return cell
}

var sized = regexp.MustCompile(`^([0-9]{1,15}) ?(|B|KiB|MiB|GiB)$`)

// memory reads a size. Without a unit it is MiB, as nvidia-smi's nounits means.
// Everything else is no size, and comes back as the words to show: a decimal
// comma or a thousands mark is not guessed at.
func memory(cell string) (bytes uint64, words string) {
	m := sized.FindStringSubmatch(cell)
	if m == nil {
		if cell == "" {
			cell = "nothing"
		}
		return 0, shorten(cell, 60)
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	shift := map[string]int{"B": 0, "KiB": 10, "": 20, "MiB": 20, "GiB": 30}[m[2]]
	if err != nil || n > most>>shift {
		return 0, shorten(cell, 60)
	}
	return n << shift, ""
}

// address makes one spelling of the two that are in use: 00000000:01:00.0 and
// 0000:01:00.0.
func address(pci string) string {
	pci = strings.ToLower(pci)
	if domain, rest, ok := strings.Cut(pci, ":"); ok && len(domain) == 8 && strings.HasPrefix(domain, "0000") {
		return domain[4:] + ":" + rest
	}
	return pci
}

// sharing are names of NVIDIA chips that have no memory of their own. A number
// they report is not to be trusted: some report the little that the firmware
// set aside.
var sharing = []string{"GB10", "N1", "N1X", "Orin", "Xavier", "Thor", "Tegra", "Jetson", "nvgpu"}

func sharesMemory(name string) bool {
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.ContainsFunc(sharing, func(chip string) bool { return strings.EqualFold(word, chip) })
	})
}

// device is the row as a device; unified machines lend their memory.
func (g gpu) device() Device {
	d := Device{Vendor: "nvidia", Name: g.name, ID: g.uuid, PCI: g.pci, Total: g.total}
	switch {
	case g.noTotal != "":
		d.Note = "nvidia-smi says " + g.noTotal + " in place of its memory"
	case g.total == 0:
		d.Note = "nvidia-smi says it has no memory"
	case g.used > g.total:
		d.Note = "nvidia-smi says more is in use than there is; what is free is not known"
	case g.noFree == "":
		d.Free, d.FreeKnown = g.free, true
	}
	return d
}

// smiLog is the part of `nvidia-smi -q -x` that divided GPUs need.
type smiLog struct {
	GPUs []struct {
		ID   string `xml:"id,attr"`
		Name string `xml:"product_name"`
		UUID string `xml:"uuid"`
		MIG  struct {
			Devices []struct {
				Index    string `xml:"index"`
				Instance string `xml:"gpu_instance_id"`
				Memory   struct {
					Total string `xml:"total"`
					Free  string `xml:"free"`
				} `xml:"fb_memory_usage"`
			} `xml:"mig_device"`
		} `xml:"mig_devices"`
	} `xml:"gpu"`
}

// parseSlices reads the slices of divided GPUs out of `nvidia-smi -q -x`.
// Several compute instances of one GPU instance share its memory: it counts once.
func parseSlices(out []byte) ([]Device, error) {
	if start := bytes.Index(out, []byte("<nvidia_smi_log")); start > 0 {
		out = out[start:] // warnings, and a document type nobody needs
	}
	var log smiLog
	decoder := xml.NewDecoder(bytes.NewReader(out))
	decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	if err := decoder.Decode(&log); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return nil, fmt.Errorf("read the slices that nvidia-smi -q -x lists: %w", err)
	}
	var slices []Device
	seen := map[string]bool{}
	for _, g := range log.GPUs {
		owner, pci := clean(g.UUID, 80), address(clean(g.ID, 40))
		if owner == "" {
			owner = pci
		}
		for _, s := range g.MIG.Devices {
			id := owner + "/" + clean(s.Instance, 20)
			if seen[id] {
				continue
			}
			seen[id] = true
			d := Device{
				Vendor: "nvidia", ID: id, PCI: pci, Slice: true,
				Name: fmt.Sprintf("%s slice %s", clean(g.Name, 100), clean(s.Index, 20)),
			}
			var words string
			if d.Total, words = memory(clean(s.Memory.Total, 40)); words != "" {
				d.Note = "nvidia-smi says " + words + " in place of its memory"
			}
			d.Free, words = memory(clean(s.Memory.Free, 40))
			d.FreeKnown = words == "" && d.Total > 0
			slices = append(slices, d)
		}
	}
	return slices, nil
}

// clean makes one short printable line of text from outside.
func clean(text string, limit int) string {
	return shorten(strings.Join(lines([]byte(text)), " "), limit)
}

// shorten cuts at a rune, not inside one.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
