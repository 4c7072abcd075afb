package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/session"
	"reverie/internal/vram"
)

// place is where a model server runs, as seen from here.
type place struct {
	here bool   // on this machine
	why  string // in words
}

// placeOf tells where the server at base runs, by its address. find looks names up, and own are the
// addresses of this machine. A tunnel is not seen: context.probe is for that.
func placeOf(
	ctx context.Context, base string, find func(ctx context.Context, network, host string) ([]netip.Addr, error), own []netip.Addr,
) (place, error) {
	switch base {
	case "":
		return place{false, "there is no model for chat"}, nil
	case rehearsalURL:
		return place{false, "the stand-in model is a part of this program and needs no GPU"}, nil
	}
	u, err := url.Parse(base)
	if err != nil {
		return place{}, err
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	ours := func(a netip.Addr) bool {
		a = a.Unmap().WithZone("")
		return a.IsLoopback() || a.IsUnspecified() || slices.Contains(own, a)
	}
	addresses := []netip.Addr{}
	switch a, err := netip.ParseAddr(host); {
	case err == nil:
		addresses = append(addresses, a)
	case host == "localhost" || strings.HasSuffix(host, ".localhost"):
		return place{true, host + " is this machine"}, nil
	default:
		if addresses, err = find(ctx, "ip", host); err != nil {
			return place{}, err
		}
	}
	if len(addresses) == 0 || slices.ContainsFunc(addresses, func(a netip.Addr) bool { return !ours(a) }) {
		return place{false, host + " is another machine"}, nil
	}
	return place{true, host + " is this machine"}, nil
}

// ownAddresses are those of this machine's network interfaces.
func ownAddresses() []netip.Addr {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil // loopback is known without
	}
	var own []netip.Addr
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, p.Addr().Unmap())
		}
	}
	return own
}

func (b *bot) openGPU() {
	c := b.cfg.Context
	b.place, b.fits = new(atomic.Pointer[place]), new(atomic.Pointer[prompt.Said])
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

// locate finds out, once, where the chat model's server runs.
func (b *bot) locate(ctx context.Context) place {
	if known := b.place.Load(); known != nil {
		return *known
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	m, _ := b.chatModel()
	p, err := placeOf(ctx, m.BaseURL, net.DefaultResolver.LookupNetIP, ownAddresses())
	if err != nil {
		b.log.Debug("where the model server runs is not known", "err", err)
		return place{false, "where the model server runs is not known: its name has no address now"}
	}
	b.place.Store(&p)
	return p
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
		if b.locate(ctx).here {
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
		if b.locate(ctx).here {
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
	in.Where = "not looked up yet"
	if p := b.place.Load(); p != nil {
		in.Here, in.Where = p.here, p.why
	}
	if in.Here {
		in.VRAM = b.gpu.Last()
		if said := b.fits.Load(); said != nil {
			in.Fit = *said
		}
	} else {
		in.VRAM.Reason += ": " + in.Where
	}
	return in
}
