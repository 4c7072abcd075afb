// Package goal keeps the larger things that rooms work towards, with their steps, decisions and files.
//
// A room has at most one active goal for the same readers. What is changed comes from tools, from
// commands and from markers: lines with which the model reports on its goal.
package goal

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Status is the state of a goal.
type Status string

func (s Status) text() i18n.Text { return i18n.New("state." + string(s)) }

// The states of a goal.
const (
	Active    Status = "active"
	Paused    Status = "paused"
	Completed Status = "completed"
	Abandoned Status = "abandoned"
)

// Step is the state of a checkpoint.
type Step string

// The states of a checkpoint.
const (
	Pending    Step = "pending"
	InProgress Step = "in progress"
	Done       Step = "done"
)

// Limits of a goal. Locked decisions are few and short enough to stand in every
// prompt, whole.
const (
	maxGoal        = 400 // characters
	maxCheckpoint  = 300
	maxDecision    = 300
	maxRationale   = 500
	maxPath        = 500
	maxSummary     = 1000
	maxCheckpoints = 20
	maxDecisions   = 30
	maxLocked      = 10
	maxArtifacts   = 100
	maxOpenGoals   = 20 // active and paused, of a room
)

// Goal is something larger that a room works towards.
type Goal struct {
	ID          string      // "goal_" and eight characters
	Room        string      // the only room it exists in
	User        string      // on whose behalf it was made
	Label       trust.Label // how far its words are trusted, and who may read it
	Description string      // one line
	Priority    string      // high, medium or low
	Status      Status      // Active, Paused, Completed or Abandoned
	Summary     i18n.Text   // how it ended
	Next        string      // what is to be done next; may be empty

	Checkpoints []Checkpoint
	Decisions   []Decision
	Artifacts   []Artifact

	Created, Updated time.Time // UTC, to the millisecond
	Ended            time.Time // zero until then
}

// Checkpoint is one step towards a goal.
type Checkpoint struct {
	N           int // counts from 1 in each goal
	Description string
	Status      Step
	Changed     time.Time // when the status did last
}

// Decision is what was decided on the way. A locked one never changes.
type Decision struct {
	N           int
	Description string
	Rationale   string
	Locked      bool
}

// Artifact is a file that was worked on.
type Artifact struct {
	Action string // created, modified or deleted
	Path   string
}

// Progress counts checkpoints. Percentage is 0 without any, but 100 for a
// completed goal.
type Progress struct{ Completed, Total, Percentage int }

// Patch says what Update changes; an empty field stays as it is.
type Patch struct{ Description, Priority, Next string }

var (
	errNotFound = errors.New("no such goal") // nobody is told whether it exists elsewhere
	errLocked   = errors.New("the decision is locked")
)

// Progress says how far the goal is.
func (g Goal) Progress() Progress {
	p := Progress{Total: len(g.Checkpoints)}
	for _, c := range g.Checkpoints {
		if c.Status == Done {
			p.Completed++
		}
	}
	switch {
	case p.Total > 0:
		p.Percentage = p.Completed * 100 / p.Total
	case g.Status == Completed:
		p.Percentage = 100
	}
	return p
}

// Current is what is being worked on: the next step if one was named, else the
// checkpoint that was begun last, or "".
func (g Goal) Current() string {
	if g.Next != "" || g.Status != Active {
		return g.Next
	}
	var now *Checkpoint
	for i := range g.Checkpoints {
		if c := &g.Checkpoints[i]; c.Status == InProgress && (now == nil || !c.Changed.Before(now.Changed)) {
			now = c
		}
	}
	if now == nil {
		return ""
	}
	return now.Description
}

// Line is the goal as lists show it:
//
//	#goal_abcdefgh: Ship the release [high priority, active, 2 of 5 steps done]
func (g Goal) Line() string { return g.LineIn(i18n.English) }

