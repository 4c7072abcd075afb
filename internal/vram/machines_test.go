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

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what the machines of testdata answer now")

// machine is one archive: the kernel's files, what the tools wrote, and the
// report that comes of it.
type machine struct {
	root  fstest.MapFS
	tools map[string]string
	want  string
}

func load(t *testing.T, file string) (machine, *txtar.Archive) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
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
		return output{code: -1}, errSilent
	}
	code, _ := strconv.Atoi(strings.TrimSpace(m.tools[status]))
	return output{text: []byte(m.tools[reply]), code: code}, nil
}

// prober is a prober on the machine, with a clock that stands still.
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
			if err := encoder.Encode(r); err != nil {
				t.Fatal(err)
			}
			// The name of the file says the answer; no update changes that.
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
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
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
	var total, free uint64
	for _, d := range r.Devices {
		if d.Free > d.Total || !d.FreeKnown && d.Free != 0 && !d.Unified || d.Counted && d.Total == 0 || d.Total == 0 && d.Note == "" {
			t.Errorf("a device that cannot be: %+v", d)
		}
		if d.Counted {
			total, free = total+d.Total, free+d.Free
		}
	}
	if !r.FreeKnown {
		free = 0
	}
	if r.Total != total || r.Free != free || (r.State == Known) != (r.Total > 0) {
		t.Errorf("the sums are not those of the counted devices: %+v", r)
	}
}
