package window

import (
	"fmt"

	"reverie/internal/llm/detect"
	"reverie/internal/vram"
)

// tierBounds are the largest windows of tiers 1 to 4, in tokens. Larger ones are tier 5.
var tierBounds = [...]int{4096, 8192, 16384, 32768}

// TierFor returns the tier of a window, 1 to 5.
func TierFor(window int) int {
	tier := 1
	for _, bound := range tierBounds {
		if window > bound {
			tier++
		}
	}
	return tier
}

// Bounds of a plausible window, in tokens.
const (
	minWindow   = 512
	maxWindow   = 16 << 20
	smallWindow = 2048 // below it, a conversation hardly fits
)

// Claim is the window that one source reports.
type Claim struct {
	Tokens int    // 0 = unknown
	By     string // who says so, or why it is unknown, in words; may be empty
}

// String describes the decision in one line.
func (d Decision) String() string {
	text := fmt.Sprintf("prompt tier %d, for a window of %d tokens (%s", d.Tier, d.Window, d.Source)
	if d.By != "" {
		text += ": " + d.By
	}
	text += ")"
	if d.Forced {
		text += "; the tier is set by context.tier"
	}
	return text
}

// Inputs are the known facts from which Decide derives a window and tier. Empty fields are unknown.
type Inputs struct {
	Model    string // as configured
	ID       string // model and server: identifies the model
	Settings string // the owner's settings, as text to compare

	Tier       int   // tier set by the owner, 1–5; 0 = none
	Configured Claim // window set by the owner
	Server     Claim // what the server loaded or enforces
	Hosted     Claim // maximum of a hosted model, as its server says
	Likely     Claim // configured but not loaded yet, or typical for the model's name

	// Used only if the model server runs on this machine.
	Local         bool
	LocalReason   string // why Local is true or false, in words
	VRAM          vram.Report
	Ollama        bool // the server is Ollama and chooses the window like it
	Trained       int  // the model's training length, in tokens
	OffGPUPercent int  // percent of the loaded model that did not fit on the GPU

	Last  Claim // what the server had loaded when last seen
	Least Claim // minimum that such servers load
}

// InputsOf converts a detection result to inputs.
func InputsOf(found detect.Found) Inputs {
	in := Inputs{Model: found.Model, ID: found.Model, Ollama: found.Server == detect.Ollama, Trained: found.Trained,
		OffGPUPercent: found.OffGPU}
	claim := Claim{Tokens: found.Limit.Tokens, By: found.Limit.Source}
	switch l := found.Limit; {
	case l.Label == detect.Enforced && l.At.IsZero():
		in.Configured = claim
	case l.Label == detect.Enforced:
		in.Server = claim
	case l.Label == detect.Max:
		in.Hosted = claim
	case l.Label == detect.Estimated && l.LowerBound:
		in.Least = claim
	case l.Label == detect.Estimated:
		in.Likely = claim
	}
	return in
}

// Origin names the source of a window.
type Origin string

// The origins, most trusted first.
const (
	ByOwner   Origin = "config"
	ByServer  Origin = "server"
	ByHost    Origin = "hosted"
	ByModel   Origin = "model"
	ByMemory  Origin = "vram"
	ByLast    Origin = "last"
	ByLeast   Origin = "least"
	ByDefault Origin = "default"
)

// Decision is a window, its tier and how both were found.
type Decision struct {
	Tier   int    `json:"tier"`
	Window int    `json:"window"` // tokens
	Source Origin `json:"source"` // of Window
	By     string `json:"by"`     // the source in words
	Model  string `json:"model"`
	Sure   bool   `json:"sure"`   // not an estimate: the first answer cannot change it
	Forced bool   `json:"forced"` // the owner chose the tier
	// Steps explain each source and the choice, in words.
	Steps    []string `json:"steps"`
	Warnings []string `json:"warnings"`
}

type source struct {
	name     Origin
	title    string
	claim    Claim
	ifSilent string // explanation when the source has no value
	sure     bool
	capped   bool // limited by the training length
}

// Decide returns the model's window and tier: the value of the first source that has one, capped by
// what the server enforces. It is a pure function.
func Decide(in Inputs) Decision {
	d := Decision{Model: in.Model, Steps: []string{}, Warnings: []string{}}
	chosen := source{name: ByDefault, title: "default", claim: Claim{detect.DefaultWindow, "nobody says anything"}}
	for _, s := range in.sources() {
		n := s.claim.Tokens
		switch {
		case n == 0:
			d.addStep("%s: %s", s.title, s.ifSilent)
			continue
		case n < minWindow || n > maxWindow:
			d.addStep("%s: %d tokens is no window; left aside", s.title, n)
			continue
		}
		d.addStep("%s: %d tokens%s", s.title, n, parenthesized(s.claim.By))
		if chosen.name == ByDefault {
			chosen = s
		}
	}
	d.Window, d.Source, d.Sure, d.By = chosen.claim.Tokens, chosen.name, chosen.sure, chosen.claim.By
	if chosen.name == ByDefault {
		d.addStep("window: %d tokens, the default, because nobody says anything", d.Window)
	} else {
		d.addStep("window: %d tokens, from %s, the first that says something", d.Window, chosen.title)
	}
	in.applyLimits(&d, chosen)
	d.Tier = TierFor(d.Window)
	d.addStep("tier %d: %s", d.Tier, tierSpan(d.Tier))
	if in.Tier > 0 {
		d.Tier, d.Forced = min(in.Tier, len(tierBounds)+1), true
		d.addStep("tier %d after all: context.tier says so", d.Tier)
	}
	in.addWarnings(&d)
	return d
}

