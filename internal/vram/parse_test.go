package vram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"reverie/internal/test/expect"
)

func TestMemoryCells(t *testing.T) {
	good := map[string]uint64{
		"0": 0, "24564": 24564 << 20, "4194304": 4 << 40,
	}
	for cell, want := range good {
		if got, words := parseMemory(cell); got != want || words != "" {
			t.Errorf("%q: %d, %q; want %d", cell, got, words, want)
		}
	}
	for _, cell := range []string{
		"", "[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "ERR!", "[GPU is lost]", "[Insufficient Permissions]",
		"-1", "+5", "24.564", "24,564", "24 564", "1e9", "0x10", "24564 MB", "24564 MiB", "4194305", "99999999999999999999", "٢٤", "24564 MiB free",
	} {
		if got, words := parseMemory(cell); got != 0 || words == "" {
			t.Errorf("%q: %d, %q; want no size and the words", cell, got, words)
		}
	}
}

func TestParseSMI(t *testing.T) {
	card := gpu{name: "NVIDIA GeForce RTX 4090", total: 24564 << 20}
	lost := gpu{index: 1, name: "NVIDIA GPU 1", totalText: "[GPU is lost]"}
	named := card
	named.name = "NVIDIA A100, PCIe, 40GB"
	cases := []struct {
		name, text string
		rows       []gpu
		other      []string
	}{
		{"plain", goodRow, []gpu{card}, nil},
		{"no line end", strings.TrimSpace(goodRow), []gpu{card}, nil},
		{"carriage returns, empty lines", "\r\n\r\n" + strings.ReplaceAll(goodRow, "\n", "\r\n") + "\r\n", []gpu{card}, nil},
		{"byte order mark", "\ufeff" + goodRow, []gpu{card}, nil},
		{"no spaces", strings.ReplaceAll(goodRow, ", ", ","), []gpu{card}, nil},
		{"no-break spaces", strings.ReplaceAll(goodRow, ", ", ",\u00a0"), []gpu{card}, nil},
		{"header", "index, memory.total [MiB], name\n" + goodRow, []gpu{card}, nil},
		{"warnings around", "WARNING: bad, very bad\n" + goodRow + "done\n", []gpu{card}, []string{"WARNING: bad, very bad", "done"}},
		{"commas in the name", strings.Replace(goodRow, card.name, named.name, 1), []gpu{named}, nil},
		{"a lost one", goodRow + "1, [GPU is lost], [GPU is lost]", []gpu{card, lost}, nil},
		{"cut in the row", "0, 245", nil, []string{"0, 245"}},
		{"text with commas", "it, has, failed, because, of, a, thing", nil, []string{"it, has, failed, because, of, a, thing"}},
		{"negative index", "-" + goodRow, nil, []string{"-" + strings.TrimSpace(goodRow)}},
		{"what no terminal should see", "\x1b[31mred\x07\xff\n", nil, []string{"[31mred?"}},
		{"nothing", "", nil, nil},
	}
	for _, c := range cases {
		rows, other := parseSMI([]byte(c.text))
		if diff := cmp.Diff(c.rows, rows, cmp.AllowUnexported(gpu{})); diff != "" {
			t.Errorf("%s: rows (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.other, other); diff != "" {
			t.Errorf("%s: other lines (-want +got):\n%s", c.name, diff)
		}
	}
	_, other := parseSMI([]byte("x" + strings.Repeat("é", 500) + "\n" + strings.Repeat("x\n", 500)))
	if len(other) != 8 || len(other[0]) > 210 || !utf8.ValidString(other[0]) {
		t.Errorf("%d lines kept, the first of %d bytes; want 8 and about 200", len(other), len(other[0]))
	}
}

func TestChipsThatShareMemory(t *testing.T) {
	for name, want := range map[string]bool{
		"NVIDIA GB10": true, "Orin (nvgpu)": true, "NVIDIA Thor": true, "NVIDIA N1X": true, "NVIDIA Jetson AGX": true, "xavier": true,
		"NVIDIA GH200 480GB": false, "NVIDIA GB200": false, "NVIDIA GB100": false, "NVIDIA GeForce RTX 4090": false, "": false, "NVIDIA N100": false,
	} {
		if got := sharedMemoryChips().MatchString(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

// conclude depends on the findings only.
func TestConclude(t *testing.T) {
	card := func(vendor string, total uint64) Device {
		return Device{Vendor: vendor, Name: vendor, Total: total << 30}
	}
	shared := func(d Device) Device { d.Unified = true; return d }
	silent := func(d Device) Device { d.Note = "not told"; return d }
	cases := []struct {
		name   string
		f      findings
		state  State
		total  uint64 // GiB
		reason string
	}{
		{"nothing found", findings{}, Unknown, 0, "no GPU was found"},
		{"a device without size", findings{devices: []Device{silent(card("nvidia", 0))}}, Unknown, 0, "nvidia: not told"},
		{"two", findings{devices: []Device{card("nvidia", 24), card("nvidia", 8)}}, Known, 32, "; nvidia with 8192"},
		{"many", findings{devices: []Device{card("nvidia", 8), card("nvidia", 8), card("nvidia", 8)}}, Known, 24, "3 GPUs with 24576 MiB in all"},
		{"two vendors", findings{devices: []Device{card("amd", 16), card("nvidia", 12), card("nvidia", 12)}}, Known, 24, "nvidia"},
		{"discrete before shared", findings{devices: []Device{shared(card("amd", 64)), card("nvidia", 8)}}, Known, 8, "nvidia"},
		{"discrete of the same vendor", findings{devices: []Device{shared(card("amd", 64)), card("amd", 8)}}, Known, 8, "amd"},
		{"shared alone", findings{devices: []Device{shared(card("apple", 64))}}, Known, 64, "shared with the processor"},
		{"shared, and a doubt", findings{devices: []Device{shared(card("amd", 64))}, doubts: []string{"silence"}}, Unknown, 0, "silence"},
		{"shared, and one without size", findings{devices: []Device{shared(card("amd", 64)), silent(card("nvidia", 0))}}, Unknown, 0, "nvidia: not told"},
		{"discrete, and a doubt", findings{devices: []Device{card("amd", 8)}, doubts: []string{"silence"}}, Known, 8, "(not counted: silence)"},
	}
	for _, c := range cases {
		c.f.step("a step")
		r := c.f.report(time.Now())
		if r.State != c.state || r.Total != c.total<<30 || !strings.Contains(r.Reason, c.reason) {
			t.Errorf("%s: %v %d GiB %q\nwant %v %d GiB …%s…", c.name, r.State, r.Total>>30, r.Reason, c.state, c.total, c.reason)
		}
		invariants(t, r)
	}
}

func TestParseMeminfo(t *testing.T) {
	for text, want := range map[string]uint64{
		"MemTotal:       127600748 kB\nMemFree:  5 kB\n": 127600748 << 10,
		"MemFree: 5 kB\nMemTotal: 100 kB\n":              100 << 10,
		"MemTotal: 100\nMemFree: 200 MB\n":               0,
		"MemTotal: 99999999999999999 kB\n":               0,
		"":                                               0,
	} {
		expect.Equal(t, parseMeminfo([]byte(text)), want, text)
	}
}

func TestParseSysctl(t *testing.T) {
	head := "hw.optional.arm64: 1\nmachdep.cpu.brand_string: Apple M3\n"
	for text, want := range map[string]uint64{
		head + "hw.memsize: 17179869184\n":                                       17179869184 / 3 * 2,
		head + "hw.memsize: 38654705664\n":                                       24 << 30, // 36 GiB is the last with two thirds
		head + "hw.memsize: 51539607552\n":                                       36 << 30,
		head + "hw.memsize: 51539607552\niogpu.wired_limit_mb: 0\n":              36 << 30,
		head + "hw.memsize: 51539607552\niogpu.wired_limit_mb: 40960\n":          40 << 30,
		head + "hw.memsize: 51539607552\niogpu.wired_limit_mb: 999999\n":         36 << 30, // more than there is
		head + "hw.memsize: 51539607552\niogpu.wired_limit_mb: 1099511627775\n":  36 << 30,
		"hw.memsize: 51539607552\nmachdep.cpu.brand_string: Apple M1\n":          36 << 30,
		"hw.memsize: 51539607552\nhw.optional.arm64: 1\n":                        36 << 30,
		head + "hw.memsize: 0\n":                                                 0,
		head + "hw.memsize: many\n":                                              0,
		head:                                                                     0,
		"hw.memsize: 51539607552\nmachdep.cpu.brand_string: Intel(R) Core(TM)\n": 0,
		"hw.memsize: 51539607552\nhw.optional.arm64: 0\n":                        0,
		head + "hw.memsize: 9000000000000000\n":                                  0,
		"\x00\x01":                                                               0,
	} {
		d, err := parseSysctl([]byte(text))
		if d.Total != want || (err == nil) != (want > 0) || err == nil && !d.Unified {
			t.Errorf("%q: %d, %v; want %d", text, d.Total, err, want)
		}
	}
}

// printable fails if text is unfit for display.
func printable(t *testing.T, what, text string, limit int) {
	t.Helper()
	if len(text) > limit || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%s is not fit to be shown: %q", what, text)
	}
}

func FuzzNvidiaSMI(f *testing.F) {
	f.Add([]byte(goodRow))
	f.Add([]byte("0, [N/A], NVIDIA GB10\r\nWARNING: x\n"))
	f.Add([]byte("\xff\xfe0\x00,\x00"))
	f.Add([]byte("No devices were found\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, other := parseSMI(text)
		for _, line := range other {
			printable(t, "a line", line, 203)
		}
		var all findings
		for _, g := range rows {
			printable(t, "a name", g.name, 103)
			printable(t, "words", g.totalText, 63)
			if g.total > maxSize || g.totalText != "" && g.total != 0 {
				t.Errorf("impossible row %+v", g)
			}
			all.devices = append(all.devices, g.device())
		}
		all.step("fuzz")
		invariants(t, all.report(time.Now()))
	})
}

var update = flag.Bool("update", false, "write what the machines of testdata answer now")

// machine is one archive: the kernel's files, the tools' output, and the expected report.
type machine struct {
	root  fstest.MapFS
	tools map[string]string
	want  string
}

func load(t *testing.T, file string) (machine, *txtar.Archive) {
	t.Helper()
	archive := expect.Must(txtar.ParseFile(file))(t)
	m := machine{root: fstest.MapFS{}, tools: map[string]string{}}
	for _, f := range archive.Files {
		switch name := f.Name; {
		case name == "want.json":
			m.want = string(f.Data)
		case name == "goos" || strings.HasPrefix(name, "nvidia-smi/") || strings.HasPrefix(name, "sysctl"):
			m.tools[name] = string(f.Data)
		case strings.HasSuffix(name, "/"):
			m.root[strings.TrimSuffix(name, "/")] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		default:
			m.root[name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
		}
	}
	return m, archive
}

// run plays the tools.
func (m machine) run(_ context.Context, path string, args, _ []string) (output, error) {
	reply, status := "nvidia-smi/table", "nvidia-smi/status"
	switch {
	case path == sysctlPath && slices.Equal(args, sysctlNames):
		reply, status = "sysctl", "sysctl.status"
	case !slices.Equal(args, query):
		return output{}, errors.New("nobody asks this: " + strings.Join(args, " "))
	}
	if _, hangs := m.tools["nvidia-smi/hangs"]; hangs {
		return output{code: -1}, errNoAnswer
	}
	code, _ := strconv.Atoi(strings.TrimSpace(m.tools[status]))
	return output{text: []byte(m.tools[reply]), code: code}, nil
}

// prober returns a prober on the machine, with a stopped clock.
func (m machine) prober() *Prober {
	goos := strings.TrimSpace(m.tools["goos"])
	if goos == "" {
		goos = "linux"
	}
	return New(Config{
		goos: goos, root: m.root, run: m.run, Log: slog.New(slog.DiscardHandler),
		find: func() (string, bool) {
			for tool := range m.tools {
				if strings.HasPrefix(tool, "nvidia-smi/") {
					return "/usr/bin/nvidia-smi", true
				}
			}
			return "", false
		},
		now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }, deadline: time.Minute,
	})
}

func TestMachines(t *testing.T) {
	files, err := filepath.Glob("testdata/machines/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("want at least 20 machines, got %d (%v)", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			m, archive := load(t, file)
			p := m.prober()
			r := p.Probe(t.Context())
			var buffer bytes.Buffer
			encoder := json.NewEncoder(&buffer)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			expect.OK(t, encoder.Encode(r))
			// The file name states the expected state; -update does not change it.
			want := Known
			if strings.HasPrefix(name, "unknown-") {
				want = Unknown
			}
			if r.State != want {
				t.Errorf("state %v, want %v (%s)", r.State, want, r.Reason)
			}
			invariants(t, r)
			if *update {
				archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want.json" })
				archive.Files = append(archive.Files, txtar.File{Name: "want.json", Data: buffer.Bytes()})
				expect.OK(t, os.WriteFile(file, txtar.Format(archive), 0o644))
				return
			}
			if diff := cmp.Diff(m.want, buffer.String()); diff != "" {
				t.Errorf("the report is not the one in the file (-want +got):\n%s", diff)
			}
		})
	}
}

// invariants hold for every report.
func invariants(t *testing.T, r Report) {
	t.Helper()
	if r.Reason == "" || len(r.Steps) == 0 || r.Devices == nil {
		t.Errorf("a report without reason, steps or devices: %+v", r)
	}
	var total uint64
	for _, d := range r.Devices {
		if d.Counted && d.Total == 0 || d.Total == 0 && d.Note == "" {
			t.Errorf("a device that cannot be: %+v", d)
		}
		if d.Counted {
			total += d.Total
		}
	}
	if r.Total != total || (r.State == Known) != (r.Total > 0) {
		t.Errorf("the sum is not that of the counted devices: %+v", r)
	}
}
