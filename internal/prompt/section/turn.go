package section

import (
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

// Turn is what contributors look at when a prompt is made.
type Turn struct {
	Room     string         // whose tasks are shown
	User     string         // whose message is answered
	Scopes   []memory.Scope // whose memories may be shown; the first is where new ones go
	Shared   bool           // more than one person is in the room
	Tools    []string       // the names of the tools that are offered
	Now      time.Time
	History  []history.Message // oldest first; the last one is the user message or tool result to be answered
	Model    string            // the one that is asked; "" = not told
	Mode     string            // whose template is used; "" = none
	Tier     int               // 1–5: of the template, and what it and BASE_PROMPT.txt may take; 0 = not known: no template, no limit
	Thinking string            // how much to think, if the model must be told in words: off, low, medium, high; "" = as it likes
	Context  string            // what the room is about, in an owner's words; "" = nobody has said
	Summary  string            // of the conversation's older part, which the history does not hold
	Goal     []string          // what holds for as long as the goal does: what it is, and what is decided
	Steps    []string          // of the goal, as they stand now
	Pin      string            // what is being worked on; "" = nothing
	Markers  bool              // the model may report on the goal in lines of its text
	From     Origins           // of Summary, Goal and what else the turn itself brings
}

// Origins is the integrity of the texts that a turn brings itself. The zero value is foreign.
type Origins struct {
	Summary trust.Integrity
	Goal    trust.Integrity // of Goal and Steps
	Pin     trust.Integrity
}

// Place is where the answer is read, and who asks.
func (t *Turn) Place() trust.Place {
	return trust.Place{Room: t.Room, Person: t.User, Private: !t.Shared}
}

// highestTier is the tier of the largest windows. The lowest is 1; 0 is not known.
const highestTier = 5

// tier of the turn, 0 if it is not known.
func (t *Turn) tier() int { return max(0, min(t.Tier, highestTier)) }

// opens reports whether the turn answers the first message of a person in a conversation
// that goes on from nothing. What the program says, and what answers that, does not count.
func (t *Turn) opens() bool {
	byPerson := len(t.History) == 0 // a preview
	for i := range t.History {
		switch m := &t.History[i]; {
		case m.Role == llm.User:
			byPerson = m.Sender != ""
		case m.Role == llm.Assistant && byPerson:
			return false
		}
	}
	return byPerson && t.Summary == ""
}