func (d *Decision) addStep(format string, args ...any) {
	d.Steps = append(d.Steps, fmt.Sprintf(format, args...))
}

func (d *Decision) addWarning(format string, args ...any) {
	d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...))
}

// sources lists the sources, most trusted first.
func (in *Inputs) sources() []source {
	return []source{
		{ByOwner, "configuration", in.Configured, "no window is set", true, false},
		{ByServer, "server", in.Server, "does not say what it enforces", true, false},
		{ByHost, "hosted list", in.Hosted, "says nothing", true, false},
		{ByModel, "model", in.Likely, "nothing is set for it, and its name is in no table", false, true},
		in.gpuMemory(),
		{ByLast, "last seen", in.Last, "the server was never seen with this model", false, false},
		{ByLeast, "such servers", in.Least, "nothing is known of what they load at least", false, true},
	}
}

// Ollama's default window depends on the memory of all GPUs together.
const (
	largeGPU, largeGPUWindow   = 47 << 30, 262144
	mediumGPU, mediumGPUWindow = 23 << 30, 32768
	smallGPUWindow             = 4096
)

// gpuMemory returns the window that Ollama chooses for this machine's GPUs. It does so only if the
// model runs here. Missing GPUs say nothing: the server may see others.
func (in *Inputs) gpuMemory() source {
	s := source{name: ByMemory, title: "GPU memory", capped: true}
	switch {
	case !in.Local:
		s.ifSilent = "not looked at" + parenthesized(in.LocalReason)
	case in.VRAM.State != vram.Known:
		s.ifSilent = fmt.Sprintf("%s%s", in.VRAM.State, parenthesized(in.VRAM.Reason))
	case !in.Ollama:
		s.ifSilent = vram.Size(in.VRAM.Total) + ", and what its server makes of it is not known"
	default:
		n := smallGPUWindow
		switch {
		case in.VRAM.Total >= largeGPU:
			n = largeGPUWindow
		case in.VRAM.Total >= mediumGPU:
			n = mediumGPUWindow
		}
		s.claim = Claim{n, "what Ollama loads with " + vram.Size(in.VRAM.Total)}
	}
	return s
}

func (in *Inputs) applyLimits(d *Decision, chosen source) {
	lower := func(to int, by, why string) {
		if to < minWindow || to > maxWindow || d.Window <= to {
			return
		}
		d.addStep("window: lowered to %d tokens, %s", to, why)
		if chosen.name == ByOwner {
			d.addWarning("llm.models says a window of %d tokens, but %s; %d are used. Lower it there, or load the model with more.",
				d.Window, why, to)
		}
		d.Window, d.By = to, by
	}
	if chosen.name != ByServer {
		lower(in.Server.Tokens, in.Server.By, "the server enforces it"+parenthesized(in.Server.By))
		if chosen.name != ByHost && in.Server.Tokens == 0 {
			lower(in.Hosted.Tokens, in.Hosted.By, "the server takes no more"+parenthesized(in.Hosted.By))
		}
	}
	if chosen.capped {
		lower(in.Trained, chosen.claim.By+", and the model reads no more", "the model reads no more")
	}
}

func (in *Inputs) addWarnings(d *Decision) {
	if in.OffGPUPercent > 0 {
		d.addWarning("%d %% of the model found no room on the GPU and runs on the processor, slowly; a smaller window or model helps",
			in.OffGPUPercent)
	}
	if in.Configured.Tokens > 0 && in.Trained > 0 && d.Window > in.Trained && d.Source == ByOwner {
		d.addWarning("the configured window is larger than the %d tokens that the model was made for", in.Trained)
	}
	if d.Window < smallWindow {
		d.addWarning("a window of %d tokens hardly holds a conversation; load the model with 4096 or more", d.Window)
	}
	if fitting := TierFor(d.Window); d.Tier > fitting {
		d.addWarning("context.tier %d is for larger windows than %d tokens, for which %d is made", d.Tier, d.Window, fitting)
	}
}

func tierSpan(tier int) string {
	switch {
	case tier <= 1:
		return fmt.Sprintf("windows up to %d tokens", tierBounds[0])
	case tier > len(tierBounds):
		return fmt.Sprintf("windows of more than %d tokens", tierBounds[len(tierBounds)-1])
	}
	return fmt.Sprintf("windows from %d to %d tokens", tierBounds[tier-2]+1, tierBounds[tier-1])
}

func parenthesized(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
