package vram

import (
	"fmt"
	"strconv"
	"strings"
)

// sysctlPath is the path of sysctl on every Mac.
const sysctlPath = "/usr/sbin/sysctl"

// sysctlNames are the values that are queried. sysctl omits those that it does not know.
var sysctlNames = []string{"hw.memsize", "iogpu.wired_limit_mb", "hw.optional.arm64", "machdep.cpu.brand_string"}

// parseSysctl parses "name: value" lines into the GPU of an Apple chip. Metal lets a GPU use two
// thirds of the memory up to 36 GiB and three quarters above, unless the owner set another limit.
func parseSysctl(out []byte) (Device, error) {
	values := map[string]string{}
	for _, line := range cleanLines(out) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			values[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	name := clip(values["machdep.cpu.brand_string"], 100)
	if values["hw.optional.arm64"] != "1" && !strings.HasPrefix(name, "Apple") {
		return Device{}, fmt.Errorf("the GPU of a Mac with the processor %q does not report its memory; "+
			"give its size in the configuration", name)
	}
	total, err := strconv.ParseUint(values["hw.memsize"], 10, 64)
	if err != nil || total == 0 || total > maxSize {
		return Device{}, fmt.Errorf("sysctl reports no usable hw.memsize (%q)", clip(values["hw.memsize"], 40))
	}
	if name == "" {
		name = "Apple GPU"
	}
	d := Device{Vendor: "apple", Name: name, Unified: true}
	limit, err := strconv.ParseUint(values["iogpu.wired_limit_mb"], 10, 40)
	switch {
	case err == nil && limit > 0 && limit<<20 <= total:
		d.Total, d.Note = limit<<20, "the limit set by iogpu.wired_limit_mb"
	case total <= 36<<30:
		d.Total, d.Note = total/3*2, "two thirds of "+Size(total)+", what macOS lets the GPU use"
	default:
		d.Total, d.Note = total/4*3, "three quarters of "+Size(total)+", what macOS lets the GPU use"
	}
	return d, nil
}
