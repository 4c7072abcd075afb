package vram

import (
	"cmp"
	"fmt"
	"slices"
)

// room is what may be used of one GPU.
type room struct {
	device int // its place in Report.Devices
	name   string
	bytes  uint64
}

// rooms are the counted devices of r, those with most room first. assumed tells
// that one of them does not say what is free.
func rooms(r Report, o Options, margin bool) (rooms []room, assumed bool, err error) {
	if r.State != Known {
		return nil, false, fmt.Errorf("the GPU memory is %v: %s", r.State, r.Reason)
	}
	var taken uint64 // by anybody, this model too
	for _, d := range r.Devices {
		if d.Counted && d.FreeKnown {
			taken += d.Total - min(d.Free, d.Total)
		}
	}
	for i, d := range r.Devices {
		if !d.Counted {
			continue
		}
		free := d.Total
		if d.FreeKnown {
			free = min(d.Free, d.Total)
			used := d.Total - free
			// Where the server holds it is not known: it is shared out as memory is taken.
			held := float64(o.Held) * (float64(used) / float64(max(taken, 1)))
			free = min(free+uint64(held), d.Total)
		}
		assumed = assumed || !d.FreeKnown
		keep := uint64(0)
		if margin {
			keep = cmp.Or(o.Margin, usualMargin(d, free))
		}
		rooms = append(rooms, room{device: i, name: d.Name, bytes: free - min(keep, free)})
	}
	if len(rooms) == 0 {
		return nil, false, fmt.Errorf("no GPU counts here: %s", r.Reason)
	}
	slices.SortStableFunc(rooms, func(a, b room) int { return cmp.Compare(b.bytes, a.bytes) })
	return rooms, assumed, nil
}

// usualMargin is what the estimate may be wrong by, and others take meanwhile.
func usualMargin(d Device, free uint64) uint64 {
	least := uint64(1 << 30)
	if d.Unified {
		least = 2 << 30
	}
	return max(least, free/20)
}

// placeOnFewest places on as few GPUs as will do, as servers do. left is what
// finds no place on any number of them, in bytes.
func placeOnFewest(c costs, rooms []room) (uses []DeviceUse, left uint64) {
	for n := range rooms {
		tried, over := place(c, rooms[:n+1])
		if n == 0 || over < left {
			uses, left = tried, over
		}
		if left == 0 {
			break
		}
	}
	return uses, left
}

// place puts the output and the last layers into the first room, those before
// into the next, and so on. left is what finds no place, in bytes. More room or
// lower costs never make more be left over.
func place(c costs, rooms []room) (uses []DeviceUse, left uint64) {
	compute := c.alone
	if len(rooms) > 1 {
		compute = c.shared
	}
	next := len(c.layers) - 1
	for i, r := range rooms {
		use := DeviceUse{Device: r.device, Name: r.name, Room: r.bytes, Use: Use{Compute: compute, Overhead: c.overhead}}
		if i == 0 {
			use.Use = use.Use.plus(c.first)
			use.Use.Compute = max(compute, c.floor)
		}
		if i == 0 && use.Use.Total() > r.bytes {
			break // the output finds no place, and nothing before it would be of use
		}
		for ; next >= 0 && use.Use.Total()+c.layers[next].Total() <= r.bytes; next-- {
			use.Use = use.Use.plus(c.layers[next])
			use.Layers++
		}
		if i == 0 || use.Layers > 0 {
			uses = append(uses, use)
		}
	}
	for ; next >= 0; next-- {
		left += c.layers[next].Total()
	}
	if len(uses) == 0 {
		left += c.first.Total()
	}
	return uses, left
}
