package vram

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"

	"reverie/internal/lazyregexp"
)

// The query for nvidia-smi. The name comes last, because names contain commas.
var (
	columns = []string{"index", "memory.total", "name"}
	query   = []string{"--query-gpu=" + strings.Join(columns, ","), "--format=csv,noheader,nounits"}
)

// gpu is one row of nvidia-smi. Sizes are bytes; "[N/A]" and the like are kept as words.
type gpu struct {
	index     int
	name      string
	total     uint64
	totalText string // the text in place of a number; "" = there is a number
}

// parseSMI parses the CSV of nvidia-smi. Other lines (warnings, a header, an error) are returned in
// other, shortened.
func parseSMI(out []byte) (rows []gpu, other []string) {
	for _, line := range cleanLines(out) {
		if row, ok := parseRow(line); ok {
			rows = append(rows, row)
		} else if len(other) < 8 && !strings.HasPrefix(line, columns[0]+",") {
			other = append(other, clip(line, 200))
		}
	}
	return rows, other
}

// cleanLines returns the non-empty lines without carriage returns, byte order marks and control
// characters.
func cleanLines(out []byte) (all []string) {
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

// parseRow parses the cells of a line, in the order of columns.
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
	g.index = int(index)
	g.total, g.totalText = parseMemory(cells[1])
	if g.name = clip(strings.Trim(cells[2], `"`), 100); g.name == "" || strings.HasPrefix(g.name, "[") { // an error in brackets
		g.name = "NVIDIA GPU " + strconv.Itoa(g.index)
	}
	return g, true
}

// parseMemory parses a size in MiB. Anything else is returned as words.
func parseMemory(cell string) (bytes uint64, words string) {
	n, err := strconv.ParseUint(cell, 10, 64)
	if err != nil || n > maxSize>>20 {
		return 0, clip(cmp.Or(cell, "nothing"), 60)
	}
	return n << 20, ""
}

// sharedMemoryChips matches NVIDIA chips without memory of their own. The size that they report is
// unreliable: some report only what the firmware reserved.
var sharedMemoryChips = lazyregexp.New(`(?i)\b(?:GB10|N1X?|Orin|Xavier|Thor|Tegra|Jetson|nvgpu)\b`)

// device converts the row to a Device. Chips with shared memory count as unified.
func (g gpu) device() Device {
	d := Device{Vendor: "nvidia", Name: g.name, Total: g.total}
	switch {
	case g.totalText != "":
		d.Note = "nvidia-smi says " + g.totalText + " in place of its memory"
	case g.total == 0:
		d.Note = "nvidia-smi says it has no memory"
	}
	return d
}

func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
