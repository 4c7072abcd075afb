package vram

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const mib = 1 << 20

// near tells that got is within share of want.
func near(got uint64, want, share float64) bool { return math.Abs(float64(got)-want) <= want*share }

// need is what a model takes on one GPU with a window.
func (m model) need(t *testing.T, window int) costs {
	t.Helper()
	return m.shape(t).costs(window, Options{})
}

// toCompute is what computing takes on the only GPU.
func (c costs) toCompute() uint64 { first, _ := c.on(1); return first }

func (c costs) total() uint64 { return c.weights + c.cache + c.toCompute() + overhead }

// What the estimate is held against was measured, with llama.cpp on GPUs of
// NVIDIA's; in MiB. Sizes of windows are exact, of all together within 2 %.
func TestCostsAsMeasured(t *testing.T) {
	cases := []struct {
		name                        string
		model                       model
		window                      int
		weights, kv, compute, total float64 // total without overhead; 0 = not measured
	}{
		{"Llama 3.1 8B", llama(), 8192, 4403.49, 1024, 560, 5987.49},
		{"Llama 3.1 8B, 32768", llama(), 32768, 4403.49, 4096, 2144, 0},
		{"Llama 3.1 8B, 131072", llama(), 131072, 4403.49, 16384, 8480, 0},
		{"gpt-oss 20B", gptOSS(), 131072, 10949.4, 3087, 0, 0}, // 3090 with flash attention, which rounds up to 256 tokens,
		{"latent attention", latentModel(), 32768, 0, 1692, 0, 0},
		{"Gemma 3 12B", gemma(), 8192, 6956.32, 992, 0, 0},
	}
	for _, c := range cases {
		use := c.model.need(t, c.window)
		if c.weights > 0 && !near(use.weights, c.weights*mib, 0.0001) {
			t.Errorf("%s: %.2f MiB of weights, want %.2f", c.name, float64(use.weights)/mib, c.weights)
		}
		if use.cache != uint64(c.kv*mib) {
			t.Errorf("%s: %.2f MiB for the window, want %.2f", c.name, float64(use.cache)/mib, c.kv)
		}
		if c.compute > 0 && !near(use.toCompute(), c.compute*mib, 0.02) {
			t.Errorf("%s: %.2f MiB to compute, want %.2f", c.name, float64(use.toCompute())/mib, c.compute)
		}
		if total := use.total() - overhead; c.total > 0 && !near(total, c.total*mib, 0.02) {
			t.Errorf("%s: %.2f MiB, want %.2f", c.name, float64(total)/mib, c.total)
		}
	}
}

