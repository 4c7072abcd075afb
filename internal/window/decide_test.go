package window

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"reverie/internal/vram"
)

func TestTierFor(t *testing.T) {
	for window, tier := range map[int]int{0: 1, 4096: 1, 4097: 2, 8192: 2, 8193: 3, 16384: 3, 16385: 4, 32768: 4, 32769: 5, 1048576: 5} {
		if got := TierFor(window); got != tier {
			t.Errorf("a window of %d is tier %d, want %d", window, got, tier)
		}
	}
}

func TestDecide(t *testing.T) {
	type say = func(*Inputs)
	set := func(f func(in *Inputs, n int)) func(int) say {
		return func(n int) say { return func(in *Inputs) { f(in, n) } }
	}
	config := set(func(in *Inputs, n int) { in.Configured.Tokens = n })
	server := set(func(in *Inputs, n int) { in.Server.Tokens = n })
	hosted := set(func(in *Inputs, n int) { in.Hosted.Tokens = n })
	likely := set(func(in *Inputs, n int) { in.Likely.Tokens = n })
	last := set(func(in *Inputs, n int) { in.Last.Tokens = n })
	least := set(func(in *Inputs, n int) { in.Least.Tokens = n })
	trained := set(func(in *Inputs, n int) { in.Trained = n })
	tier := set(func(in *Inputs, n int) { in.Tier = n })
	outside := set(func(in *Inputs, n int) { in.OffGPUPercent = n })
	gpu := set(func(in *Inputs, gib int) { // on this machine, where the model server is too
		in.Local, in.VRAM = true, vram.Report{State: vram.Known, Total: uint64(gib) << 30}
	})
	noGPU := func(in *Inputs) { in.Local, in.VRAM.State = true, vram.Unknown }
	elsewhere := func(in *Inputs) { in.Local = false }
	ollama := func(in *Inputs) { in.Ollama = true }
	const warned, fine = true, false
	tests := []struct {
		name   string
		in     []say
		window int
		tier   int
		source Origin
		sure   bool
		warned bool
	}{
		{"nobody says anything", nil, 8192, 2, ByDefault, false, fine}, {"config alone", []say{config(16384)}, 16384, 3, ByOwner, true, fine},
		{"config, and the server has more", []say{config(8192), server(32768)}, 8192, 2, ByOwner, true, fine},
		{"config, and the server enforces less", []say{config(32768), server(8192)}, 8192, 2, ByOwner, true, warned},
		{"config, and a hosted model takes less", []say{config(200000), hosted(128000)}, 128000, 5, ByOwner, true, warned},
		{"config, and the model was made for less", []say{config(32768), trained(8192)}, 32768, 4, ByOwner, true, warned},
		{"a joke of a config", []say{config(7), server(16384)}, 16384, 3, ByServer, true, fine},
		{"server alone", []say{server(32768)}, 32768, 4, ByServer, true, fine},
		{"server, below the smallest", []say{server(511)}, 8192, 2, ByDefault, false, fine},
		{"server, beyond the model's training", []say{server(65536), trained(32768)}, 65536, 5, ByServer, true, fine},
		{"server beats GPU memory", []say{server(8192), gpu(80), ollama}, 8192, 2, ByServer, true, fine},
		{"server that is elsewhere and has no room itself", []say{server(32768), outside(40), elsewhere}, 32768, 4, ByServer, true, warned},
		{"hosted list", []say{hosted(131072)}, 131072, 5, ByHost, true, fine},
		{"hosted list beats the table", []say{hosted(64000), likely(128000)}, 64000, 5, ByHost, true, fine},
		{"table", []say{likely(128000)}, 128000, 5, ByModel, false, fine},
		{"a Modelfile's size beats the GPU memory", []say{likely(16384), ollama, gpu(80)}, 16384, 3, ByModel, false, fine},
		{"Ollama here, 8 GiB", []say{ollama, gpu(8), trained(131072), least(4096)}, 4096, 1, ByMemory, false, fine},
		{"Ollama here, 23 GiB", []say{ollama, gpu(23)}, 32768, 4, ByMemory, false, fine},
		{"Ollama here, 47 GiB", []say{ollama, gpu(47)}, 262144, 5, ByMemory, false, fine},
		{"Ollama here, 140 GiB, a model of 40960", []say{ollama, gpu(140), trained(40960)}, 40960, 5, ByMemory, false, fine},
		{"Ollama elsewhere, a large GPU here", []say{ollama, gpu(140), elsewhere, least(4096)}, 4096, 1, ByLeast, false, fine},
		{"Ollama here, no GPU seen, last time it had 32768", []say{ollama, noGPU, last(32768), least(4096)}, 32768, 4, ByLast, false, fine},
		{"Ollama here beats last time", []say{ollama, gpu(24), last(8192)}, 32768, 4, ByMemory, false, fine},
		{"another server here", []say{gpu(24)}, 8192, 2, ByDefault, false, fine},
		{"last time", []say{last(32768)}, 32768, 4, ByLast, false, fine},
		{"what such servers load", []say{least(4096)}, 4096, 1, ByLeast, false, fine},
		{"training alone is no window", []say{trained(131072)}, 8192, 2, ByDefault, false, fine},
		{"tier forced down", []say{tier(1), server(131072)}, 131072, 1, ByServer, true, fine},
		{"tier forced up", []say{tier(5), server(8192)}, 8192, 5, ByServer, true, warned},
		{"tier forced beyond the last", []say{tier(9), server(131072)}, 131072, 5, ByServer, true, fine},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := Inputs{Model: "local"}
			for _, says := range tt.in {
				says(&in)
			}
			d := Decide(in)
			if d.Window != tt.window || d.Tier != tt.tier || d.Source != tt.source || d.Sure != tt.sure || (len(d.Warnings) > 0) != tt.warned {
				t.Errorf("window %d, tier %d, from %s, sure %v, warnings %q", d.Window, d.Tier, d.Source, d.Sure, d.Warnings)
			}
			if len(d.Steps) < 9 || !slices.ContainsFunc(d.Steps, func(s string) bool {
				return strings.Contains(s, fmt.Sprintf("window: %d tokens", tt.window)) || strings.Contains(s, fmt.Sprintf("lowered to %d tokens", tt.window))
			}) {
				t.Errorf("the steps do not say how:\n%s", strings.Join(d.Steps, "\n"))
			}
		})
	}
}

