package vram

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// On a machine with a GPU of NVIDIA's (GPU_E2E=1) the answer is the one
// nvidia-smi gives by itself.
func TestOnThisMachine(t *testing.T) {
	if os.Getenv("GPU_E2E") != "1" {
		t.Skip("GPU_E2E=1 asks the GPU of this machine")
	}
	p := New(Config{})
	p.config.deadline = 30 * time.Second // the first call wakes the GPU, which can take long
	r := p.Probe(t.Context())
	t.Logf("%v: %s\n%s", r.State, r.Reason, strings.Join(r.Steps, "\n"))
	if r.State != Known || !r.FreeKnown || r.Free > r.Total {
		t.Fatalf("want a GPU with what is free: %+v", r)
	}
	invariants(t, r)
	tool, ok := findSMI()
	if !ok {
		t.Fatal("nvidia-smi is not found")
	}
	out, err := runTool(t.Context(), tool, []string{"--query-gpu=memory.total", "--format=csv,noheader,nounits"}, environment(tool))
	if err != nil {
		t.Fatalf("nvidia-smi by itself: %v", err)
	}
	t.Logf("nvidia-smi by itself: %q", out.text)
	var total uint64
	for line := range strings.Lines(string(out.text)) {
		mib, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatalf("nvidia-smi by itself: %v", err)
		}
		total += mib << 20
	}
	if difference := max(r.Total, total) - min(r.Total, total); difference > total/100 {
		t.Errorf("%s found, nvidia-smi says %s", Size(r.Total), Size(total))
	}
	if again := p.Probe(t.Context()); again.Asked != r.Asked {
		t.Error("a fresh answer was asked again")
	}
}