// What the layers keep that do not keep every token.
func TestLayersThatKeepLess(t *testing.T) {
	const state = 4 * (3*(4096+2*16*128) + 128*4096) // in 32 bits, as the published formula has it
	for _, window := range []uint64{256, 32768} {
		if got, want := hybrid().need(t, int(window)).cache, 12*2*2*256*2*window+36*state; got != want {
			t.Errorf("hybrid, %d tokens: %d bytes, want %d", window, got, want)
		}
	}
	if got, want := gptOSS().need(t, 8192).cache, uint64(12*2*8*64*2*(8192+128+512)); got != want {
		t.Errorf("gpt-oss: %d bytes, want %d: every second layer slides, over a batch more", got, want)
	}
	shared := dense("gemma3n", 35, 2048, 8, 2, 256, 16384, 262400, true)
	shared.values["attention.sliding_window"] = 512
	if got, want := shared.need(t, 32768).cache, uint64(2*2*256*2*(4*32768+16*1024)); got != want {
		t.Errorf("shared: %d bytes, want %d: layers after the 20th keep nothing, every 5th keeps all", got, want)
	}
	none := dense("deci", 4, 2048, 8, 2, 256, 4096, 32000, false)
	none.values["attention.head_count_kv"] = []int32{2, 0, 1, 0}
	if got, want := none.need(t, 4096).cache, uint64((2+1)*2*256*2*4096); got != want {
		t.Errorf("layers without attention: %d bytes, want %d", got, want)
	}
	pattern := dense("mimo2", 4, 2048, 8, 2, 256, 4096, 32000, false)
	maps.Copy(pattern.values, map[string]any{"attention.sliding_window": 512, "attention.sliding_window_pattern": []int32{1, 0, 1, 0}})
	if got, want := pattern.need(t, 8192).cache, uint64(2*2*256*2*(2*8192+2*1024)); got != want {
		t.Errorf("layers that slide, told by numbers: %d bytes, want %d", got, want)
	}
	other := latentModel() // as converters before April 2025 wrote it: unfolded in the cache
	delete(other.values, "attention.key_length_mla")
	delete(other.values, "attention.value_length_mla")
	maps.Copy(other.values, map[string]any{"attention.head_count_kv": 20, "attention.key_length": 256, "attention.value_length": 256})
	if got, want := other.need(t, 4096).cache, uint64(47*20*512*2*4096); got != want {
		t.Errorf("latent attention, unfolded: %d bytes, want %d", got, want)
	}
	layers := make([]int32, 47)
	for i := range layers {
		layers[i] = int32(20 * (i % 2))
	}
	mixed := latentModel()
	maps.Copy(mixed.values, map[string]any{"attention.head_count_kv": layers, "kda.head_dim": 128, "ssm.conv_kernel": 4})
	mixed.arch = "kimi-linear"
	const kda = 24 * 4 * (3*3*20*128 + 20*128*128)
	if got, want := mixed.need(t, 4096).cache, uint64(23*576*2*4096+kda); got != want {
		t.Errorf("latent attention in 23 layers of 47: %d bytes, want %d", got, want)
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
		{"llama", llama(), []int{10752, 32000, 52992, 97280, 131072, 31744, 33536, 60160}},
		{"gemma", gemma(), []int{0, 31744, 73472, 131072, 131072, 38656, 41472, 101376}},
		{"gpt-oss", gptOSS(), []int{0, 0, 23296, 78848, 131072, 6144, 8448, 33024}},
		{"latent", latentModel(), []int{7424, 50688, 93952, 184064, 202752, 51712, 55296, 107776}},
		{"hybrid", hybrid(), []int{84992, 155648, 226304, 262144, 262144, 110592, 155648, 155136}},
	} {
		s := c.model.shape(t)
		for i, set := range sets {
			if f := fit(t, s, cards(set...), Options{}); f.Window != c.want[i] {
				t.Errorf("%s on %d MiB: %d tokens, want %d (%s)", c.name, set, f.Window, c.want[i], f.Reason)
			}
		}
	}
}

// The window is the longest one: it fits, and the next does not.
func TestFitIsTheLongest(t *testing.T) {
	for name, m := range map[string]model{"gemma": gemma(), "latent": latentModel(), "hybrid": hybrid()} {
		s := m.shape(t)
		rapid.Check(t, func(t *rapid.T) {
			free := rapid.SliceOfN(rapid.Uint64Range(500, 30000), 1, 5).Draw(t, "free")
			o := Options{Beside: rapid.Uint64Range(0, 2<<30).Draw(t, "beside")}
			f := fit(t, s, cards(free...), o)
			if f.Window%step != 0 || f.Window > s.trained || f.Reason == "" {
				t.Fatalf("not an answer: %+v", f)
			}
			room, _, _ := rooms(cards(free...), 0)
			if f.Window > 0 {
				checkPlaces(t, s.costs(f.Window, o), room)
			}
			if next := f.Window + step; next <= s.trained && s.costs(next, o).place(room) != nil {
				t.Fatalf("%s: %d tokens, but %d fit too", name, f.Window, next)
			}
			if f.Window == 0 {
				return
			}
			c := s.costs(f.Window, o) // the same window fits into more
			more, _, _ := rooms(cards(append(free, 8000)...), 0)
			free[0] += 1000
			larger, _, _ := rooms(cards(free...), 0)
			if c.place(more) == nil || c.place(larger) == nil {
				t.Fatalf("%s: %d tokens fit into %v, but not with a GPU more, or more room", name, f.Window, room)
			}
		})
	}
}

