// Package approval holds the questions that a person must answer before acts run which text below
// the line may have asked for, in the table approval. Whose answer counts is decided here; the
// session asks the questions and runs the acts.
package approval

import (
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// An Approval is a person's leave for acts. Its states:
//
//	gathering ── the answer is said ──► open ──► approved ──► done
//	    │                                ├──► denied  │
//	    │                                ├──► expired │
//	    └──► void ◄──────────────────────┴────────────┘
//	         the message or the question was edited or redacted, or the work stopped
//
// A state that no arrow leaves is final: nothing is stored over it.
// The acts are rows together with the model's calls. They run once, after a vote in the poll or
// !approve, and also after a restart: what they make is named after the approval.
type Approval struct {
	Code         string // names it for people
	Room         string
	Talk         history.Timeline
	Conversation int64
	Event        string // the message or system event that was worked on
	Asker        string // on whose behalf
	Readers      trust.Readers
	Quote        string // what the message said
	Acts         []Act
	Seen         []string // where the text below the line came from
	Mark         string   // changes when there is more of it
	State        State
	Wide         bool      // the leave is for this conversation
	Answer       chat.Head // who answered: Sender and Unproven
	Created      time.Time
	Expires      time.Time
}

// State is how far an approval has come.
type State string

// The states.
const (
	Gathering State = "gathering" // the turn goes on
	Open      State = "open"      // the person is asked
	Approved  State = "approved"  // the acts run
	Done      State = "done"
	Denied    State = "denied"
	Expired   State = "expired"
	Void      State = "void"
)

// Act is one act, and what came of it.
type Act struct {
	tool.Act
	Done   bool            `json:"done,omitempty"`
	Result string          `json:"result,omitempty"`
	Failed bool            `json:"failed,omitempty"`
	Read   trust.Integrity `json:"read,omitempty"` // of what the result holds besides the words of the act
}

const (
	answerTime = 10 * time.Minute // an open question may be answered for so long
	keptTime   = 30 * 24 * time.Hour
	mostActs   = 20    // of one question
	mostAsked  = 6_000 // characters of all arguments of one question

	prefix = "ask:"
)

// The options of a question.
const (
	Once = "once"
	Wide = "conversation"
	No   = "no"
)

// Question is the Outgoing.ID of the question about a.
func (a *Approval) Question() string { return prefix + a.Code }

// CodeOf is the code of the approval that the message id asks about; "" = it is no question.
func CodeOf(id string) string {
	code, ok := strings.CutPrefix(id, prefix)
	if !ok {
		return ""
	}
	return code
}

func (a *Approval) size() (n int) {
	for _, act := range a.Acts {
		n += len([]rune(act.Call.Arguments))
	}
	return n
}

// answered reports whether person has answered a with this option.
func (a *Approval) answered(person, option string) bool {
	if person != a.Answer.Sender {
		return false
	}
	if option == No {
		return a.State == Denied
	}
	return (a.State == Approved || a.State == Done) && a.Wide == (option == Wide)
}
