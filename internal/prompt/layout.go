package prompt

import "context"

// Layout names a profile: which contributors a prompt has, in which order and
// with which caps.
type Layout string

// The layouts of conversations. Each is an order of the same contributors. Stable keeps
// every request of an epoch a byte prefix of the next; the others rebuild the system text
// for every request.
const (
	Stable  Layout = "stable"
	Classic Layout = "classic" // one document: core instructions, time, memories, tasks, summary, skills
	Tiered  Layout = "tiered"  // a template for mode and tier, then mandates, goal, skills, sanity checks
	Split   Layout = "split"   // a static part that servers can cache, and a suffix that changes
	Layered Layout = "layered" // numbered layers, the low ones the safest
	Phased  Layout = "phased"  // sticky constraints, then task, memory and tools
)

// The layouts of work that nobody watches: scheduled jobs, and sub-sessions by their mode.
// A sub-session in full takes the layout of the conversation.
const (
	Job      Layout = "job" // see Turn.Job
	Minimal  Layout = "minimal"
	BaseOnly Layout = "base_only"
	Bare     Layout = "none" // no system text at all
)

// contributors is everything that can stand in a prompt: its heading, whose
// words it holds (Data is fenced), how it gives way, and what gathers it. One
// more is one file and one line here; where it stands is a line in a layout.
var contributors = []contributor{
	// name          heading                 trust    shrink    gather
	{"core", "Core Instructions", Trusted, TailCut, gatherPart(baseFile, all)},    // all of BASE_PROMPT.txt, or in parts:
	{"identity", "Identity", Trusted, TailCut, gatherPart(baseFile, "identity")},  //
	{"mandates", "Core Mandates", Trusted, TailCut, gatherPart(baseFile, "core")}, //
	{"safety", "Safety", Trusted, TailCut, gatherPart(baseFile, "safety")},        //
	{"base", "Base Instructions", Trusted, TailCut, gatherPart(baseFile, rest)},   // what is none of these
	{"guides", "Tool Guides", Trusted, Items, gatherGuides},                       // prompts/tools/NAME.txt
	{"template", "Mode", Trusted, TailCut, gatherTemplate},                        // prompts/MODE/tierN.txt
	{"sanity", "Sanity Checks", Trusted, TailCut, gatherPart(sanityFile, all)},    // prompts/SANITY.txt
	{"soul", "Soul", Trusted, TailCut, gatherFile("SOUL.md")},                     // the owner's own files
	{"agents", "Agents", Trusted, TailCut, gatherFile("AGENTS.md")},               //
	{"toolnotes", "Tool Notes", Trusted, TailCut, gatherFile("TOOLS.md")},         //
	{"commands", "Commands", Trusted, TailCut, gatherFile("COMMANDS.md")},         //
	{"agent", "Agent", Trusted, TailCut, gatherFile("AGENT.md")},                  //
	{"preferences", "Preferences", Trusted, TailCut, gatherFile("PREFERENCES.md")},
	{"user", "About the Person", Trusted, TailCut, gatherFile("USER.md")},
	{"instructions", "Instructions", Trusted, TailCut, gatherInstructions},
	{"context", "About This Room", Trusted, TailCut, gatherContext},
	{"models", "Models", Trusted, Items, roomy(gatherModels)},
	{"tools", "Tools", Trusted, Items, roomy(gatherTools)},
	{"reminder", "Tools Reminder", Trusted, None, roomy(gatherReminder)},
	{"workspace", "Workspace", Data, Items, roomy(gatherWorkspace)},
	{"skills", "Skills", Data, Items, gatherSkills}, // their table of contents
	{"active_skills", "Active skills", Data, Items, gatherActiveSkills},
	{"skill_hints", "Skills that may help", Data, Items, gatherSkillHints},
	{"memories", "User Memories", Data, Items, gatherMemories},
	{"learned", "New memories", Data, Items, nil},                          // of these
	{"recalled", "Recalled for this message", Data, Items, gatherRecalled}, // from all of them
	{"goal", "Active Goal", Data, Items, gatherGoal},
	{"steps", "Goal steps now", Data, Items, gatherSteps},
	{"pin", "Current Task", Data, TailCut, gatherPin},
	{"tasks", "Active Tasks", Data, Items, gatherTasks},
	{"tasks_now", "Active tasks now", Data, Items, nil}, // of these
	{"summary", "Conversation Summary", Data, HeadTail, gatherSummary},
	{"footprint", "Lately Used", Data, Items, roomy(gatherFootprint)},
	{"files", "Files Read", Data, Items, roomy(gatherFiles)},
	{"thinking", "Thinking", Trusted, None, gatherThinking},
	{"clock", clockTitle, Trusted, None, gatherClock},
	{"runtime", "Runtime", Trusted, None, roomy(gatherRuntime)},
	{"steering", "Now", Trusted, Items, gatherSteering}, // steering.go
	{"seed", "", Trusted, TailCut, gatherSeed},
}

// Contributors that show what another one gathered.
var sameAs = map[string]string{"learned": "memories", "tasks_now": "tasks"}

