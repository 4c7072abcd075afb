package vram

import (
	"fmt"
	"strconv"
	"strings"
)

// sysctlPath is where every Mac has it.
const sysctlPath = "/usr/sbin/sysctl"

// sysctlNames are what a Mac is asked. Those it does not know it leaves out.
var sysctlNames = []string{"hw.memsize", "iogpu.wired_limit_mb", "hw.optional.arm64", "machdep.cpu.brand_string"}

// parseSysctl reads "name: value" lines and makes the GPU of a Mac with Apple's
// own chip of them. What Metal lets a GPU use is two thirds of the memory up to
// 36 GiB and three quarters above, unless the owner set another limit.
func parseSysctl(out []byte) (Device, error) {
	values := map[string]string{}
	for _, line := range lines(out) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			values[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	name := shorten(values["machdep.cpu.brand_string"], 100)
	if values["hw.optional.arm64"] != "1" && !strings.HasPrefix(name, "Apple") {
		return Device{}, fmt.Errorf("the GPU of a Mac with the processor %q does not tell its memory; "+
			"give its size in the configuration", name)
	}
	total, err := strconv.ParseUint(values["hw.memsize"], 10, 64)
	if err != nil || total == 0 || total > most {
		return Device{}, fmt.Errorf("sysctl tells no usable hw.memsize (%q)", shorten(values["hw.memsize"], 40))
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