// LineIn is Line in the language of say.
func (g Goal) LineIn(say i18n.Say) string {
	line := fmt.Sprintf("#%s: %s [%s, %s", g.ID, g.Description, say("goal."+g.Priority), g.Status.text().In(say))
	if p := g.Progress(); p.Total > 0 {
		line += ", " + p.In(say)
	}
	return line + "]"
}

// In says how many steps are done, in the language of say.
func (p Progress) In(say i18n.Say) string {
	return say("goal.steps", "done", strconv.Itoa(p.Completed), "total", strconv.Itoa(p.Total))
}

// Line is the checkpoint as prompts and lists show it:
//
//	🔄 3. Add JWT token generation (IN PROGRESS)
func (c Checkpoint) Line() string {
	line := fmt.Sprintf("%s %d. %s", c.Status.Sign(), c.N, c.Description)
	if c.Status == InProgress {
		line += " (IN PROGRESS)"
	}
	return line
}

// Sign is one character for a state: ✅, 🔄 or ⏳.
func (s Step) Sign() string {
	switch s {
	case Done:
		return "✅"
	case InProgress:
		return "🔄"
	}
	return "⏳"
}

// Line is the decision as prompts and lists show it; 🔒 stands before a locked one.
func (d Decision) Line() string { return d.LineIn(i18n.English) }

// LineIn is Line in the language of say.
func (d Decision) LineIn(say i18n.Say) string {
	if d.Locked {
		return "🔒 " + d.Description + " (" + say("goal.locked") + ")"
	}
	return d.Description
}

// Line is the artifact as prompts and lists show it: "Created: src/login.ts".
func (a Artifact) Line() string { return strings.ToUpper(a.Action[:1]) + a.Action[1:] + ": " + a.Path }

var (
	numberForm = regexp.MustCompile(`^#?([0-9]{1,3})[.):]?$`)
	numbered   = regexp.MustCompile(`^#?[0-9]{1,3}[.)]\s+`)
)

// sameness is a text without what does not matter for being the same: case,
// a leading number, marks and blanks at its ends.
func sameness(text string) string {
	text = numbered.ReplaceAllString(strings.Join(strings.Fields(strings.ToLower(text)), " "), "")
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(".,;:!*_`\"'", r) })
}

// contradicts reports whether a gives the topic of b ("Database: SQLite") another value. What it does
// not see stands beside the locked decision, which still holds.
func contradicts(a, b string) bool {
	topicA, valueA, okA := strings.Cut(a, ":")
	topicB, valueB, okB := strings.Cut(b, ":")
	return okA && okB && sameness(topicA) == sameness(topicB) && sameness(valueA) != sameness(valueB)
}

// broken is an error that tells what to do instead.
type broken struct {
	text i18n.Text
	err  error
}

func (b *broken) Error() string { return b.text.String() }
func (b *broken) Unwrap() error { return b.err }

// Refusal is the sentence of an error that says what cannot be done with a goal and what can; ok is
// false for one that says that something is wrong with the program.
func Refusal(err error) (text i18n.Text, ok bool) {
	var b *broken
	if errors.As(err, &b) {
		return b.text, true
	}
	return "", false
}

// breaks is a refusal for the model, in English; refuse is one for people, too.
func breaks(format string, args ...any) error {
	return &broken{text: i18n.Text(fmt.Sprintf(format, args...))}
}

func refuse(cause error, key string, fill ...any) error {
	return &broken{i18n.New(key, fill...), cause}
}

// goalText is one line of at most limit characters that is not empty.
func goalText(name, text string, limit int, example string) (string, error) {
	text, err := store.CheckLine(name, text, limit)
	switch {
	case err != nil:
		return "", &broken{text: i18n.FromError(err)}
	case text == "":
		return "", breaks("%s is missing: for example %q", name, example)
	}
	return text, nil
}

func checkGoalPriority(p string) (string, error) {
	switch p = strings.ToLower(strings.TrimSpace(p)); p {
	case "":
		return "medium", nil
	case "high", "medium", "low":
		return p, nil
	}
	return "", breaks("priority %q is not known: use high, medium or low", p)
}
