package vram

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const mib = 1 << 20

// near tells that got is within share of want.
func near(got uint64, want, share float64) bool { return math.Abs(float64(got)-want) <= want*share }

// What the estimate is held against was measured, with llama.cpp on GPUs of NVIDIA's; in MiB.
func TestCostsAsMeasured(t *testing.T) {
	for _, c := range []struct {
		name                 string
		model                model
		window               int
		weights, kv, compute float64 // 0 = not measured
		within               float64
	}{
		{"Llama 3.1 8B", llama(), 8192, 4403.49, 1024, 560, .001},
		{"Llama 3.1 8B, 32768", llama(), 32768, 4403.49, 4096, 2144, .001},
		{"Llama 3.1 8B, 131072", llama(), 131072, 4403.49, 16384, 8480, .001},
		{"gpt-oss 20B", gptOSS(), 131072, 10949.4, 3087, 0, .01},
		{"Gemma 3 12B", gemma(), 8192, 6956.32, 992, 0, .001},
	} {
		use := c.model.shape(t).costs(c.window, 1)[0]
		for what, x := range map[string][2]float64{"weights": {float64(use.weights), c.weights}, "window": {float64(use.cache), c.kv}, "compute": {float64(use.compute), c.compute}} {
			if x[1] > 0 && !near(uint64(x[0]), x[1]*mib, c.within) {
				t.Errorf("%s: %.2f MiB of %s, want %.2f", c.name, x[0]/mib, what, x[1])
			}
		}
	}
}

// cards is a report of GPUs with so much free, in MiB.
func cards(free ...uint64) Report {
	f := findings{}
	for i, n := range free {
		f.devices = append(f.devices, Device{Vendor: "nvidia", Name: fmt.Sprintf("GPU %d", i), ID: fmt.Sprint(i), Total: n * mib, Free: n * mib, FreeKnown: true})
	}
	return f.conclude(time.Unix(0, 0))
}

