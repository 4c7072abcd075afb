package section

import "context"

// Catalog lists the sections of a prompt in prompt order: heading, whose words it holds (Data is
// fenced), how it shrinks, and what gathers it. A new section is one file and one line here.
//
//   - zone: where the section is in the layout stable, and in the others unless they say
//     otherwise.
//   - keep: its priority in a small window; the lowest gives way first.
//   - max: its cap in characters, in every window.
//   - change: the effect of a changed source, see the constants below.
var Catalog = []Contributor{
	// name, heading, trust, shrink, zone, keep, max, change, gather
	{"core", "Core Instructions", Trusted, TailCut, Prefix, Must, 32_000, EndsEpoch, gatherPart(baseFile, all)}, // or in parts:
	{"identity", "Identity", Trusted, TailCut, Apart, Must, 4_000, Rebuilt, gatherPart(baseFile, "identity")},
	{"mandates", "Core Mandates", Trusted, TailCut, Apart, Must, 4_000, Rebuilt, gatherPart(baseFile, "core")},
	{"safety", "Safety", Trusted, TailCut, Apart, Must, 4_000, Rebuilt, gatherPart(baseFile, "safety")},
	{"base", "Base Instructions", Trusted, TailCut, Apart, Must, 16_000, Rebuilt, gatherPart(baseFile, rest)}, // all other sections
	{"guides", "Tool Guides", Trusted, Items, Prefix, 85, 4_000, EndsEpoch, gatherGuides},                     // prompts/tools/NAME.txt
	{"template", "Mode", Trusted, TailCut, Prefix, Must, 8_000, EndsEpoch, gatherTemplate},                    // prompts/MODE/tierN.txt
	{"sanity", "Sanity Checks", Trusted, TailCut, Prefix, 30, 800, EndsEpoch, gatherPart(sanityFile, all)},    // prompts/SANITY.txt
	{"persona", "Persona", Trusted, TailCut, Prefix, 95, 8_000, EndsEpoch, gatherPersona},                     // personas/NAME.md
	{"soul", "Soul", Trusted, TailCut, Prefix, 95, 8_000, EndsEpoch, gatherSoul},                              // the owner's files, to user
	{"agents", "Agents", Trusted, TailCut, Prefix, 90, 8_000, EndsEpoch, gatherFile("AGENTS.md")},
	{"toolnotes", "Tool Notes", Trusted, TailCut, Prefix, 90, 8_000, EndsEpoch, gatherFile("TOOLS.md")},
	{"commands", "Commands", Trusted, TailCut, Prefix, 90, 8_000, EndsEpoch, gatherFile("COMMANDS.md")},
	{"agent", "Agent", Trusted, TailCut, Prefix, 95, 8_000, EndsEpoch, gatherFile("AGENT.md")},
	{"preferences", "Preferences", Trusted, TailCut, Prefix, 95, 8_000, EndsEpoch, gatherFile("PREFERENCES.md")},
	{"user", "About the Person", Trusted, TailCut, Prefix, 95, 8_000, EndsEpoch, gatherFile("USER.md")},
	{"profile", "Profile of This Person", Data, Items, Prefix, 92, 3_200, EndsEpoch, gatherProfile}, // in the direct chat
	{"instructions", "Instructions", Trusted, TailCut, Prefix, Must, 8_000, EndsEpoch, gatherInstructions},
	{"context", "About This Room", Trusted, TailCut, Prefix, 88, 1_200, EndsEpoch, gatherContext},
	{"models", "Models", Trusted, Items, Prefix, 20, 600, EndsEpoch, fromTier4(gatherModels)},
	{"program_prompts", "Notes of Connected Programs", Data, Items, Prefix, 45, 4_000, EndsEpoch, gatherProgramPrompts},
	{"tools", "Tools", Trusted, Items, Prefix, 25, 4_000, EndsEpoch, fromTier4(gatherTools)},
	{"goal", "Active Goal", Data, Items, Prefix, Must, 4_000, EndsEpoch, gatherGoal},
	{"skills", "Skills", Data, Items, Prefix, 60, 2_000, EndsEpoch, gatherSkills}, // their table of contents
	{"memories", "User Memories", Data, Items, Prefix, 80, 10_000, LinesEnd, gatherMemories},
	{"summary", "Conversation Summary", Data, HeadTail, Prefix, 90, 8_000, EndsEpoch, gatherSummary},
	// the history stands here
	{"seed", "", Trusted, TailCut, Tail, 90, 2_000, Once, gatherSeed},
	{"clock", clockTitle, Trusted, None, Tail, Must, 100, NewLines, gatherClock}, // the headers of messages tell the time
	{"runtime", "Runtime", Trusted, None, Tail, 20, 400, Changed, fromTier4(gatherRuntime)},
	{"learned", "New memories", Data, Items, Tail, 75, 2_000, NewLines, nil},                           // see SameAs
	{"style", "Style", Trusted, Items, Tail, 96, 1_200, Changed, gatherStyle},                          // so that each epoch says it again
	{"manner", "How the Person Likes Answers", Trusted, Items, Tail, 88, 1_200, Changed, gatherManner}, // a change keeps the prefix
	{"thinking", "Thinking", Trusted, None, Tail, 90, 400, Changed, gatherThinking},
	{"steps", "Goal steps now", Data, Items, Tail, Must, 2_000, Changed, gatherSteps},
	{"pin", "Current Task", Data, TailCut, Tail, 85, 1_000, Changed, gatherPin},
	{"tasks", "Active Tasks", Data, Items, Apart, 65, 5_000, Rebuilt, gatherTasks},
	{"tasks_now", "Active tasks now", Data, Items, Tail, 65, 5_000, Changed, nil},
	{"workspace", "Workspace", Data, Items, Tail, 22, 2_000, Changed, fromTier4(gatherWorkspace)},
	{"programs", "Connected programs", Data, Items, Tail, 50, 2_000, Changed, gatherPrograms}, // their tools
	{"active_skills", "Active skills", Data, Items, Tail, 55, 16_000, NewLines, gatherActiveSkills},
	{"footprint", "Lately Used", Data, Items, Tail, 35, 2_000, NewLines, fromTier4(gatherFootprint)}, // but what the history shows
	{"files", "Files Read", Data, Items, Tail, 32, 2_000, NewLines, fromTier4(gatherFiles)},
	{"earlier", "Earlier conversations", Data, Items, Tail, 33, 1_000, Once, gatherEarlier},
	{"skill_hints", "Skills that may help", Data, Items, Tail, 30, 1_200, NewLines, gatherSkillHints},
	{"recalled", "Recalled for this message", Data, Items, Tail, 72, 8_000, NewLines, gatherRecalled}, // from all of them
	{"steering", "Now", Trusted, Items, Tail, 95, 1_000, NewLines, gatherSteering},
	{"reminder", "Tools Reminder", Trusted, None, Tail, 28, 2_000, Changed, fromTier4(gatherReminder)},
}

