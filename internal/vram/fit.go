package vram

import (
	"cmp"
	"errors"
	"fmt"

	gguf "github.com/gpustack/gguf-parser-go"
)

// step is what windows are rounded to, in tokens: servers do so too.
const step = 256

// usualOverhead is what a server takes on each GPU for the driver's own state.
const usualOverhead = 457 << 20

// Options say how the server runs the model. The zero value is the careful one:
// 16 bit caches, no flash attention, one conversation at a time.
type Options struct {
	// KeyType and ValueType are what the server keeps of the window: f32, f16 (the
	// default), bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl. A ValueType smaller
	// than f16 needs flash attention; without it, it counts as f16.
	KeyType, ValueType string
	FlashAttention     bool
	// Sequences are the conversations that are held at once, each with the whole
	// window (OLLAMA_NUM_PARALLEL); 0 = 1, and 64 at most.
	Sequences int
	Batch     int // tokens worked on at once; 0 = 512
	// Limit is the longest window to think of, in tokens; 0 = what the model was made for.
	Limit int
	// Overhead is what is taken on each GPU besides, in bytes; 0 = 457 MiB.
	Overhead uint64
	// Margin is what Fit leaves free on each GPU, in bytes; 0 = one GiB or 5 % of what
	// is free there, whichever is more, and two GiB of memory shared with the processor.
	Margin uint64
	// Beside is loaded with the model, on one GPU: what sees pictures, adapters; in bytes.
	Beside uint64
	// Held is what the server holds of this very model already, in bytes: it is
	// counted as free, or the answer would depend on what was loaded before.
	Held uint64
}

// Use is what a model takes, in bytes.
type Use struct {
	Weights   uint64 `json:"weights"`
	KV        uint64 `json:"kv"`        // what it keeps of the window
	Recurrent uint64 `json:"recurrent"` // what it keeps whatever the window is
	Compute   uint64 `json:"compute"`
	Overhead  uint64 `json:"overhead"`
}

// Total is the sum, in bytes.
func (u Use) Total() uint64 { return u.Weights + u.KV + u.Recurrent + u.Compute + u.Overhead }

func (u Use) plus(v Use) Use {
	return Use{u.Weights + v.Weights, u.KV + v.KV, u.Recurrent + v.Recurrent, u.Compute + v.Compute, u.Overhead + v.Overhead}
}

// DeviceUse is what a model takes on one GPU.
type DeviceUse struct {
	Device int    `json:"device"` // its place in Report.Devices
	Name   string `json:"name"`
	Layers int    `json:"layers"`
	Use    Use    `json:"use"`
	Room   uint64 `json:"room"` // bytes that may be used there: what is free, less the margin
}

// Fitting is the answer of Fit.
type Fitting struct {
	// Window is the longest that fits, in tokens and for each conversation, a
	// multiple of 256; 0 = the model does not fit into the GPUs at all.
	Window  int         `json:"window"`
	Devices []DeviceUse `json:"devices"` // one way to place it; empty when Window is 0
	Host    uint64      `json:"host"`    // bytes of weights that stay with the processor
	// Assumed is true when a GPU does not tell what is free, and all of it was taken to be.
	Assumed bool   `json:"assumed"`
	Reason  string `json:"reason"` // in words, also what a window of 0 lacks
}

// Fit says the longest window that fits into the GPUs of r with all layers of the
// model there. It is pure, takes milliseconds, and never panics. An error says
// that nothing can be said: the GPU memory is not known, or o is wrong.
//
// The estimate is within some 2 % where it could be compared. A server before
// January 2026 keeps nearly twice as much for models with latent attention.
func Fit(s Shape, r Report, o Options) (Fitting, error) {
	rooms, assumed, err := rooms(r, o, true)
	if err != nil {
		return Fitting{}, err
	}
	if o, err = o.complete(); err != nil {
		return Fitting{}, err
	}
	longest := s.Trained
	if o.Limit > 0 {
		longest = min(longest, o.Limit)
	}
	longest = longest / step * step
	if longest < step {
		return Fitting{}, fmt.Errorf("a window below %d tokens is not thought of", step)
	}
	best := Fitting{Host: s.host, Assumed: assumed}
	err = guarded(func() error {
		low, high := 0, longest/step // low fits, or is 0; nothing above high is asked for
		for low < high {
			middle := low + (high-low+1)/2
			c, err := s.costs(middle*step, o)
			if err != nil {
				return err
			}
			if uses, left := placeOnFewest(c, rooms); left == 0 {
				low, best.Window, best.Devices = middle, middle*step, uses
			} else {
				high = middle - 1
			}
		}
		return best.explain(s, r, o, rooms, longest)
	})
	if err != nil {
		return Fitting{}, err
	}
	return best, nil
}

