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
	"reverie/internal/pace"
	"reverie/internal/vram"
)

// Detector detects the context window of the chat model. It sends no requests before Detect or Run.
type Detector struct {
	Models   *llm.Models
	Servers  []Server
	GPU      *vram.Prober
	Tier     int    // set by the owner; 0 = not set
	Settings string // the owner's GPU settings, as text to compare
}

// Server is a configured model.
type Server struct {
	Name, Model, BaseURL string
	Window               int // 0 = detect
}

// isLocalServer reports whether the server at base runs on this machine, and explains it.
func isLocalServer(base string) (here bool, why string) {
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

// ChatModel returns the first chat model, with its detection result; empty without one.
func (d *Detector) ChatModel() (Server, detect.Found) {
	found := append(d.Models.Limits("chat"), detect.Found{})[0]
	if i := slices.IndexFunc(d.Servers, func(s Server) bool { return s.Name == found.Model }); i >= 0 {
		return d.Servers[i], found
	}
	return Server{}, found
}

// gpuPollInterval is how often the GPUs are queried. A driver may start late.
const gpuPollInterval = 5 * time.Minute

// Run polls the GPU memory until ctx ends.
func (d *Detector) Run(ctx context.Context) error {
	for {
		d.askGPU(ctx)
		if pace.Pause(ctx, nil, gpuPollInterval) != nil {
			return nil
		}
	}
}

// Detect queries the model servers and GPUs and waits a few seconds for them.
func (d *Detector) Detect(ctx context.Context) {
	d.Models.Detect(ctx)
	d.askGPU(ctx)
}

// askGPU queries the GPUs if the model server runs on this machine.
func (d *Detector) askGPU(ctx context.Context) {
	server, _ := d.ChatModel()
	if here, _ := isLocalServer(server.BaseURL); here {
		d.GPU.Probe(ctx)
	}
}

// Inputs returns what is known of the chat model's window. It sends no requests.
func (d *Detector) Inputs() Inputs {
	server, found := d.ChatModel()
	in := InputsOf(found)
	in.ID = server.Model + " at " + server.BaseURL
	in.Settings = fmt.Sprintf("tier=%d window=%d %s", d.Tier, server.Window, d.Settings)
	in.Tier = d.Tier
	in.Configured = Claim{}
	if server.Window > 0 {
		in.Configured = Claim{Tokens: server.Window, By: "llm.models: window"}
	}
	in.VRAM = vram.Report{State: vram.Unknown, Reason: "not asked", Devices: []vram.Device{}, Steps: []string{}}
	if in.Local, in.LocalReason = isLocalServer(server.BaseURL); in.Local {
		in.VRAM = d.GPU.Last()
	} else {
		in.VRAM.Reason += ": " + in.LocalReason
	}
	return in
}
