package prompt

import (
	"cmp"
	"slices"
	"strings"

	"reverie/internal/prompt/section"
)

// Layout names a set of contributors with their order and caps.
type Layout string

// The layouts of conversations: orders of the same contributors. In Stable, every request of an
// epoch is a byte prefix of the next; the others rebuild the system text each time.
const (
	Stable  Layout = "stable"
	Classic Layout = "classic" // one document: core instructions, time, memories, tasks, summary, skills
	tiered  Layout = "tiered"  // a template for mode and tier, then mandates, goal, skills, sanity checks
	split   Layout = "split"   // a static part that servers can cache, and a changing suffix
	layered Layout = "layered" // numbered layers, the low ones survive longest
	phased  Layout = "phased"  // sticky constraints, then task, memory and tools
)

// The layouts of background work: scheduled jobs, and sub-sessions by their mode. A sub-session in
// mode full uses the conversation's layout.
const (
	job      Layout = "job" // see Turn.IsolateJob
	minimal  Layout = "minimal"
	baseOnly Layout = "base_only"
	Bare     Layout = "none" // no system text at all
)

// Layouts lists the layouts of conversations.
func Layouts() []Layout { return []Layout{Stable, Classic, tiered, split, layered, phased} }

// override overrides a section's keep, and its cap in characters, for a layout; 0 = the catalogue's
// value.
type override struct{ keep, max int }

// layouts holds the contributors of each layout, in prompt order.
var layouts = map[Layout][]section.Contributor{
	Stable: stable(),

	// One document. Other sections are next to similar ones.
	Classic: withOthers(`
		core guides tools template sanity persona soul agents toolnotes commands agent preferences user profile instructions style context
		models clock runtime thinking memories recalled goal steps pin tasks workspace summary footprint files
		skills active_skills skill_hints reminder`, nil),

	// It begins with the template for the mode and the model's tier; goals are never cut.
	tiered: withOthers(`
		template identity mandates safety base goal steps pin tasks skills active_skills skill_hints guides tools reminder models
		sanity instructions context persona soul agents toolnotes commands agent preferences user profile style clock runtime thinking
		memories recalled workspace footprint files summary`, map[string]override{
		"template": {0, 6_000}, "steps": {0, 4_000}, "sanity": {0, 800},
	}),

	// It has a static part, first the assistant's and the person's identity, and a suffix that is
	// new for every request: time, model, task and summary.
	split: withOthers(`
		persona soul user profile preferences memories identity mandates safety base template sanity agent agents toolnotes commands
		instructions style context
		guides tools skill_hints active_skills skills models reminder
		clock runtime thinking goal steps pin tasks workspace footprint files summary recalled`, map[string]override{
		"soul": {section.Must, 0}, "guides": {0, 8_000}, "tools": {85, 0}, "reminder": {40, 0}, "runtime": {30, 0}, "summary": {0, 16_000},
	}),

	// It numbers its layers; a lower number comes earlier and survives longer.
	layered: withOthers(`
		identity tools mandates safety template sanity instructions thinking persona soul agent preferences agents toolnotes commands
		base guides style context user profile goal steps pin reminder skills active_skills skill_hints models memories recalled
		tasks workspace footprint files clock summary runtime`, map[string]override{
		"identity": {section.Must, 2_000}, "tools": {100, 2_000}, "mandates": {section.Must, 2_000}, "safety": {section.Must, 2_000},
		"instructions": {section.Must, 4_000}, "thinking": {88, 800}, "persona": {85, 4_000}, "soul": {85, 4_000}, "agents": {85, 4_000},
		"toolnotes": {85, 4_000}, "commands": {85, 4_000}, "agent": {85, 4_000}, "preferences": {85, 4_000},
		"base": {82, 8_000}, "guides": {82, 8_000}, "user": {80, 4_000}, "skills": {60, 4_000},
		"active_skills": {60, 16_000}, "memories": {50, 8_000}, "recalled": {48, 8_000}, "tasks": {45, 4_000},
		"clock": {40, 800}, "summary": {30, 40_000}, "runtime": {20, 800},
	}),

	// It has sticky constraints first, then the phases task, memory and tools. A phase's weight is
	// its keep.
	phased: withOthers(`
		identity mandates agent safety clock runtime preferences instructions context template sanity persona soul user profile agents
		toolnotes commands style thinking
		goal steps pin tasks
		memories workspace summary footprint files recalled
		base guides tools skills active_skills skill_hints models reminder`, map[string]override{
		"agent": {section.Must, 0}, "runtime": {section.Must, 0}, "preferences": {section.Must, 0}, "goal": {95, 0},
		"steps": {95, 4_000}, "pin": {90, 0}, "tasks": {85, 0},
		"memories": {70, 0}, "workspace": {40, 0}, "summary": {60, 0}, "recalled": {65, 0},
		"base": {80, 0}, "guides": {75, 8_000}, "tools": {65, 0}, "skills": {50, 0},
	}),

	// Rules, the style, the task, and the skills and memories that match its words.
	job: exactly("identity mandates safety style guides clock instructions context active_skills recalled", shortIdentity),

	minimal:  exactly("identity safety clock instructions", shortIdentity),
	baseOnly: exactly("core", nil),
	Bare:     nil,
}

var shortIdentity = map[string]override{"identity": {0, 2_000}}

// stable returns the catalogue without the contributors of other layouts.
func stable() []section.Contributor {
	return slices.DeleteFunc(slices.Clone(section.Catalog), func(c section.Contributor) bool { return c.Zone == section.Apart })
}

// exactly returns a layout of exactly these contributors, all in the prefix.
func exactly(order string, own map[string]override) []section.Contributor {
	var rows []section.Contributor
	for name := range strings.FieldsSeq(order) {
		at := slices.IndexFunc(section.Catalog, func(c section.Contributor) bool { return c.Name == name })
		c := section.Catalog[at]
		c.Zone, c.Change = section.Prefix, section.Rebuilt
		c.Keep, c.Max = cmp.Or(own[name].keep, c.Keep), cmp.Or(own[name].max, c.Max)
		rows = append(rows, c)
	}
	return rows
}

// withOthers returns a layout of all contributors: those of order, then the others as in stable.
func withOthers(order string, own map[string]override) []section.Contributor {
	prefix := exactly(order, own)
	var tail []section.Contributor
	for _, c := range stable() {
		stands := func(p section.Contributor) bool { return p.Name == c.Name || p.Name == section.SameAs[c.Name] }
		switch {
		case c.Name == "core" || slices.ContainsFunc(prefix, stands):
		case c.Zone == section.Tail:
			tail = append(tail, c)
		default:
			prefix = append(prefix, exactly(c.Name, own)...)
		}
	}
	return append(prefix, tail...)
}
