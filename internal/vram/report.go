// Package vram finds out how much GPU memory this machine has: Known or Unknown,
// each with its reason in words. It asks nvidia-smi, the files of the
// kernel and, on a Mac, sysctl; it never loads a driver library into this
// process, and a driver that hangs costs a deadline, not the process.
//
// It speaks of the machine, not of a model server: CUDA_VISIBLE_DEVICES and its
// like, a server in another container or on another machine are not seen here.
package vram

import (
	"fmt"
	"strings"
	"time"
)

// State says what is known.
type State string

// The answers.
const (
	Unknown State = "unknown"
	Known   State = "known"
)

// Device is one GPU. Sizes are bytes.
type Device struct {
	Vendor string `json:"vendor"` // nvidia, amd, intel, apple
	Name   string `json:"name"`
	Total  uint64 `json:"total"` // 0 = not known, Note says why
	// Unified memory is shared with the processor: what one takes, the other lacks.
	Unified bool `json:"unified"`
	// Counted devices make up the Total of their report.
	Counted bool   `json:"counted"`
	Note    string `json:"note,omitempty"`
}

// Report is the answer to one asking. What is free moves no tier, so nobody is asked for that.
type Report struct {
	State   State    `json:"state"`
	Reason  string   `json:"reason"`
	Devices []Device `json:"devices"` // never nil in a report of a Prober
	// Total is the sum in bytes over the counted devices: those of the vendor that has most,
	// since a model server works with one vendor's GPUs, and discrete ones where there are
	// any. It is 0 unless State is Known.
	Total uint64 `json:"total"`
	// Steps say which source said what, in the order they were asked.
	Steps []string  `json:"steps"`
	Asked time.Time `json:"asked"` // when the asking began; zero = never yet
}

// most is beyond any machine: a size above it is a mistake, not a size.
const most = 4 << 40

// findings are what the sources found, before anybody draws a conclusion.
type findings struct {
	devices []Device
	steps   []string
	doubts  []string // why there may be more than devices says
	silent  bool     // a tool did not answer in time: this tells nothing new
}

func (f *findings) step(format string, args ...any) {
	f.steps = append(f.steps, fmt.Sprintf(format, args...))
}

// doubt is a step too: the reason of the report alone would not say where it came from.
func (f *findings) doubt(format string, args ...any) {
	f.doubts = append(f.doubts, fmt.Sprintf(format, args...))
	f.step(format, args...)
}

// conclude draws the conclusion. It is pure.
func (f *findings) conclude(asked time.Time) Report {
	r := Report{State: Unknown, Asked: asked, Steps: append([]string{}, f.steps...), Devices: append([]Device{}, f.devices...)}
	doubts := f.doubts
	for _, d := range r.Devices {
		if d.Total == 0 {
			doubts = append(doubts, d.Name+": "+d.Note)
		}
	}
	switch discrete := r.count(); {
	case r.Total > 0 && (discrete || len(doubts) == 0):
		r.State, r.Reason = Known, r.summary(doubts)
	case len(doubts) > 0:
		// Where only memory shared with the processor is known, the GPU in doubt
		// would be the one that matters.
		r.Total = 0
		for i := range r.Devices {
			r.Devices[i].Counted = false
		}
		r.Reason = strings.Join(doubts, "; ")
	default:
		r.Reason = "no GPU was found whose memory is known"
	}
	return r
}

// count chooses the devices that count and sums them up; it tells whether they
// are discrete ones.
func (r *Report) count() (discrete bool) {
	for _, d := range r.Devices {
		discrete = discrete || d.Total > 0 && !d.Unified
	}
	sums := map[string]uint64{}
	best := ""
	for _, d := range r.Devices {
		if d.Unified == discrete {
			continue
		}
		sums[d.Vendor] += d.Total
		if sums[d.Vendor] > sums[best] {
			best = d.Vendor
		}
	}
	for i := range r.Devices {
		d := &r.Devices[i]
		if best == "" || d.Vendor != best || d.Unified == discrete || d.Total == 0 {
			continue
		}
		d.Counted = true
		r.Total += d.Total
	}
	return discrete
}

func (r *Report) summary(caveats []string) string {
	var parts []string
	for _, d := range r.Devices {
		if !d.Counted {
			continue
		}
		part := d.Name + " with " + Size(d.Total)
		if d.Unified {
			part += " shared with the processor"
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, "; ")
	if len(parts) > 2 {
		text = fmt.Sprintf("%d GPUs with %s in all", len(parts), Size(r.Total))
	}
	if len(caveats) > 0 {
		text += " (not counted: " + strings.Join(caveats, "; ") + ")"
	}
	return text
}

// Size writes bytes for people: 24564 MiB.
func Size(bytes uint64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}
