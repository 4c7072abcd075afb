package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"reverie/cmd/bot/config"
	"reverie/internal/llm"
	"reverie/internal/llm/discover"
	"reverie/internal/vram"
	"reverie/internal/window"
)

// placeOf tells whether the server at base is on this machine, by its address, and says so in words.
func placeOf(base string) (here bool, why string) {
	switch base {
	case "":
		return false, "there is no model for chat"
	case discover.Rehearsal:
		return false, "the stand-in model is a part of this program and needs no GPU"
	}
	u, err := url.Parse(base)
	if err != nil {
		return false, "its address cannot be read"
	}
	if discover.IsLocal(u.Hostname()) {
		return true, u.Hostname() + " is this machine"
	}
	return false, u.Hostname() + " is another machine; if it is this one, write localhost in its address"
}

// modelWindow finds out how many tokens the chat model reads.
type modelWindow struct {
	cfg    *config.Config
	models *llm.Models
	gpu    *vram.Prober
	fits   atomic.Pointer[window.Said] // the window that fits into the GPUs here; nil = not worked out yet
}

func openWindow(cfg *config.Config, models *llm.Models, log *slog.Logger) *modelWindow {
	c := cfg.Context
	gpu := vram.New(vram.Config{Size: uint64(c.VRAMMiB) << 20, Off: !c.Probe && c.VRAMMiB == 0, Log: log})
	return &modelWindow{cfg: cfg, models: models, gpu: gpu}
}

// chatModel is the first model for chat, as configured and as far as it was detected;
// empty = there is none.
func (w *modelWindow) chatModel() (config.Model, llm.Detection) {
	found := append(w.models.Limits("chat"), llm.Detection{})[0]
	if i := slices.IndexFunc(w.cfg.LLM.Models, func(m config.Model) bool { return m.Name == found.Model }); i >= 0 {
		return w.cfg.LLM.Models[i], found
	}
	return config.Model{}, found
}

// askingGPU is how often GPUs are asked for their memory. What they have free moves no
// tier; it is asked for those who look.
const askingGPU = 5 * time.Minute

// afterStart is when they are asked for the second time: what file the model is in
// comes from its server, which is being asked just then.
const afterStart = 20 * time.Second

// watchGPU keeps what is known of the GPU memory fresh until ctx ends.
func (w *modelWindow) watchGPU(ctx context.Context) error {
	for wait := afterStart; ; wait = askingGPU {
		w.askGPU(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// askGPU asks the GPUs if the model server is on this machine, as nothing else is judged by them, and works out which
// window of the chat model fits into them. It reads the header of the model's file.
func (w *modelWindow) askGPU(ctx context.Context) {
	m, found := w.chatModel()
	said := window.Said{}
	if here, _ := placeOf(m.BaseURL); here {
		f, err := fitting(ctx, m.Model, found, w.gpu.Probe(ctx))
		if said = (window.Said{Tokens: f.Window, By: f.Reason}); err != nil {
			said = window.Said{By: err.Error()}
		}
	}
	w.fits.Store(&said)
}

// lookAround asks the model servers and the GPUs, and waits for what they say, a few seconds at most.
func (w *modelWindow) lookAround(ctx context.Context) {
	w.models.Detect(ctx)
	w.askGPU(ctx)
}

// inputs are what is known now of the chat model's window. It asks nobody.
func (w *modelWindow) inputs() window.Inputs {
	m, found := w.chatModel()
	in := window.InputsOf(found)
	c := w.cfg.Context
	in.ID = m.Model + " at " + m.BaseURL
	in.Settings = fmt.Sprintf("tier=%d window=%d vram_mib=%d probe=%t", c.Tier, m.Window, c.VRAMMiB, c.Probe)
	in.Tier = c.Tier
	if m.Window > 0 {
		in.Configured = window.Said{Tokens: m.Window, By: "llm.models: window"}
	}
	in.VRAM = vram.Report{Reason: "not asked", Devices: []vram.Device{}, Steps: []string{}}
	if in.Here, in.Where = placeOf(m.BaseURL); in.Here {
		in.VRAM = w.gpu.Last()
		if said := w.fits.Load(); said != nil {
			in.Fit = *said
		}
	} else {
		in.VRAM.Reason += ": " + in.Where
	}
	return in
}

// fitting is the window of a model that fits into GPUs.
func fitting(ctx context.Context, model string, found llm.Detection, report vram.Report) (vram.Fitting, error) {
	if report.State != vram.Known {
		return vram.Fitting{}, fmt.Errorf("the GPU memory is not known: %s", report.Reason)
	}
	blob, err := modelFile(model, found)
	if err != nil {
		return vram.Fitting{}, err
	}
	shape, err := vram.ReadShape(ctx, blob.Path)
	if err != nil {
		return vram.Fitting{}, err
	}
	return vram.Fit(shape, report, vram.Options{Beside: blob.Beside, Held: found.Held, Limit: found.Trained})
}

// modelFile is the file of a model, if its server tells or is known to keep it in a
// certain place.
func modelFile(model string, found llm.Detection) (vram.Blob, error) {
	if found.File != "" {
		return vram.Blob{Path: found.File}, nil
	}
	if found.Server != llm.Ollama {
		return vram.Blob{}, errors.New("the server does not say which file its model is")
	}
	dir := os.Getenv("OLLAMA_MODELS")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return vram.Blob{}, err
		}
		dir = filepath.Join(home, ".ollama", "models")
	}
	return vram.OllamaBlob(dir, model)
}
