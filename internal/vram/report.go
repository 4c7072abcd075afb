// Package vram measures the GPU memory of this machine.
//
// A Prober asks nvidia-smi, the kernel's files and, on a Mac, sysctl. Its Report is Known or
// Unknown, with the reason in words. It never loads a driver library into this process, so a
// hanging driver costs a deadline only.
//
// The report is about the machine, not about a model server: it ignores CUDA_VISIBLE_DEVICES, other
// containers and other machines.
package vram

import (
	"fmt"
	"strings"
	"time"
)

// State says whether the size is known.
type State string

// The states.
const (
	Unknown State = "unknown"
	Known   State = "known"
)

// Device is one GPU. Sizes are bytes.
type Device struct {
	Vendor string `json:"vendor"` // nvidia, amd, intel, apple
	Name   string `json:"name"`
	Total  uint64 `json:"total"` // 0 = unknown; Note says why
	// Unified memory is shared with the processor.
	Unified bool `json:"unified"`
	// Counted devices are part of the report's Total.
	Counted bool   `json:"counted"`
	Note    string `json:"note,omitempty"`
}

// Report is the result of one probe. It has no free memory: tiers depend on the total only.
type Report struct {
	State   State    `json:"state"`
	Reason  string   `json:"reason"`
	Devices []Device `json:"devices"` // never nil in a report of a Prober
	// Total is the sum in bytes over the counted devices: those of the vendor with the most,
	// because a model server uses one vendor's GPUs, and discrete ones if there are any. It is 0
	// unless State is Known.
	Total uint64 `json:"total"`
	// Steps say what each source reported, in order.
	Steps []string  `json:"steps"`
	Asked time.Time `json:"asked"` // start of the probe; zero = never
}

// maxSize is the largest plausible size in bytes.
const maxSize = 4 << 40

// findings are the raw results of all sources.
type findings struct {
	devices  []Device
	steps    []string
	doubts   []string // reasons why there may be more than devices says
	timedOut bool     // a tool did not answer in time, so the previous report stays
}

func (f *findings) step(format string, args ...any) {
	f.steps = append(f.steps, fmt.Sprintf(format, args...))
}

// doubt records a doubt and a step: the reason alone would not name its source.
func (f *findings) doubt(format string, args ...any) {
	f.doubts = append(f.doubts, fmt.Sprintf(format, args...))
	f.step(format, args...)
}

// report turns findings into a report. It is pure.
func (f *findings) report(asked time.Time) Report {
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
		// If only shared memory is known, the doubtful GPU may be the decisive one.
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

// count marks the counted devices, sums them up and reports whether they are discrete.
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

// Size formats bytes for people: 24564 MiB.
func Size(bytes uint64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}
