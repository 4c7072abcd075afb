package prompt

import (
	"fmt"
	"slices"
	"strings"
)

// Other orders than stable's, each a design of its own that people know from
// elsewhere. They rebuild the system text for every request.

// perToken is how many characters of English make a token, for caps that were
// thought of in tokens.
const perToken = 4

// worth is what survives of a section in a layout, and its cap in characters, where
// they are not those of stable; 0 = as there.
type worth struct{ keep, max int }

// parts are what core is in one, for layouts in which these stand apart.
var parts = map[string]worth{"identity": {Must, 4_000}, "mandates": {Must, 4_000}, "safety": {Must, 4_000}, "base": {Must, 16_000}}

// rebuilt is a layout of the sections of stable in another order, all in the prefix but
// for what is said once or is new.
func rebuilt(order string, own map[string]worth) []place {
	var places []place
	for i, id := range strings.Fields(order) {
		p := place{ID: id, Zone: Prefix, Order: i, Keep: parts[id].keep, Max: parts[id].max, Change: Rebuilt}
		if at := slices.IndexFunc(stable, func(s place) bool { return s.ID == id || sameAs[s.ID] == id }); at >= 0 {
			p.Keep, p.Max = stable[at].Keep, stable[at].Max
		} else if p.Keep == 0 {
			panic(fmt.Sprintf("prompt: stable has no section %s", id))
		}
		if w := own[id]; w.keep != 0 {
			p.Keep = w.keep
		}
		if w := own[id]; w.max != 0 {
			p.Max = w.max
		}
		places = append(places, p)
	}
	for _, s := range stable {
		if s.ID == "seed" || s.ID == "steering" {
			places = append(places, s)
		}
	}
	return places
}

// classic is one document: core instructions, time, memories, tasks, summary, skills.
// What it does not speak of stands beside what is like it.
var classic = rebuilt(`core guides tools template sanity soul agents toolnotes commands agent preferences user instructions context models
	clock runtime thinking memories recalled goal steps pin tasks workspace summary footprint files skills active_skills skill_hints reminder`, nil)

// tiered begins with the template for the mode and the model's tier; goals are
// never cut.
var tiered = rebuilt(`template identity mandates safety base goal steps pin tasks skills active_skills skill_hints guides tools reminder models
	sanity instructions context soul agents toolnotes commands agent preferences user clock runtime thinking memories recalled workspace footprint files summary`,
	map[string]worth{"template": {0, 1_500 * perToken}, "steps": {0, 4_000}, "sanity": {0, 200 * perToken}})

// split has a static part, who the assistant and the person are first, and at its
// end a suffix that is new for every request: time, model, task and summary.
var split = rebuilt(`soul user preferences memories identity mandates safety base template sanity agent agents toolnotes commands instructions context
	guides tools skill_hints active_skills skills models reminder
	clock runtime thinking goal steps pin tasks workspace footprint files summary recalled`,
	map[string]worth{"soul": {Must, 0}, "guides": {0, 8_000}, "tools": {85, 0}, "reminder": {40, 0}, "runtime": {30, 0}, "summary": {0, 4_000 * perToken}})

// layered numbers its layers; a lower number stands earlier and survives longer.
var layered = rebuilt(`identity tools mandates safety template sanity instructions thinking soul agent preferences agents toolnotes commands base guides
	context user goal steps pin reminder skills active_skills skill_hints models memories recalled tasks workspace footprint files clock summary runtime`,
	map[string]worth{
		"identity": {Must, 500 * perToken}, "tools": {100, 500 * perToken}, "mandates": {Must, 500 * perToken}, "safety": {Must, 500 * perToken},
		"instructions": {Must, 1_000 * perToken}, "thinking": {88, 200 * perToken}, "soul": {85, 1_000 * perToken}, "agents": {85, 1_000 * perToken},
		"toolnotes": {85, 1_000 * perToken}, "commands": {85, 1_000 * perToken}, "agent": {85, 1_000 * perToken}, "preferences": {85, 1_000 * perToken},
		"base": {82, 2_000 * perToken}, "guides": {82, 2_000 * perToken}, "user": {80, 1_000 * perToken}, "skills": {60, 1_000 * perToken},
		"active_skills": {60, 4_000 * perToken}, "memories": {50, 2_000 * perToken}, "recalled": {48, 2_000 * perToken}, "tasks": {45, 1_000 * perToken},
		"clock": {40, 200 * perToken}, "summary": {30, 10_000 * perToken}, "runtime": {20, 200 * perToken},
	})

// phased has sticky constraints first, then the phases task, memory and tools;
// what a phase is worth is its keep.
var phased = rebuilt(`identity mandates agent safety clock runtime preferences instructions context template sanity soul user agents toolnotes commands thinking
	goal steps pin tasks
	memories workspace summary footprint files recalled
	base guides tools skills active_skills skill_hints models reminder`,
	map[string]worth{
		"agent": {Must, 0}, "runtime": {Must, 0}, "preferences": {Must, 0}, "goal": {95, 0}, "steps": {95, 4_000}, "pin": {90, 0}, "tasks": {85, 0},
		"memories": {70, 0}, "workspace": {40, 0}, "summary": {60, 0}, "recalled": {65, 0}, "base": {80, 0}, "guides": {75, 8_000}, "tools": {65, 0}, "skills": {50, 0},
	})