func fit(t interface {
	Helper()
	Fatal(...any)
}, s Shape, r Report, o Options) Fitting {
	t.Helper()
	f, err := Fit(s, r, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Windows as they have been since the estimate was held against measured sizes.
func TestFitOnCards(t *testing.T) {
	sets := [][]uint64{{8000}, {12000}, {16000}, {24564}, {48000}, {8000, 8000}, {12000, 4500}, {9000, 9000, 9000, 9000}}
	for _, c := range []struct {
		name  string
		model model
		want  []int
	}{
		{"llama", llama(), []int{10752, 32000, 52992, 97280, 131072, 31744, 32000, 59904}},
		{"gemma", gemma(), []int{0, 31744, 73472, 131072, 131072, 35328, 31744, 93440}},
		{"gpt-oss", gptOSS(), []int{0, 0, 23296, 78848, 131072, 6144, 8192, 33024}},
	} {
		s := c.model.shape(t)
		var got []int
		for _, set := range sets {
			got = append(got, fit(t, s, cards(set...), Options{}).Window)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// The window is the longest one: it fits, and the next does not; more room never takes less.
func TestFitIsTheLongest(t *testing.T) {
	for name, m := range map[string]model{"gemma": gemma(), "gpt-oss": gptOSS()} {
		s := m.shape(t)
		rapid.Check(t, func(t *rapid.T) {
			free := rapid.SliceOfN(rapid.Uint64Range(500, 30000), 1, 5).Draw(t, "free")
			o := Options{Beside: rapid.Uint64Range(0, 2<<30).Draw(t, "beside")}
			f := fit(t, s, cards(free...), o)
			if f.Window%step != 0 || f.Window > s.trained || f.Reason == "" {
				t.Fatalf("not an answer: %+v", f)
			}
			room, _, _ := rooms(cards(free...), 0)
			if f.Window > 0 && !s.fits(f.Window, room, o.Beside) {
				t.Fatalf("%s: %d tokens do not fit", name, f.Window)
			}
			if next := f.Window + step; next <= s.trained && s.fits(next, room, o.Beside) {
				t.Fatalf("%s: %d tokens, but %d fit too", name, f.Window, next)
			}
			free[0] += 1000
			// Layers are split by the room of each, as llama.cpp does it: with more room a layer may come to one
			// that is full. That costs 2 % of the window at most in 2,100 draws.
			if larger := fit(t, s, cards(append(free, 8000)...), o); larger.Window < f.Window*95/100 {
				t.Fatalf("%s: %d tokens fit, with more room %d", name, f.Window, larger.Window)
			}
		})
	}
}

func TestSeveralDevices(t *testing.T) {
	s := llama().shape(t)
	o := Options{Limit: 16384}
	// Two unequal ones together hold what neither does.
	if f := fit(t, s, cards(4500, 9000), Options{}); f.Window <= fit(t, s, cards(9000), Options{}).Window {
		t.Errorf("two unequal: %+v", f)
	}
	if with, without := fit(t, s, cards(9000), Options{Beside: 1000 * mib}), fit(t, s, cards(9000), Options{}); with.Window >= without.Window {
		t.Errorf("with 1000 MiB beside: %+v, without %+v", with, without)
	}
	// Crumbs do not add up: the overhead and what computing takes are needed on each.
	if f := fit(t, s, cards(1400, 1400, 1400, 1400, 1400, 1400, 1400, 1400, 1400, 1400), o); f.Window != 0 || !strings.Contains(f.Reason, "no window fits") {
		t.Errorf("crumbs: %+v", f)
	}
	// What does not count is not used, and what is free counts, not what there is.
	r := cards(24000, 24000)
	r.Devices[0].Counted = false
	r.Devices[1].Free = 8000 * mib
	if got, want := fit(t, s, r, Options{}).Window, fit(t, s, cards(8000), Options{}).Window; got != want || got == 0 {
		t.Errorf("one counted, partly free: %d tokens, want %d", got, want)
	}
	// What the server holds of this model already will be free.
	if got, want := fit(t, s, r, Options{Held: 6000 * mib}).Window, fit(t, s, cards(14000), Options{}).Window; got != want {
		t.Errorf("holding the model already: %d tokens, want %d", got, want)
	}
	if got, want := fit(t, s, r, Options{Held: math.MaxUint64}).Window, fit(t, s, cards(24000), Options{}).Window; got != want {
		t.Errorf("holding more than is taken: %d tokens, want %d", got, want)
	}
	// What nobody tells is taken to be free, and said so.
	r.Devices[1].FreeKnown = false
	if f := fit(t, s, r, Options{}); !strings.Contains(f.Reason, "does not tell") {
		t.Errorf("free not known: %+v", f)
	}
	for free, want := range map[uint64]uint64{12000: 12000 - 2048, 100000: 95000} {
		shared := cards(free)
		shared.Devices[0].Unified = true
		if got, _, _ := rooms(shared, 0); got[0] != want*mib {
			t.Errorf("%d MiB shared with the processor: %d bytes of room, want %d MiB", free, got[0], want)
		}
	}
	if got, _, _ := rooms(cards(100000, 12000), 0); got[0] != 95000*mib || got[1] != (12000-1024)*mib {
		t.Errorf("room %d", got)
	}
}

func TestFitSaysWhatIsWrong(t *testing.T) {
	s := llama().shape(t)
	for _, c := range []struct {
		shape Shape
		r     Report
		o     Options
		want  string
	}{
		{s, Report{Reason: "no driver"}, Options{}, "unknown: no driver"},
		{s, Report{State: Known, Reason: "all slices"}, Options{}, "no GPU counts"},
		{s, cards(8192), Options{Limit: 255}, "below 256"},
		{Shape{}, cards(8192), Options{}, "below 256"},
	} {
		if f, err := Fit(c.shape, c.r, c.o); err == nil || !strings.Contains(err.Error(), c.want) || f.Window != 0 {
			t.Errorf("%+v: %+v, %v; want %q", c.o, f, err, c.want)
		}
	}
	f := fit(t, s, cards(24000), Options{Limit: 8000})
	if f.Window != 7936 || !strings.Contains(f.Reason, "more is not asked for") {
		t.Errorf("asked for 8000: %+v", f)
	}
	if f := fit(t, s, cards(140000), Options{}); f.Window != 131072 || !strings.Contains(f.Reason, "made for no more") {
		t.Errorf("more than enough: %+v", f)
	}
}

// small is a model with two layers.
func small() model { return dense("llama", 2, 512, 8, 2, 64, 1024, 1000, false) }

// A model in parts is read whole, whichever part is named.
func TestReadShapeInParts(t *testing.T) {
	whole, dir := small(), t.TempDir()
	name := func(i int) string { return filepath.Join(dir, fmt.Sprintf("small-%05d-of-00003.gguf", i)) }
	for i := range 3 {
		part := model{arch: "llama", values: map[string]any{"split.no": i, "split.count": 3}}
		if i == 0 {
			part.values = small().values
			part.values["split.count"] = 3
		}
		for j, tensor := range whole.tensors {
			if j%3 == i {
				part.tensors = append(part.tensors, tensor)
			}
		}
		if err := os.Rename(part.file(t), name(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := ReadShape(t.Context(), name(2))
	if err != nil || s.costs(8192, 1)[0] != whole.shape(t).costs(8192, 1)[0] || s.trained != 131072 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := os.Remove(name(3)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadShape(t.Context(), name(1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one part missing: %v", err)
	}
}

// TestReadShapeSaysWhatIsWrong: a file that cannot be used is an error that names it, never a panic.
func TestReadShapeSaysWhatIsWrong(t *testing.T) {
	second := small()
	second.arch = "deepseek4"
	adapter := small()
	adapter.values["general.type"] = "adapter"
	cut := small().file(t)
	if err := os.Truncate(cut, small().size()-4096); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text.gguf")
	if err := os.WriteFile(text, bytes.Repeat([]byte("no model "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe.gguf") // to open it would wait for ever
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		pipe: "not a plain file", t.TempDir(): "not a plain file", second.file(t): "set the window yourself",
		adapter.file(t): "goes with a model", cut: "downloaded to its end", text: "format GGUF",
	} {
		if _, err := ReadShape(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	header := small().header()
	rapid.Check(t, func(t *rapid.T) {
		damaged := bytes.Clone(header)
		for range rapid.IntRange(1, 4).Draw(t, "bytes") {
			damaged[rapid.IntRange(4, len(damaged)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		dir, err := os.MkdirTemp("", "model")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "m.gguf")
		if err := errors.Join(os.WriteFile(path, damaged, 0o600), os.Truncate(path, small().size())); err != nil {
			t.Fatal(err)
		}
		s, err := ReadShape(t.Context(), path)
		if err == nil {
			_, _ = Fit(s, cards(8000), Options{})
		}
	})
}