// layouts is the prompt, in prompt order. The other layouts of conversations are orders
// of what stands in Stable; see layouts.go.
//
//   - zone and order say where a section stands; keep says what survives when
//     the window is small (the lowest gives way first); max is in characters and
//     always holds.
//   - change says what a changed source does: see the constants below.
var layouts = map[Layout][]place{
	Stable:  stable,
	Classic: classic, Tiered: tiered, Split: split, Layered: layered, Phased: phased,
	Job: { // rules, the task, and what its words call for
		{"identity", Prefix, 0, Must, 2_000, Rebuilt},
		{"mandates", Prefix, 5, Must, 4_000, Rebuilt},
		{"safety", Prefix, 10, Must, 4_000, Rebuilt},
		{"guides", Prefix, 15, 85, 4_000, Rebuilt},
		{"clock", Prefix, 20, Must, 100, Rebuilt},
		{"instructions", Prefix, 30, Must, 8_000, Rebuilt},
		{"context", Prefix, 35, 88, 1_200, Rebuilt},
		{"active_skills", Prefix, 40, 55, 16_000, Rebuilt},
		{"recalled", Prefix, 50, 72, 8_000, Rebuilt},
	},
	Minimal: {
		{"identity", Prefix, 0, Must, 2_000, Rebuilt},
		{"safety", Prefix, 10, Must, 4_000, Rebuilt},
		{"clock", Prefix, 20, Must, 100, Rebuilt},
		{"instructions", Prefix, 30, Must, 8_000, Rebuilt},
	},
	BaseOnly: {
		{"core", Prefix, 0, Must, 32_000, Rebuilt},
	},
	Bare: {},
}

var stable = []place{
	// id     zone   order keep  max     change
	{"core", Prefix, 0, Must, 32_000, EndsEpoch},
	{"guides", Prefix, 10, 85, 4_000, EndsEpoch},
	{"template", Prefix, 20, Must, 8_000, EndsEpoch},
	{"sanity", Prefix, 25, 30, 800, EndsEpoch},
	{"soul", Prefix, 30, 95, 8_000, EndsEpoch},
	{"agents", Prefix, 31, 90, 8_000, EndsEpoch},
	{"toolnotes", Prefix, 32, 90, 8_000, EndsEpoch},
	{"commands", Prefix, 33, 90, 8_000, EndsEpoch},
	{"agent", Prefix, 34, 95, 8_000, EndsEpoch},
	{"preferences", Prefix, 35, 95, 8_000, EndsEpoch},
	{"user", Prefix, 36, 95, 8_000, EndsEpoch},
	{"instructions", Prefix, 40, Must, 8_000, EndsEpoch},
	{"context", Prefix, 42, 88, 1_200, EndsEpoch},
	{"models", Prefix, 46, 20, 600, EndsEpoch},
	{"tools", Prefix, 47, 25, 4_000, EndsEpoch},
	{"goal", Prefix, 48, Must, 4_000, EndsEpoch},
	{"skills", Prefix, 50, 60, 2_000, EndsEpoch},
	{"memories", Prefix, 60, 80, 10_000, LinesEnd},
	{"summary", Prefix, 90, 90, 8_000, EndsEpoch},
	// the history stands here
	{"seed", Tail, 0, 90, 2_000, Once},
	{"clock", Tail, 10, Must, 100, NewLines}, // the headers of the messages tell the time
	{"runtime", Tail, 15, 20, 400, Changed},
	{"learned", Tail, 20, 75, 2_000, NewLines},
	{"thinking", Tail, 25, 90, 400, Changed},
	{"steps", Tail, 30, Must, 2_000, Changed},
	{"pin", Tail, 35, 85, 1_000, Changed},
	{"tasks_now", Tail, 40, 65, 5_000, Changed},
	{"workspace", Tail, 45, 22, 2_000, Changed},
	{"active_skills", Tail, 50, 55, 16_000, NewLines},
	{"footprint", Tail, 55, 35, 2_000, NewLines}, // what the history shows is left out of these
	{"files", Tail, 56, 32, 2_000, NewLines},
	{"skill_hints", Tail, 70, 30, 1_200, NewLines},
	{"recalled", Tail, 75, 72, 8_000, NewLines},
	{"steering", Tail, 80, 95, 1_000, NewLines},
	{"reminder", Tail, 90, 28, 2_000, Changed},
}

// Zone is a third of the prompt: the prefix is the system text, then comes the
// history, and the tail is what is new for the newest message.
type Zone string

// The zones that contributors fill, in prompt order.
const (
	Prefix Zone = "prefix"
	Tail   Zone = "tail"
)

// Must as a section's keep means that it is never shrunk for the window's sake.
const Must = 1000

// Shrink is the way a section gives way when it is larger than it may be.
type Shrink string

// The ways to shrink.
const (
	None     Shrink = "none"      // all or nothing
	TailCut  Shrink = "tail-cut"  // the end goes, at a line or a rune
	HeadTail Shrink = "head+tail" // the middle goes
	Items    Shrink = "items"     // whole lines go, those of the highest rank first
)

// Trust says whose words a section holds.
type Trust string

// Trusted text is the owner's or the program's; Data is fenced.
const (
	Trusted Trust = "trusted"
	Data    Trust = "data"
)

// Change says what happens when the source of a section changes.
type Change string

// The kinds of change.
const (
	Rebuilt   Change = "rebuilt"    // prefix: rendered for every request
	EndsEpoch Change = "ends-epoch" // prefix: any change starts a new epoch
	LinesEnd  Change = "lines-end"  // prefix: a removed or changed line does; a new line does not
	NewLines  Change = "new-lines"  // tail: the lines that the model has not seen yet
	Changed   Change = "changed"    // tail: all of it, whenever it differs from what was shown last
	Once      Change = "once"       // tail: whenever there is one, but once
)

// contributor can have a section in a prompt.
type contributor struct {
	Name   string
	Title  string
	Trust  Trust
	Shrink Shrink
	gather func(context.Context, *question) (*content, error)
}

// place is where a contributor's section stands in a layout.
type place struct {
	ID     string
	Zone   Zone
	Order  int
	Keep   int
	Max    int // characters
	Change Change
}
