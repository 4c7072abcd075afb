package window

import (
	"fmt"

	"reverie/internal/llm/detect"
	"reverie/internal/vram"
)

// tierBounds are the largest windows, in tokens, of the tiers 1 to 4; a larger
// one is tier 5.
var tierBounds = [...]int{4096, 8192, 16384, 32768}

// TierFor is the tier of a window: 1–5.
func TierFor(window int) int {
	tier := 1
	for _, bound := range tierBounds {
		if window > bound {
			tier++
		}
	}
	return tier
}

// A window outside of these is a mistake.
const (
	leastWindow = 512
	mostWindow  = 16 << 20
	smallWindow = 2048 // below it, hardly a conversation fits
)

// Said is what one source says of a window.
type Said struct {
	Tokens int    // 0 = it says nothing
	By     string // who said so, or why nothing is said, in words; may be empty
}

// String is the decision in one line.
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

// Inputs are what is known of a model's window when its tier is decided. What is
// left empty is not known.
type Inputs struct {
	Model    string // as configured
	ID       string // the model and its server: another one is another model, whatever its name
	Settings string // what the owner has set of all this, in any form: compared only

	Tier       int  // the owner's choice of the tier, 1–5; 0 = none
	Configured Said // the owner's window for the model
	Server     Said // what the server has loaded it with, or enforces
	Hosted     Said // the most that a hosted model takes, as its server says
	Likely     Said // what is set for it and not loaded yet, or what models of its name have

	// The rest is looked at only when the model server runs on this machine.
	Here    bool
	Where   string // why, or why not, in words
	VRAM    vram.Report
	Ollama  bool // the server chooses a window as Ollama does
	Trained int  // tokens the model reads at most, whatever it is loaded with
	Outside int  // percent of the loaded model that its server found no room for on the GPU

	Last  Said // what the server had loaded when it was last seen
	Least Said // what such servers load at least
}

// InputsOf are what detection found out, as inputs of a decision.
func InputsOf(found detect.Found) Inputs {
	in := Inputs{Model: found.Model, ID: found.Model, Ollama: found.Server == detect.Ollama, Trained: found.Trained, Outside: found.OffGPU}
	said := Said{Tokens: found.Limit.Tokens, By: found.Limit.Source}
	switch l := found.Limit; {
	case l.Label == detect.Enforced && l.At.IsZero():
		in.Configured = said
	case l.Label == detect.Enforced:
		in.Server = said
	case l.Label == detect.Max:
		in.Hosted = said
	case l.Label == detect.Estimated && l.LowerBound:
		in.Least = said
	case l.Label == detect.Estimated:
		in.Likely = said
	}
	return in
}

// Origin names what decided on a window.
type Origin string

// The origins, in the order in which they are believed.
const (
	ByOwner  Origin = "config"
	ByServer Origin = "server"
	ByHost   Origin = "hosted"
	ByModel  Origin = "model"
	ByMemory Origin = "vram"
	ByLast   Origin = "last"
	ByLeast  Origin = "least"
	ByNobody Origin = "default"
)

// Decision is a window with its tier, and how it came about.
type Decision struct {
	Tier   int    `json:"tier"`
	Window int    `json:"window"` // tokens
	Source Origin `json:"source"` // of the window
	By     string `json:"by"`     // the same in words
	Model  string `json:"model"`
	Sure   bool   `json:"sure"`   // no guess: the model's first answer will not show another window
	Forced bool   `json:"forced"` // the owner chose the tier
	// Steps say in words what each source said, what won and why.
	Steps    []string `json:"steps"`
	Warnings []string `json:"warnings"`
}

// witness is one row of the order in which windows are believed.
type witness struct {
	name   Origin
	title  string
	said   Said
	silent string // what it means that nothing is said
	sure   bool
	capped bool // the model's training limits it
}

// Decide says how large the model's window is and which tier that makes: the
// first source that says something counts, and none may exceed what the server
// enforces. It is pure: the same inputs, the same decision.
func Decide(in Inputs) Decision {
	d := Decision{Model: in.Model, Steps: []string{}, Warnings: []string{}}
	won := witness{name: ByNobody, title: "default", said: Said{detect.DefaultWindow, "nobody says anything"}}
	for _, s := range in.sources() {
		n := s.said.Tokens
		switch {
		case n == 0:
			d.step("%s: %s", s.title, s.silent)
			continue
		case n < leastWindow || n > mostWindow:
			d.step("%s: %d tokens is no window; left aside", s.title, n)
			continue
		}
		d.step("%s: %d tokens%s", s.title, n, inBrackets(s.said.By))
		if won.name == ByNobody {
			won = s
		}
	}
	d.Window, d.Source, d.Sure, d.By = won.said.Tokens, won.name, won.sure, won.said.By
	if won.name == ByNobody {
		d.step("window: %d tokens, the default, because nobody says anything", d.Window)
	} else {
		d.step("window: %d tokens, from %s, the first that says something", d.Window, won.title)
	}
	in.limit(&d, won)
	d.Tier = TierFor(d.Window)
	d.step("tier %d: %s", d.Tier, tierSpan(d.Tier))
	if in.Tier > 0 {
		d.Tier, d.Forced = min(in.Tier, len(tierBounds)+1), true
		d.step("tier %d after all: context.tier says so", d.Tier)
	}
	in.warn(&d)
	return d
}