// SameAs names contributors that show what another one gathered.
var SameAs = map[string]string{"learned": "memories", "tasks_now": "tasks"}

// Zone is a part of the prompt. The prefix is the system text, then comes the history, and the tail
// is what is new for the newest message.
type Zone string

// The zones that contributors fill, in prompt order.
const (
	Prefix Zone = "prefix"
	Tail   Zone = "tail"
	Apart  Zone = "" // not in stable: part of another section
)

// Must is the keep of a section that is never shrunk to fit the window.
const Must = 1000

// Shrink is the way to shorten a section.
type Shrink string

// The ways to shrink.
const (
	None     Shrink = "none"      // all or nothing
	TailCut  Shrink = "tail-cut"  // the end is cut, at a line or a rune
	HeadTail Shrink = "head+tail" // the middle is cut
	Items    Shrink = "items"     // whole lines are dropped, those of the highest rank first
)

// Trust says whose words a section holds.
type Trust string

// Trusted text is the owner's or the program's; Data is fenced.
const (
	Trusted Trust = "trusted"
	Data    Trust = "data"
)

// Change is the effect of a changed source.
type Change string

// The kinds of change.
const (
	Rebuilt   Change = "rebuilt"    // prefix: rendered for every request
	EndsEpoch Change = "ends-epoch" // prefix: any change starts a new epoch
	LinesEnd  Change = "lines-end"  // prefix: a removed or changed line does, a new line does not
	NewLines  Change = "new-lines"  // tail: the lines that the model has not seen
	Changed   Change = "changed"    // tail: all of it, if it differs from what was last shown
	Once      Change = "once"       // tail: shown once
)

// Contributor is a possible section of a prompt.
type Contributor struct {
	Name   string
	Title  string // heading; "" = none
	Trust  Trust
	Shrink Shrink
	Zone   Zone
	Keep   int
	Max    int // characters
	Change Change
	Gather gather // nil = see SameAs
}

// gather returns a contributor's content for a turn; nil = nothing.
type gather func(context.Context, *Question) (*Content, error)