// explain fills in the reason.
func (f *Fitting) explain(s Shape, r Report, o Options, rooms []room, longest int) error {
	var all uint64
	for _, room := range rooms {
		all += room.bytes
	}
	if f.Window == 0 {
		need, err := s.Need(step, o)
		if err != nil {
			return err
		}
		f.Reason = fmt.Sprintf("no window fits: with the shortest the model takes %s, and %s of GPU memory may be used", Size(need.Total()), Size(all))
		return nil
	}
	var use Use
	for _, d := range f.Devices {
		use = use.plus(d.Use)
	}
	why := "more does not fit"
	switch {
	case f.Window == longest && o.Limit > 0 && o.Limit < s.Trained:
		why = "more is not asked for"
	case f.Window == longest:
		why = "the model was made for no more"
	}
	f.Reason = fmt.Sprintf("%d tokens fit, %s: %s of weights, %s for the window, %s to compute, %s besides, of %s that may be used",
		f.Window, why, Size(use.Weights), Size(use.KV+use.Recurrent), Size(use.Compute), Size(use.Overhead), Size(all))
	if f.Assumed {
		f.Reason += " if nothing else uses the GPU, which does not tell what is free"
	}
	return nil
}

// Need is what the model takes with a window of so many tokens when one GPU
// holds it all.
func (s Shape) Need(window int, o Options) (Use, error) {
	o, err := o.complete()
	if err != nil {
		return Use{}, err
	}
	if window < 1 || window > mostWindow {
		return Use{}, fmt.Errorf("a window of %d tokens: want 1 to %d", window, mostWindow)
	}
	var use Use
	err = guarded(func() error {
		c, err := s.costs(window, o)
		if err != nil {
			return err
		}
		uses, left := place(c, []room{{bytes: 1 << 62}})
		if left > 0 {
			return errors.New("it is larger than any machine")
		}
		use = uses[0].Use
		return nil
	})
	return use, err
}

// Spills tells whether a model with a window of so many tokens goes beyond the
// GPUs of r, and by how many bytes, so that a server will work on a part of it
// with the processor, slowly. It counts without the margin that Fit leaves: what
// it says will spill, will. False, too, where nothing can be said.
func Spills(s Shape, window int, r Report, o Options) (bytes uint64, spills bool) {
	rooms, _, err := rooms(r, o, false)
	if err != nil || window < 1 || window > mostWindow {
		return 0, false
	}
	if o, err = o.complete(); err != nil {
		return 0, false
	}
	err = guarded(func() error {
		c, err := s.costs(window, o)
		if err == nil {
			_, bytes = placeOnFewest(c, rooms)
		}
		return err
	})
	if err != nil {
		return 0, false
	}
	return bytes, bytes > 0
}

// cacheTypes are how servers keep what they remember of the window.
var cacheTypes = map[string]gguf.GGMLType{
	"": gguf.GGMLTypeF16, "f32": gguf.GGMLTypeF32, "f16": gguf.GGMLTypeF16, "bf16": gguf.GGMLTypeBF16, "q8_0": gguf.GGMLTypeQ8_0,
	"q5_1": gguf.GGMLTypeQ5_1, "q5_0": gguf.GGMLTypeQ5_0, "q4_1": gguf.GGMLTypeQ4_1, "q4_0": gguf.GGMLTypeQ4_0, "iq4_nl": gguf.GGMLTypeIQ4_NL,
}