func (d *Decision) step(format string, args ...any) {
	d.Steps = append(d.Steps, fmt.Sprintf(format, args...))
}

func (d *Decision) warn(format string, args ...any) {
	d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...))
}

// sources lists who may say something, the most believed first.
func (in *Inputs) sources() []witness {
	return []witness{
		{ByOwner, "configuration", in.Configured, "no window is set", true, false},
		{ByServer, "server", in.Server, "does not say what it enforces", true, false},
		{ByHost, "hosted list", in.Hosted, "says nothing", true, false},
		{ByModel, "model", in.Likely, "nothing is set for it, and its name is in no table", false, true},
		in.memory(),
		{ByLast, "last seen", in.Last, "the server was never seen with this model", false, false},
		{ByLeast, "such servers", in.Least, "nothing is known of what they load at least", false, true},
	}
}

// What Ollama loads by itself goes by the memory of all GPUs together.
const (
	muchMemory, muchLoaded     = 47 << 30, 262144
	middleMemory, middleLoaded = 23 << 30, 32768
	littleLoaded               = 4096
)

// memory is what Ollama makes of the GPU memory of this machine, if that is where the model
// runs. That there is none says nothing: the server may see another machine than this program does.
func (in *Inputs) memory() witness {
	s := witness{name: ByMemory, title: "GPU memory", capped: true}
	switch {
	case !in.Here:
		s.silent = "not looked at" + inBrackets(in.Where)
	case in.VRAM.State != vram.Known:
		s.silent = fmt.Sprintf("%s%s", in.VRAM.State, inBrackets(in.VRAM.Reason))
	case !in.Ollama:
		s.silent = vram.Size(in.VRAM.Total) + ", and what its server makes of it is not known"
	default:
		n := littleLoaded
		switch {
		case in.VRAM.Total >= muchMemory:
			n = muchLoaded
		case in.VRAM.Total >= middleMemory:
			n = middleLoaded
		}
		s.said = Said{n, "what Ollama loads with " + vram.Size(in.VRAM.Total)}
	}
	return s
}

// limit lowers a window to what others are known to enforce.
func (in *Inputs) limit(d *Decision, won witness) {
	lower := func(to int, by, why string) {
		if to < leastWindow || to > mostWindow || d.Window <= to {
			return
		}
		d.step("window: lowered to %d tokens, %s", to, why)
		if won.name == ByOwner {
			d.warn("llm.models says a window of %d tokens, but %s; %d are used. Lower it there, or load the model with more.",
				d.Window, why, to)
		}
		d.Window, d.By = to, by
	}
	if won.name != ByServer {
		lower(in.Server.Tokens, in.Server.By, "the server enforces it"+inBrackets(in.Server.By))
		if won.name != ByHost && in.Server.Tokens == 0 {
			lower(in.Hosted.Tokens, in.Hosted.By, "the server takes no more"+inBrackets(in.Hosted.By))
		}
	}
	if won.capped {
		lower(in.Trained, won.said.By+", and the model reads no more", "the model reads no more")
	}
}

// warn adds what the owner should know of the decision.
func (in *Inputs) warn(d *Decision) {
	if in.Outside > 0 {
		d.warn("%d %% of the model found no room on the GPU and runs on the processor, slowly; a smaller window or model helps", in.Outside)
	}
	if in.Configured.Tokens > 0 && in.Trained > 0 && d.Window > in.Trained && d.Source == ByOwner {
		d.warn("the configured window is larger than the %d tokens that the model was made for", in.Trained)
	}
	if d.Window < smallWindow {
		d.warn("a window of %d tokens hardly holds a conversation; load the model with 4096 or more", d.Window)
	}
	if fair := TierFor(d.Window); d.Tier > fair {
		d.warn("context.tier %d is for larger windows than %d tokens, for which %d is made", d.Tier, d.Window, fair)
	}
}

// tierSpan says which windows belong to a tier.
func tierSpan(tier int) string {
	switch {
	case tier <= 1:
		return fmt.Sprintf("windows up to %d tokens", tierBounds[0])
	case tier > len(tierBounds):
		return fmt.Sprintf("windows of more than %d tokens", tierBounds[len(tierBounds)-1])
	}
	return fmt.Sprintf("windows from %d to %d tokens", tierBounds[tier-2]+1, tierBounds[tier-1])
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
