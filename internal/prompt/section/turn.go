package section

import (
	"slices"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

// Turn is what contributors read when a prompt is made.
type Turn struct {
	Room     string            // its tasks are shown
	User     string            // author of the message
	Scopes   []memory.Scope    // readable memories; new ones go to the first
	Shared   bool              // more than one person is in the room
	Tools    []string          // names of the offered tools
	Now      time.Time         // in the zone of the place
	History  []history.Message // oldest first; the last is the user message or tool result to be answered
	Model    string            // name of the model; "" = not shown
	Mode     string            // selects the template; "" = none
	Persona  string            // chosen for the room; "" = as configured
	Tier     int               // 1–5: of the template and the budget for it and BASE_PROMPT.txt; 0 = unknown: no template, no budget
	Thinking string            // level that must be told in words: off, low, medium, high; "" = none
	Context  string            // the room's topic, in an owner's words; "" = none
	Summary  string            // of the conversation's older part, which is not in the history
	Goal     []string          // fixed parts of the goal
	Steps    []string          // changing parts of the goal
	Pin      string            // the current task; "" = none
	Markers  bool              // the model may report on the goal in lines of its text
	From     Origins           // of the texts that the turn itself brings
}

// Origins is the integrity of the texts that a turn itself brings. The zero value is foreign.
type Origins struct {
	Summary trust.Integrity
	Goal    trust.Integrity // of Goal and Steps
	Pin     trust.Integrity
	Profile trust.Integrity // of the words of the person in their profile
}

// Place returns where the answer is read, and who asks.
func (t *Turn) Place() trust.Place {
	return trust.Place{Room: t.Room, Person: t.User, Private: !t.Shared}
}

// highestTier is the tier of the largest windows. The lowest is 1; 0 is unknown.
const highestTier = 5

// tier returns the turn's tier; 0 = unknown.
func (t *Turn) tier() int { return max(0, min(t.Tier, highestTier)) }

// rounds counts the rounds of tool calls since the last message of a person or the program.
func (t *Turn) rounds() (n int) {
	for _, m := range slices.Backward(t.History) {
		if m.Role == llm.User {
			break
		}
		if len(m.Calls) > 0 {
			n++
		}
	}
	return n
}

// opensConversation reports whether the turn answers a person's first message in a new conversation. The
// program's messages and their answers do not count.
func (t *Turn) opensConversation() bool {
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
