package vram

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What nvidia-smi is asked. The name stands last, because names hold commas.
var (
	columns = []string{"index", "uuid", "pci.bus_id", "memory.total", "memory.used", "memory.free", "name"}
	query   = []string{"--query-gpu=" + strings.Join(columns, ","), "--format=csv,noheader,nounits"}
)

// gpu is one row of nvidia-smi as it stands: sizes are bytes, and what is no
// size keeps its words ("[N/A]").
type gpu struct {
	index             int
	uuid, pci, name   string
	total, used, free uint64
	noTotal, noFree   string // the words in place of the number; "" = there is one
}

// parseSMI reads the CSV of nvidia-smi. Lines that are no rows (warnings before
// the table, a header, the text of an error) come back as other, cut short.
func parseSMI(out []byte) (rows []gpu, other []string) {
	for _, line := range lines(out) {
		if row, ok := parseRow(line); ok {
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

// parseRow reads the cells of a line, which stand as in columns.
func parseRow(line string) (g gpu, ok bool) {
	cells := strings.SplitN(line, ",", len(columns))
	if len(cells) != len(columns) {
		return g, false
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	index, err := strconv.ParseUint(cells[0], 10, 16)
	if err != nil {
		return g, false
	}
	g.index, g.uuid, g.pci = int(index), plainCell(cells[1]), address(plainCell(cells[2]))
	g.total, g.noTotal = memory(cells[3])
	g.used, _ = memory(cells[4])
	g.free, g.noFree = memory(cells[5])
	g.name = shorten(plainCell(strings.Trim(cells[6], `"`)), 100)
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

// memory reads a size in MiB. Everything else is no size, and comes back as the words to show.
func memory(cell string) (bytes uint64, words string) {
	n, err := strconv.ParseUint(cell, 10, 64)
	if err != nil || n > most>>20 {
		return 0, shorten(cmp.Or(cell, "nothing"), 60)
	}
	return n << 20, ""
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
var sharing = regexp.MustCompile(`(?i)\b(?:GB10|N1X?|Orin|Xavier|Thor|Tegra|Jetson|nvgpu)\b`)

// device is the row as a device; unified machines lend their memory.
func (g gpu) device() Device {
	d := Device{Vendor: "nvidia", Name: g.name, ID: g.uuid, PCI: g.pci, Total: g.total}
	switch {
	case g.noTotal != "":
		d.Note = "nvidia-smi says " + g.noTotal + " in place of its memory"
	case g.total == 0:
		d.Note = "nvidia-smi says it has no memory"
	case g.noFree == "" && max(g.used, g.free) <= g.total:
		d.Free, d.FreeKnown = g.free, true
	}
	return d
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
