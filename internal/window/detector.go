package window

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync/atomic"
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
type Detector struct {
	cfg  DetectorConfig
	fits atomic.Pointer[Said] // the window that fits into the GPUs here; nil = not worked out yet
}

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

// askingGPU is how often GPUs are asked for their memory. What they have free moves no
// tier; it is asked for those who look.
const askingGPU = 5 * time.Minute

// afterStart is when they are asked for the second time: what file the model is in
// comes from its server, which is being asked just then.
const afterStart = 20 * time.Second

// Run keeps what is known of the GPU memory fresh until ctx ends.
func (d *Detector) Run(ctx context.Context) error {
	for wait := afterStart; ; wait = askingGPU {
		d.askGPU(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// Look asks the model servers and the GPUs, and waits for what they say, a few seconds at most.
func (d *Detector) Look(ctx context.Context) {
	d.cfg.Models.Detect(ctx)
	d.askGPU(ctx)
}

// askGPU asks the GPUs if the model server is on this machine, as nothing else is judged by them, and works out which
// window of the chat model fits into them. It reads the header of the model's file.
func (d *Detector) askGPU(ctx context.Context) {
	server, found := d.Chat()
	said := Said{}
	if here, _ := placeOf(server.BaseURL); here {
		f, err := fitting(found, d.cfg.GPU.Probe(ctx))
		if said = (Said{Tokens: f.Window, By: f.Reason}); err != nil {
			said = Said{By: err.Error()}
		}
	}
	d.fits.Store(&said)
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
	in.VRAM = vram.Report{Reason: "not asked", Devices: []vram.Device{}, Steps: []string{}}
	if in.Here, in.Where = placeOf(server.BaseURL); in.Here {
		in.VRAM = d.cfg.GPU.Last()
		if said := d.fits.Load(); said != nil {
			in.Fit = *said
		}
	} else {
		in.VRAM.Reason += ": " + in.Where
	}
	return in
}

// fitting is the window of a model that fits into GPUs.
func fitting(found detect.Found, report vram.Report) (vram.Fitting, error) {
	if report.State != vram.Known {
		return vram.Fitting{}, fmt.Errorf("the GPU memory is not known: %s", report.Reason)
	}
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
