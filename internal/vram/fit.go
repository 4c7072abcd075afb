package vram

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	gguf "github.com/gpustack/gguf-parser-go"
)

const (
	step      = 256       // windows are rounded down to it, as servers do
	maxWindow = 1 << 24   // tokens
	batch     = 512       // tokens that a server works on at once
	overhead  = 457 << 20 // what the driver takes on each GPU
)

// Options say what else is in the GPU memory.
type Options struct {
	Limit  int    // the longest window to try, in tokens; 0 = what the model was trained for
	Beside uint64 // bytes that are loaded with the model on one GPU: projector, adapters
	Held   uint64 // bytes that the server holds of this model already; they count as free
}

// Fitting is the answer of Fit.
type Fitting struct {
	Window int    // the longest that fits, a multiple of 256; 0 = the model does not fit
	Reason string // in words
}

// Fit returns the longest window that fits with all layers in the GPUs of r.
// An error says that this cannot be known.
func Fit(s Shape, r Report, o Options) (f Fitting, err error) {
	rooms, assumed, err := rooms(r, o.Held)
	if err != nil {
		return Fitting{}, err
	}
	longest := s.trained
	if o.Limit > 0 {
		longest = min(longest, o.Limit)
	}
	longest = longest / step * step
	switch {
	case o.Limit < 0:
		return Fitting{}, fmt.Errorf("a longest window of %d tokens", o.Limit)
	case longest < step:
		return Fitting{}, fmt.Errorf("a window below %d tokens is not tried", step)
	case s.file == nil:
		return Fitting{}, errors.New("the shape of the model is not known")
	case o.Beside > most:
		return Fitting{}, errors.New("what is loaded with the model is beyond any machine")
	}
	err = guarded(func() error {
		f.Window = step * sort.Search(longest/step, func(i int) bool { return s.costs((i+1)*step, o).place(rooms) == nil })
		f.Reason = s.costs(max(f.Window, step), o).explain(f.Window, rooms)
		return nil
	})
	switch {
	case err != nil:
		return Fitting{}, err
	case f.Window == 0:
		return f, nil
	case f.Window < longest:
		f.Reason = "more does not fit: " + f.Reason
	case o.Limit > 0 && o.Limit < s.trained:
		f.Reason = "more is not asked for: " + f.Reason
	default:
		f.Reason = "the model was made for no more: " + f.Reason
	}
	f.Reason = fmt.Sprintf("%d tokens fit, %s", f.Window, f.Reason)
	if assumed {
		f.Reason += " if nothing else uses the GPU, which does not tell what is free"
	}
	return f, nil
}

// rooms returns the bytes that may be used on each counted GPU, most first.
// assumed tells that a GPU does not say what is free.
func rooms(r Report, held uint64) (rooms []uint64, assumed bool, err error) {
	if r.State != Known {
		return nil, false, fmt.Errorf("the GPU memory is %v: %s", r.State, r.Reason)
	}
	var taken uint64
	for _, d := range r.Devices {
		if d.Counted && d.FreeKnown {
			taken += d.Total - min(d.Free, d.Total)
		}
	}
	for _, d := range r.Devices {
		if !d.Counted {
			continue
		}
		free, least := d.Total, uint64(1<<30)
		if d.FreeKnown { // which GPUs hold the model is not known: each has its share of what is taken
			free = min(d.Free, d.Total)
			free += uint64(float64(min(held, taken)) * (float64(d.Total-free) / float64(max(taken, 1))))
		}
		if d.Unified {
			least = 2 << 30
		}
		assumed = assumed || !d.FreeKnown
		rooms = append(rooms, free-min(max(least, free/20), free))
	}
	if len(rooms) == 0 {
		return nil, false, fmt.Errorf("no GPU counts here: %s", r.Reason)
	}
	slices.SortFunc(rooms, func(a, b uint64) int { return cmp.Compare(b, a) })
	return rooms, assumed, nil
}

// costs are the bytes that a model with a window takes.
type costs struct {
	weights, cache uint64    // in all
	layers         []uint64  // weights and cache of each layer
	first          uint64    // what goes onto the first GPU besides its layers
	compute        [2]uint64 // on the only GPU, and on each of several
	floor          uint64    // the least that computing takes on the first GPU
}

// costs asks the library what a window takes. It panics where the library does.
func (s Shape) costs(window int, o Options) costs {
	c := costs{weights: s.output + o.Beside, first: s.output + o.Beside, floor: s.logits * batch * 4}
	// To the library each layer is on a GPU of its own, so that it tells the cache of each.
	split := make([]float64, len(s.blocks))
	for i := range split {
		split[i] = (float64(i) + 0.5) / float64(len(split)+1)
	}
	split[len(split)-1] = 1
	each, alone := s.estimate(window, split), s.estimate(window, []float64{1})
	for i, weights := range s.blocks {
		cache := uint64(each[i].KVCache.Sum())
		if i >= len(s.heads) || s.heads[i] > 0 {
			cache = cache / s.unfolded * s.latent
		}
		c.weights, c.cache, c.layers = c.weights+weights, c.cache+cache, append(c.layers, weights+cache)
	}
	c.compute = [2]uint64{uint64(alone[0].Computation.Sum()), uint64(each[0].Computation.Sum())}
	return c
}

// estimate asks the library what each GPU takes when layers are split so.
func (s Shape) estimate(window int, split []float64) []gguf.LLaMACppRunDeviceUsage {
	return s.file.EstimateLLaMACppRun(gguf.WithLLaMACppContextSize(int32((window+step-1)/step*step)), gguf.WithLLaMACppLogicalBatchSize(batch),
		gguf.WithLLaMACppPhysicalBatchSize(batch), gguf.WithTensorSplitFraction(split)).Devices[1:]
}

// on returns what n GPUs take to compute, the first and all together.
func (c costs) on(n int) (first, all uint64) {
	each := c.compute[min(n-1, 1)]
	first = max(each, c.floor)
	return first, first + uint64(n-1)*each
}

// place returns how many layers go onto each GPU, with as few GPUs as will do, as
// servers do; nil = they do not fit. More room never makes a model not fit.
func (c costs) place(rooms []uint64) []int {
	for n := range rooms {
		if layers := c.placeOn(rooms[:n+1]); layers != nil {
			return layers
		}
	}
	return nil
}

// placeOn puts the output and the last layers onto the first GPU, those before onto
// the next.
func (c costs) placeOn(rooms []uint64) (layers []int) {
	next := len(c.layers)
	for i, room := range rooms {
		used, end := c.compute[min(len(rooms)-1, 1)]+overhead, next
		if i == 0 {
			used, _ = c.on(len(rooms))
			used += overhead + c.first
		}
		if used > room {
			return nil
		}
		for ; next > 0 && used+c.layers[next-1] <= room; next-- {
			used += c.layers[next-1]
		}
		layers = append(layers, end-next)
	}
	if next > 0 {
		return nil
	}
	return layers
}

// explain says what a window takes of the room, in words.
func (c costs) explain(window int, rooms []uint64) string {
	var all uint64
	for _, room := range rooms {
		all += room
	}
	if window == 0 {
		compute, _ := c.on(1)
		return fmt.Sprintf("no window fits: with the shortest the model takes %s, and %s of GPU memory may be used",
			Size(c.weights+c.cache+compute+overhead), Size(all))
	}
	gpus := len(c.place(rooms))
	_, compute := c.on(gpus)
	return fmt.Sprintf("%s of weights, %s for the window, %s to compute, %s besides, of %s that may be used",
		Size(c.weights), Size(c.cache), Size(compute), Size(uint64(gpus)*overhead), Size(all))
}
