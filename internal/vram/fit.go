package vram

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	gguf "github.com/gpustack/gguf-parser-go"
)

const (
	step      = 256       // windows are rounded down to it, as servers do
	maxWindow = 1 << 24   // tokens
	batch     = 512       // tokens that a server works on at once
	overhead  = 457 << 20 // bytes that the driver takes on each GPU
)

// uncounted are the architectures with a second cache, which the library leaves out.
var uncounted = []string{"deepseek32", "deepseek4", "glm-dsa"}

// Shape is what the header of a model file says about the memory that it takes. It is made
// by ReadShape and never changes. The zero value fits nowhere.
type Shape struct {
	file    *gguf.GGUFFile
	beside  uint64 // bytes of weights that file leaves out
	trained int    // the window it was trained for, in tokens
}

// ReadShape reads the header of a model file, or of all files if it is in parts
// (NAME-00001-of-00003.gguf).
func ReadShape(path string) (s Shape, err error) {
	err = guarded(func() (err error) { s, err = read(path); return err })
	if err != nil {
		return Shape{}, fmt.Errorf("model file %s: %w", path, err)
	}
	return s, nil
}

func read(path string) (s Shape, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait
		return s, errors.New("it is not a plain file")
	}
	if path, err = filepath.Abs(path); err != nil {
		return s, err
	}
	file, err := gguf.ParseGGUFFile(path, gguf.SkipLargeMetadata(), gguf.UseMMap())
	if err != nil {
		return s, fmt.Errorf("it is damaged, was not downloaded to its end, or is no model in the format GGUF: %w", err)
	}
	a := file.Architecture()
	switch {
	case a.Type != "model" || a.BlockCount == 0:
		return s, errors.New("it goes with a model, and is none that writes text")
	case slices.Contains(uncounted, a.Architecture):
		return s, fmt.Errorf("what a window takes is not known for the architecture %q; set the window yourself", a.Architecture)
	}
	var weights, beside uint64
	file.TensorInfos = slices.DeleteFunc(file.TensorInfos, func(t gguf.GGUFTensorInfo) bool {
		weights += t.Bytes()
		for _, known := range []string{"blk.", "token_embd.", "output"} {
			if strings.HasPrefix(t.Name, known) {
				return false
			}
		}
		beside += t.Bytes() // the library would take it for a layer
		return true
	})
	if have := uint64(max(file.ModelSize, 0)); have < weights {
		return s, fmt.Errorf("its weights are %d bytes, but only %d are there: it was not downloaded to its end", weights, have)
	}
	s = Shape{file, beside, int(min(a.MaximumContextLength, maxWindow))}
	s.costs(step, 1) // a file on which the library panics is none
	return s, nil
}

// guarded makes an error of a panic: the library panics on numbers it did not expect.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its numbers cannot be worked with: %v", r)
		}
	}()
	return f()
}

// Options say what else is in the GPU memory.
type Options struct {
	Beside uint64 // bytes that are loaded with the model: projector, adapters
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
	longest := s.trained / step * step
	if longest == 0 {
		return Fitting{}, errors.New("the model does not say how long a window it was made for")
	}
	var all uint64
	for _, room := range rooms {
		all += room
	}
	err = guarded(func() error {
		f.Window = step * sort.Search(longest/step, func(i int) bool { return !s.fits((i+1)*step, rooms, o.Beside) })
		c := s.costs(max(f.Window, step), 1)[0]
		f.Reason = fmt.Sprintf("%s of weights, %s for the window, %s to compute, of %s that may be used",
			Size(c.weights+o.Beside), Size(c.cache), Size(c.compute), Size(all))
		return nil
	})
	switch {
	case err != nil:
		return Fitting{}, err
	case f.Window == 0:
		f.Reason = fmt.Sprintf("no window fits: with %d tokens it is %s", step, f.Reason)
		return f, nil
	case f.Window < longest:
		f.Reason = "more does not fit: " + f.Reason
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
	for _, d := range r.Devices {
		if !d.Counted {
			continue
		}
		free, least := d.Total, uint64(1<<30)
		if d.FreeKnown { // which GPUs hold the model is not known: the first have it
			free = min(d.Free, d.Total)
			here := min(held, d.Total-free)
			free, held = free+here, held-here
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

// costs are the bytes that a model with a window takes of one GPU.
type costs struct{ weights, cache, compute uint64 }

// costs asks the library what a window takes on each GPU when the layers are split by split,
// the share of the layers up to and on each. It panics where the library does.
func (s Shape) costs(window int, split ...float64) (all []costs) {
	for _, gpu := range s.file.EstimateLLaMACppRun(
		gguf.WithLLaMACppContextSize(int32((window+step-1)/step*step)), gguf.WithLLaMACppLogicalBatchSize(batch),
		gguf.WithLLaMACppPhysicalBatchSize(batch), gguf.WithTensorSplitFraction(split)).Devices[1:] {
		all = append(all, costs{uint64(gpu.Weight.Sum()), uint64(gpu.KVCache.Sum()), uint64(gpu.Computation.Sum())})
	}
	all[0].weights += s.beside
	return all
}

// fits tells whether a model with a window fits into as few of the rooms as will do, with its
// layers by how much room there is beside what each GPU needs to compute.
func (s Shape) fits(window int, rooms []uint64, beside uint64) bool {
	each := s.costs(window, 1)[0].compute + overhead
	var split []float64 // how much room there is up to and on each
	for _, room := range rooms {
		all := float64(room - min(room, each))
		if n := len(split); n > 0 {
			all += split[n-1]
		}
		split = append(split, all)
		shares := make([]float64, len(split))
		for i := range split {
			shares[i] = split[i] / max(all, 1)
		}
		shares[len(shares)-1] = 1
		gpus, fits := s.costs(window, shares...), true
		gpus[0].weights += beside
		for i, c := range gpus {
			fits = fits && c.weights+c.cache+c.compute+overhead <= rooms[i]
		}
		if fits {
			return true
		}
	}
	return false
}