// TestDecisionInWords: the steps name each source, the choice, the limits and the tier.
func TestDecisionInWords(t *testing.T) {
	d := Decide(Inputs{Model: "local", Configured: Claim{32768, "llm.models"}, Server: Claim{8192, "ollama /api/ps"}, LocalReason: "gpu.lan is another machine",
		Last: Claim{4096, "two days ago"}, Tier: 1})
	want := []string{
		"configuration: 32768 tokens (llm.models)", "server: 8192 tokens (ollama /api/ps)",
		"hosted list: says nothing",
		"model: nothing is set for it, and its name is in no table", "GPU memory: not looked at (gpu.lan is another machine)",
		"last seen: 4096 tokens (two days ago)", "such servers: nothing is known of what they load at least",
		"window: 32768 tokens, from configuration, the first that says something",
		"window: lowered to 8192 tokens, the server enforces it (ollama /api/ps)", "tier 2: windows from 4097 to 8192 tokens",
		"tier 1 after all: context.tier says so",
	}
	if diff := cmp.Diff(want, d.Steps); diff != "" {
		t.Errorf("other than wanted: %s", diff)
	}
	if len(d.Warnings) != 1 || !strings.HasPrefix(d.Warnings[0], "llm.models says a window of 32768 tokens, but the server enforces it (ollama /api/ps); 8192 are used.") {
		t.Errorf("warnings %q", d.Warnings)
	}
}

func drawTierInputs(t *rapid.T) Inputs {
	said := func(name string) Claim {
		if rapid.Bool().Draw(t, name+"?") {
			return Claim{}
		}
		return Claim{Tokens: rapid.IntRange(minWindow, maxWindow).Draw(t, name)}
	}
	in := Inputs{Configured: said("config"), Server: said("server"), Hosted: said("hosted"), Likely: said("likely"),
		Last: said("last"), Least: said("least"), Trained: said("trained").Tokens, Local: rapid.Bool().Draw(t, "here"), Ollama: rapid.Bool().Draw(t, "ollama"),
		Tier: rapid.IntRange(0, 5).Draw(t, "tier")}
	in.VRAM.State = rapid.SampledFrom([]vram.State{vram.Unknown, vram.Known}).Draw(t, "memory state")
	if in.VRAM.State == vram.Known {
		in.VRAM.Total = rapid.Uint64Range(1<<30, 1<<38).Draw(t, "memory")
	}
	return in
}

// TestDecideMonotonic: a larger window from one source never makes the decision smaller.
func TestDecideMonotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawTierInputs(t)
		more := in
		all := []*Claim{&more.Configured, &more.Server, &more.Hosted, &more.Likely, &more.Last, &more.Least}
		for i, s := range all {
			if s.Tokens > 0 && rapid.Bool().Draw(t, fmt.Sprint("raise ", i)) {
				s.Tokens = rapid.IntRange(s.Tokens, maxWindow).Draw(t, fmt.Sprint("to ", i))
			}
		}
		if more.Trained > 0 {
			more.Trained = rapid.IntRange(more.Trained, maxWindow).Draw(t, "trained to")
		}
		if more.VRAM.State == vram.Known {
			more.VRAM.Total = rapid.Uint64Range(more.VRAM.Total, 1<<39).Draw(t, "memory to")
		}
		a, b := Decide(in), Decide(more)
		if b.Window < a.Window || b.Tier < a.Tier {
			t.Errorf("window %d, tier %d; with more it is %d and %d", a.Window, a.Tier, b.Window, b.Tier)
		}
	})
}
