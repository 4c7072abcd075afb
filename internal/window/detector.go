package window

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"reverie/internal/llm"
	"reverie/internal/llm/detect"
	"reverie/internal/llm/discover"
	"reverie/internal/vram"
)

// DetectorConfig says what is known of the models from the configuration.
type DetectorConfig struct {
	Models   *llm.Models
	Servers  []Server
	GPU      *vram.Prober
	Tier     int    // the owner's choice; 0 = none
	Settings string // what the owner has set of GPUs, in any form: compared only
}

// Server is a model as the owner named it.
type Server struct {
	Name, Model, BaseURL string
	Window               int // 0 = to be found out
}

// Detector finds out how many tokens the chat model reads.
type Detector struct{ cfg DetectorConfig }

// NewDetector makes a detector. It asks nobody yet.
func NewDetector(c DetectorConfig) *Detector { return &Detector{cfg: c} }

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

// Chat is the first model for chat, as configured and as far as it was detected; empty = there is none.
func (d *Detector) Chat() (Server, detect.Found) {
	found := append(d.cfg.Models.Limits("chat"), detect.Found{})[0]
	if i := slices.IndexFunc(d.cfg.Servers, func(s Server) bool { return s.Name == found.Model }); i >= 0 {
		return d.cfg.Servers[i], found
	}
	return Server{}, found
}

// askingGPU is how often GPUs are asked for their memory: a driver may answer only later.
const askingGPU = 5 * time.Minute

// Run keeps what is known of the GPU memory fresh until ctx ends.
func (d *Detector) Run(ctx context.Context) error {
	for {
		d.askGPU(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(askingGPU):
		}
	}
}

// Look asks the model servers and the GPUs, and waits for what they say, a few seconds at most.
func (d *Detector) Look(ctx context.Context) {
	d.cfg.Models.Detect(ctx)
	d.askGPU(ctx)
}

// askGPU asks the GPUs if the model server is on this machine, as nothing else is judged by them.
func (d *Detector) askGPU(ctx context.Context) {
	server, _ := d.Chat()
	if here, _ := placeOf(server.BaseURL); here {
		d.cfg.GPU.Probe(ctx)
	}
}

// Inputs are what is known now of the chat model's window. It asks nobody.
func (d *Detector) Inputs() Inputs {
	server, found := d.Chat()
	in := InputsOf(found)
	in.ID = server.Model + " at " + server.BaseURL
	in.Settings = fmt.Sprintf("tier=%d window=%d %s", d.cfg.Tier, server.Window, d.cfg.Settings)
	in.Tier = d.cfg.Tier
	in.Configured = Said{}
	if server.Window > 0 {
		in.Configured = Said{Tokens: server.Window, By: "llm.models: window"}
	}
	in.VRAM = vram.Report{State: vram.Unknown, Reason: "not asked", Devices: []vram.Device{}, Steps: []string{}}
	if in.Here, in.Where = placeOf(server.BaseURL); in.Here {
		in.VRAM = d.cfg.GPU.Last()
	} else {
		in.VRAM.Reason += ": " + in.Where
	}
	return in
}
