package main

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/session"
	"reverie/internal/vram"
)

// placeOf tells whether the server at base is on this machine, by its address, and says so in words.
func placeOf(base string) (here bool, why string) {
	switch base {
	case "":
		return false, "there is no model for chat"
	case rehearsalURL:
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

// located tells whether the chat model's server is on this machine, and says so in words.
func (b *bot) located() (here bool, why string) {
	m, _ := b.chatModel()
	return placeOf(m.BaseURL)
}

func (b *bot) openGPU() {
	c := b.cfg.Context
	b.fits = new(atomic.Pointer[prompt.Said])
	b.gpu = vram.New(vram.Config{Size: uint64(c.VRAMMiB) << 20, Off: !c.Probe && c.VRAMMiB == 0, Log: b.log})
}

// chatModel is the first model for chat, as configured and as far as it was detected;
// empty = there is none.
func (b *bot) chatModel() (ModelConfig, llm.Detection) {
	found := b.models.Limits("chat")
	if len(found) == 0 {
		return ModelConfig{}, llm.Detection{}
	}
	for _, m := range b.cfg.LLM.Models {
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

// watchGPU keeps what is known of the GPU memory fresh until ctx ends, if the model
// server is on this machine: nothing else is judged by it.
func (b *bot) watchGPU(ctx context.Context) error {
	for wait := afterStart; ; wait = askingGPU {
		if here, _ := b.located(); here {
			b.gpu.Probe(ctx)
			b.fit(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// lookAround asks the model servers, and the GPUs if that matters, and waits for what
// they say, a few seconds at most.
func (b *bot) lookAround(ctx context.Context) {
	var g errgroup.Group
	g.Go(func() error { b.models.Detect(ctx); return nil })
	g.Go(func() error {
		if here, _ := b.located(); here {
			b.gpu.Probe(ctx)
		}
		return nil
	})
	_ = g.Wait() // neither fails
	b.fit(ctx)
}

// windowInputs are what is known now of the chat model's window. It asks nobody.
func (b *bot) windowInputs() prompt.Inputs {
	m, found := b.chatModel()
	in := session.WindowInputs(found)
	c := b.cfg.Context
	in.ID = m.Model + " at " + m.BaseURL
	in.Settings = fmt.Sprintf("tier=%d window=%d vram_mib=%d probe=%t", c.Tier, m.Window, c.VRAMMiB, c.Probe)
	in.Tier = c.Tier
	in.Configured = prompt.Said{}
	if m.Window > 0 {
		in.Configured = prompt.Said{Tokens: m.Window, By: "llm.models: window"}
	}
	in.VRAM = vram.Report{Reason: "not asked", Devices: []vram.Device{}, Steps: []string{}}
	if in.Here, in.Where = placeOf(m.BaseURL); in.Here {
		in.VRAM = b.gpu.Last()
		if said := b.fits.Load(); said != nil {
			in.Fit = *said
		}
	} else {
		in.VRAM.Reason += ": " + in.Where
	}
	return in
}
