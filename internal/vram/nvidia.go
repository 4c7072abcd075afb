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
	columns = []string{"index", "memory.total", "name"}
	query   = []string{"--query-gpu=" + strings.Join(columns, ","), "--format=csv,noheader,nounits"}
)

// gpu is one row of nvidia-smi as it stands: sizes are bytes, and what is no
// size keeps its words ("[N/A]").
type gpu struct {
	index   int
	name    string
	total   uint64
	noTotal string // the words in place of the number; "" = there is one
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
	g.index = int(index)
	g.total, g.noTotal = memory(cells[1])
	if g.name = shorten(strings.Trim(cells[2], `"`), 100); g.name == "" || strings.HasPrefix(g.name, "[") { // why there is none
		g.name = "NVIDIA GPU " + strconv.Itoa(g.index)
	}
	return g, true
}

// memory reads a size in MiB. Everything else is no size, and comes back as the words to show.
func memory(cell string) (bytes uint64, words string) {
	n, err := strconv.ParseUint(cell, 10, 64)
	if err != nil || n > most>>20 {
		return 0, shorten(cmp.Or(cell, "nothing"), 60)
	}
	return n << 20, ""
}

// sharing are names of NVIDIA chips that have no memory of their own. A number
// they report is not to be trusted: some report the little that the firmware
// set aside.
var sharing = regexp.MustCompile(`(?i)\b(?:GB10|N1X?|Orin|Xavier|Thor|Tegra|Jetson|nvgpu)\b`)

// device is the row as a device; unified machines lend their memory.
func (g gpu) device() Device {
	d := Device{Vendor: "nvidia", Name: g.name, Total: g.total}
	switch {
	case g.noTotal != "":
		d.Note = "nvidia-smi says " + g.noTotal + " in place of its memory"
	case g.total == 0:
		d.Note = "nvidia-smi says it has no memory"
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
