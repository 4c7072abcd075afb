// Package goal stores the goals of rooms, with checkpoints, decisions and artifacts.
//
// A room has at most one active goal for the same readers. Goals change through tools, commands and
// markers: lines with which the model reports progress. A locked decision never changes.
package goal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"reverie/internal/i18n"
	"reverie/internal/lazyregexp"
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

// CheckpointStatus is the state of a checkpoint.
type CheckpointStatus string

// The states of a checkpoint.
const (
	Pending    CheckpointStatus = "pending"
	InProgress CheckpointStatus = "in progress"
	Done       CheckpointStatus = "done"
)

// Limits of a goal. Locked decisions are few and short, since every prompt has all of them.
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
	maxOpenGoals   = 20 // active and paused ones of a room
)

// Goal is a larger piece of work of a room.
type Goal struct {
	ID          string      // "goal_" and eight characters
	Room        string      // the only room it exists in
	User        string      // the person who asked for it
	Label       trust.Label // how far its text is trusted, and who may read it
	Description string      // one line
	Priority    string      // high, medium or low
	Status      Status      // Active, Paused, Completed or Abandoned
	Summary     i18n.Text   // how it ended
	Next        string      // the next step; may be empty

	Checkpoints []Checkpoint
	Decisions   []Decision
	Artifacts   []Artifact

	Created, Updated time.Time // UTC, to the millisecond
	Ended            time.Time // zero while open
}

// Checkpoint is one step towards a goal.
type Checkpoint struct {
	N           int // from 1 in each goal
	Description string
	Status      CheckpointStatus
	Changed     time.Time // when the status last changed
}

// Decision is a decision made for a goal. A locked one never changes.
type Decision struct {
	N           int
	Description string
	Rationale   string
	Locked      bool
}

// Artifact is a file that the goal created, modified or deleted.
type Artifact struct {
	Action string // created, modified or deleted
	Path   string
}

// Progress counts checkpoints. Percentage is 0 without any, but 100 for a completed goal.
type Progress struct{ Completed, Total, Percentage int }

// Patch says what Update changes; an empty field stays as it is.
type Patch struct{ Description, Priority, Next string }

var (
	errNotFound = errors.New("no such goal") // does not tell whether it exists elsewhere
	errLocked   = errors.New("the decision is locked")
)

// Progress counts the goal's checkpoints.
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

// Current returns what is being worked on: Next, else the checkpoint started last, or "".
func (g Goal) Current() string {
	if g.Next != "" || g.Status != Active {
		return g.Next
	}
	var now Checkpoint
	for _, c := range g.Checkpoints {
		if c.Status == InProgress && !c.Changed.Before(now.Changed) {
			now = c
		}
	}
	return now.Description
}

// Line formats the goal for lists:
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

// In returns the progress in the language of say.
func (p Progress) In(say i18n.Say) string {
	return say("goal.steps", "done", strconv.Itoa(p.Completed), "total", strconv.Itoa(p.Total))
}

// Line formats the checkpoint for prompts and lists:
//
//	🔄 3. Add JWT token generation (IN PROGRESS)
func (c Checkpoint) Line() string {
	line := fmt.Sprintf("%s %d. %s", c.Status.Emoji(), c.N, c.Description)
	if c.Status == InProgress {
		line += " (IN PROGRESS)"
	}
	return line
}

// Emoji returns the symbol of a state: ✅, 🔄 or ⏳.
func (s CheckpointStatus) Emoji() string {
	switch s {
	case Done:
		return "✅"
	case InProgress:
		return "🔄"
	}
	return "⏳"
}

// Line formats the decision for prompts and lists; a locked one starts with 🔒.
func (d Decision) Line() string { return d.LineIn(i18n.English) }

// LineIn is Line in the language of say.
func (d Decision) LineIn(say i18n.Say) string {
	if d.Locked {
		return "🔒 " + d.Description + " (" + say("goal.locked") + ")"
	}
	return d.Description
}

// Line formats the artifact for prompts and lists: "Created: src/login.ts".
func (a Artifact) Line() string { return strings.ToUpper(a.Action[:1]) + a.Action[1:] + ": " + a.Path }

var (
	numberPattern = lazyregexp.New(`^#?([0-9]{1,3})[.):]?$`)
	numbered      = lazyregexp.New(`^#?[0-9]{1,3}[.)]\s+`)
)

// foldText normalises text for comparing: lower case, no leading number, no punctuation around it.
func foldText(text string) string {
	text = numbered().ReplaceAllString(strings.Join(strings.Fields(strings.ToLower(text)), " "), "")
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(".,;:!*_`\"'", r) })
}

// contradicts reports whether a gives the topic of b ("Database: SQLite") another value. A
// contradiction in other words is not detected.
func contradicts(a, b string) bool {
	topicA, valueA, okA := strings.Cut(a, ":")
	topicB, valueB, okB := strings.Cut(b, ":")
	return okA && okB && foldText(topicA) == foldText(topicB) && foldText(valueA) != foldText(valueB)
}

// refusalError is an error that tells the reader what to do instead.
type refusalError struct {
	text i18n.Text
	err  error
}

func (b *refusalError) Error() string { return b.text.String() }
func (b *refusalError) Unwrap() error { return b.err }

// Refusal returns the text of an error that refuses a change. ok is false for failures of the program.
func Refusal(err error) (text i18n.Text, ok bool) {
	var b *refusalError
	if errors.As(err, &b) {
		return b.text, true
	}
	return "", false
}

// modelRefusal returns a refusal for the model, in English. refuse returns one for people, too.
func modelRefusal(format string, args ...any) error {
	return &refusalError{text: i18n.Text(fmt.Sprintf(format, args...))}
}

func refuse(cause error, key string, fill ...any) error {
	return &refusalError{i18n.New(key, fill...), cause}
}

// checkText returns text as one line. It refuses a text that is empty or over limit characters.
func checkText(name, text string, limit int, example string) (string, error) {
	text, err := store.CheckLine(name, text, limit)
	switch {
	case err != nil:
		return "", &refusalError{text: i18n.FromError(err)}
	case text == "":
		return "", modelRefusal("%s is missing: for example %q", name, example)
	}
	return text, nil
}

func checkPriority(p string) (string, error) {
	switch p = strings.ToLower(strings.TrimSpace(p)); p {
	case "":
		return "medium", nil
	case "high", "medium", "low":
		return p, nil
	}
	return "", modelRefusal("priority %q is not known: use high, medium or low", p)
}