// checkPlaces checks that every part of the model has one place, within its room.
func checkPlaces(t *rapid.T, c costs, rooms []uint64) {
	layers := c.place(rooms)
	next := len(c.layers)
	for i, n := range layers {
		used := c.compute[min(len(layers)-1, 1)] + overhead
		if i == 0 {
			used = max(used, c.floor+overhead) + c.first
		}
		for range n {
			next--
			used += c.layers[next]
		}
		if used > rooms[i] {
			t.Fatalf("GPU %d of %v: %d bytes, %v layers", i, rooms, used, layers)
		}
	}
	if len(layers) == 0 || next != 0 {
		t.Fatalf("%d layers have no place: %v", next, layers)
	}
}

// More of anything never takes less.
func TestCostsGrow(t *testing.T) {
	for name, m := range map[string]model{"llama": llama(), "gemma": gemma(), "gpt-oss": gptOSS(), "latent": latentModel(), "hybrid": hybrid()} {
		s := m.shape(t)
		rapid.Check(t, func(t *rapid.T) {
			window, more := rapid.IntRange(1, 1<<20).Draw(t, "window"), rapid.IntRange(0, 1<<20).Draw(t, "more")
			less, long := s.costs(window, Options{}), s.costs(window+more, Options{})
			if long.total() < less.total() || long.compute[1] < less.compute[1] {
				t.Fatalf("%s: %d tokens take %d bytes, %d more %d", name, window, less.total(), more, long.total())
			}
		})
	}
}

func TestSeveralDevices(t *testing.T) {
	s := llama().shape(t)
	o := Options{Limit: 16384}
	// One that can hold it alone is used alone, wherever it stands.
	alone := s.costs(16384, o)
	room, _, _ := rooms(cards(3000, 24000, 2000), 0)
	if layers := alone.place(room); len(layers) != 1 || room[0] != 22800*mib {
		t.Errorf("one large among small: %v in %v", layers, room)
	}
	// Two unequal ones together hold what neither does.
	f := fit(t, s, cards(4500, 9000), Options{})
	both := s.costs(f.Window, o)
	room, _, _ = rooms(cards(4500, 9000), 0)
	if layers := both.place(room); f.Window <= fit(t, s, cards(9000), Options{}).Window || len(layers) != 2 || layers[0] <= layers[1] {
		t.Errorf("two unequal: %+v, %v", f, layers)
	}
	// What goes from one to the other is held on both.
	if both.compute[1] <= both.compute[0] {
		t.Errorf("two GPUs: %d bytes to compute on the second, alone %d", both.compute[1], both.compute[0])
	}
	if with := s.costs(8192, Options{Beside: 1000 * mib}); with.weights != alone.weights+1000*mib || with.first != alone.first+1000*mib {
		t.Errorf("with 1000 MiB beside: %+v, without %+v", with, alone)
	}
	// Crumbs do not add up: no layer goes where the overhead alone does.
	if f := fit(t, s, cards(1400, 1400, 1400, 1400, 1400, 1400, 1400, 1400, 1400, 1400), o); f.Window != 0 || !strings.Contains(f.Reason, "no window fits") {
		t.Errorf("crumbs: %+v", f)
	}
	// What stands behind the last layer has to be on one.
	words := dense("llama", 2, 512, 8, 2, 64, 1024, 1000000, false).shape(t)
	if f := fit(t, words, cards(3000, 3000), Options{}); f.Window != 0 {
		t.Errorf("a vocabulary that is too large for each: %+v", f)
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
	for _, held := range []uint64{1 << 40, math.MaxUint64} {
		if got, want := fit(t, s, r, Options{Held: held}).Window, fit(t, s, cards(24000), Options{}).Window; got != want {
			t.Errorf("holding more than is taken: %d tokens, want %d", got, want)
		}
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
		{s, Report{State: None, Reason: "this machine has no GPU"}, Options{}, "none: this machine has no GPU"},
		{s, Report{State: Known, Reason: "all slices"}, Options{}, "no GPU counts"},
		{s, cards(8192), Options{Limit: -1}, "-1 tokens"},
		{s, cards(8192), Options{Limit: 255}, "below 256"},
		{s, cards(8192), Options{Beside: math.MaxUint64}, "beyond any machine"},
		{Shape{trained: 4096}, cards(8192), Options{}, "shape of the model is not known"},
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