// complete fills in what is left open and refuses what cannot be.
func (o Options) complete() (Options, error) {
	for _, name := range []string{o.KeyType, o.ValueType} {
		if _, ok := cacheTypes[name]; !ok {
			return o, fmt.Errorf("cache type %q is not known: want f16, q8_0, q4_0 or another of llama.cpp's", name)
		}
	}
	o.Sequences, o.Batch = cmp.Or(o.Sequences, 1), cmp.Or(o.Batch, 512)
	if o.Sequences < 1 || o.Sequences > 64 {
		return o, fmt.Errorf("%d conversations at once: want 1 to 64", o.Sequences)
	}
	if o.Batch < 32 || o.Batch > 8192 {
		return o, fmt.Errorf("%d tokens at once: want 32 to 8192", o.Batch)
	}
	if o.Limit < 0 {
		return o, fmt.Errorf("a longest window of %d tokens", o.Limit)
	}
	if o.Beside > most || o.Overhead > most || o.Margin > most || o.Held > most {
		return o, errors.New("a size beyond any machine")
	}
	o.Overhead = cmp.Or(o.Overhead, usualOverhead)
	return o, nil
}

// library are the options of the library for a window of cells tokens in all,
// with layers and output spread over n devices.
func (o Options) library(cells, batch int, spread []float64) []gguf.GGUFRunEstimateOption {
	options := []gguf.GGUFRunEstimateOption{
		gguf.WithLLaMACppContextSize(int32(cells)), gguf.WithParallelSize(int32(o.Sequences)),
		gguf.WithLLaMACppLogicalBatchSize(int32(batch)), gguf.WithLLaMACppPhysicalBatchSize(int32(batch)),
		gguf.WithLLaMACppCacheKeyType(cacheTypes[o.KeyType]), gguf.WithLLaMACppCacheValueType(cacheTypes[o.ValueType]),
		gguf.WithTensorSplitFraction(spread),
	}
	if o.FlashAttention {
		options = append(options, gguf.WithFlashAttention())
	}
	return options
}

// costs are what a window takes, before it is known where.
type costs struct {
	layers        []Use // weights, KV and recurrent of each
	first         Use   // what goes with the last layer, on the first GPU that is filled
	alone, shared uint64
	floor         uint64 // the least that computing takes where the output is
	overhead      uint64
}

// costs asks the library what a window takes. It may panic where the library does.
func (s Shape) costs(window int, o Options) (costs, error) {
	if s.file == nil {
		return costs{}, errors.New("the shape of the model is not known")
	}
	cells := (window + step - 1) / step * step * o.Sequences
	caches := s.caches(cells, o.Batch, o)
	// With 256 and 512 cells no window slides yet: what does not double is kept
	// whatever the window is.
	one, two := s.caches(step, max(o.Batch, 512), o), s.caches(2*step, max(o.Batch, 512), o)
	c := costs{
		layers: make([]Use, s.Layers), overhead: o.Overhead,
		first: Use{Weights: s.output + s.rest + o.Beside},
		floor: s.logits * uint64(o.Batch) * 4,
		alone: s.compute(cells, 1, o), shared: s.compute(cells, 2, o),
	}
	for i, weights := range s.blocks {
		recurrent := min(2*one[i]-min(two[i], 2*one[i]), caches[i])
		c.layers[i] = Use{Weights: weights, KV: caches[i] - recurrent, Recurrent: recurrent}
	}
	return c, nil
}

// caches is what each layer keeps: to the library, each is on a device of its own.
func (s Shape) caches(cells, batch int, o Options) []uint64 {
	spread := make([]float64, s.Layers)
	for i := range spread {
		spread[i] = (float64(i) + 0.5) / float64(s.Layers+1)
	}
	spread[s.Layers-1] = 1
	e := s.file.EstimateLLaMACppRun(o.library(cells, batch, spread)...)
	sizes := make([]uint64, s.Layers)
	for i := range sizes {
		sizes[i] = uint64(e.Devices[i+1].KVCache.Sum())
	}
	return sizes
}

// compute is what computing takes on each of n devices.
func (s Shape) compute(cells, n int, o Options) uint64 {
	spread := []float64{1}
	if n > 1 {
		spread = []float64{0.5, 1}
	}
	var most uint64
	for _, d := range s.file.EstimateLLaMACppRun(o.library(cells, o.Batch, spread)...).Devices[1:] {
		most = max(most, uint64(d.Computation.Sum()+d.Footprint))
	}
	return most
}
