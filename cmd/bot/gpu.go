package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"reverie/internal/llm"
	"reverie/internal/llm/detect"
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
	if thisMachine(u.Hostname()) {
		return true, u.Hostname() + " is this machine"
	}
	return false, u.Hostname() + " is another machine; if it is this one, write localhost in its address"
}

// modelWindow finds out how many tokens the chat model reads.
type modelWindow struct {
	cfg    *Config
	models *llm.Models
	gpu    *vram.Prober
	fits   atomic.Pointer[window.Said] // the window that fits into the GPUs here; nil = not worked out yet
}

func openWindow(cfg *Config, models *llm.Models, log *slog.Logger) *modelWindow {
	c := cfg.Context
	gpu := vram.New(vram.Config{Size: uint64(c.VRAMMiB) << 20, Off: !c.Probe && c.VRAMMiB == 0, Log: log})
	return &modelWindow{cfg: cfg, models: models, gpu: gpu}
}

// located tells whether the chat model's server is on this machine, and says so in words.
func (w *modelWindow) located() (here bool, why string) {
	m, _ := w.chatModel()
	return placeOf(m.BaseURL)
}

// chatModel is the first model for chat, as configured and as far as it was detected;
// empty = there is none.
func (w *modelWindow) chatModel() (ModelConfig, detect.Found) {
	found := w.models.Limits("chat")
	if len(found) == 0 {
		return ModelConfig{}, detect.Found{}
	}
	for _, m := range w.cfg.LLM.Models {
		if m.Name == found[0].Model {
			return m, found[0]
		}
	}
	return ModelConfig{}, found[0]
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

// askGPU asks the GPUs if the model server is on this machine: nothing else is judged by them.
func (w *modelWindow) askGPU(ctx context.Context) {
	if here, _ := w.located(); here {
		w.gpu.Probe(ctx)
	}
	w.fit()
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
	in.Configured = window.Said{}
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

// fit works out which window of the chat model fits into this machine's GPUs, from
// the header of the model's file. It reads files, and so is called in the background.
func (w *modelWindow) fit() {
	said := window.Said{}
	if here, _ := w.located(); here {
		f, err := w.fitting()
		switch {
		case err != nil:
			said.By = err.Error()
		case f.Window == 0:
			said.By = f.Reason
		default:
			said = window.Said{Tokens: f.Window, By: f.Reason}
		}
	}
	w.fits.Store(&said)
}

func (w *modelWindow) fitting() (vram.Fitting, error) {
	report := w.gpu.Last()
	if report.State != vram.Known {
		return vram.Fitting{}, fmt.Errorf("the GPU memory is not known: %s", report.Reason)
	}
	_, found := w.chatModel()
	if len(found.Files) == 0 {
		return vram.Fitting{}, errors.New("the server does not say which file its model is")
	}
	shape, err := vram.ReadShape(found.Files[0])
	if err != nil {
		return vram.Fitting{}, err
	}
	var beside uint64
	for _, file := range found.Files[1:] {
		if info, err := os.Stat(file); err == nil {
			beside += uint64(info.Size())
		}
	}
	return vram.Fit(shape, report, vram.Options{Beside: beside, Held: found.Held})
}
