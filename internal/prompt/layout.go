package prompt

import "context"

// Layout names a prompt layout.
type Layout string

// The layouts. Stable keeps every request of an epoch a byte prefix of the
// next; Classic rebuilds the whole system text every time.
const (
	Stable  Layout = "stable"
	Classic Layout = "classic"
)

// layouts is the prompt, in prompt order. Adding a contributor is one file that
// gathers its content and one row here.
//
//   - zone and order say where a section stands; keep says what survives when
//     the window is small (the lowest gives way first); max is in characters.
//   - trust: a data section is fenced, for other people's words are in it.
//   - change says what a changed source does: see the constants below.
var layouts = map[Layout][]contributor{
	Stable: {
		// id        title                zone    order keep  max     shrink   trust    change     gather
		{"core", "Core Instructions", Prefix, 0, Must, 32_000, TailCut, Trusted, EndsEpoch, gatherCore},
		{"skills", "Skills", Prefix, 50, 60, 2_000, Items, Data, EndsEpoch, gatherSkills},
		{"memories", "User Memories", Prefix, 60, 80, 10_000, Items, Data, LinesEnd, gatherMemories},
		// the history stands here
		{"seed", "", Tail, 0, 90, 2_000, TailCut, Trusted, Once, gatherSeed},
		{"learned", "New memories", Tail, 20, 75, 2_000, Items, Data, NewLines, gatherMemories},
		{"tasks", "Active tasks now", Tail, 40, 65, 5_000, Items, Data, Changed, gatherTasks},
	},
	Classic: {
		{"core", "Core Instructions", Prefix, 0, Must, 32_000, TailCut, Trusted, Rebuilt, gatherCore},
		{"clock", "Current Time", Prefix, 10, Must, 100, None, Trusted, Rebuilt, gatherClock},
		{"memories", "User Memories", Prefix, 20, 80, 10_000, Items, Data, Rebuilt, gatherMemories},
		{"tasks", "Active Tasks", Prefix, 30, 65, 5_000, Items, Data, Rebuilt, gatherTasks},
		// a Conversation Summary will stand here, order 40
		{"skills", "Skills", Prefix, 50, 60, 2_000, Items, Data, Rebuilt, gatherSkills},
		// the history stands here
		{"seed", "", Tail, 0, 90, 2_000, TailCut, Trusted, Once, gatherSeed},
	},
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
	None    Shrink = "none"     // all or nothing
	TailCut Shrink = "tail-cut" // the end goes, at a line or a rune
	Items   Shrink = "items"    // whole lines go, those of the highest rank first
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

// contributor is one row of a layout: where its section stands and what
// gathers it.
type contributor struct {
	ID     string
	Title  string
	Zone   Zone
	Order  int
	Keep   int
	Max    int // characters
	Shrink Shrink
	Trust  Trust
	Change Change
	gather func(context.Context, *request) (*content, error)
}
