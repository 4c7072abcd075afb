// Package approval stores questions about tool calls that untrusted text may have caused: a person must
// allow them before they run. It owns the table approval and decides whose answer counts. Package
// session asks the questions and runs the acts.
package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/prompt/section"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// An Approval is a person's permission for acts. Its states:
//
//	gathering ── the answer is sent ──► open ──► approved ──► done
//	    │                                ├──► denied  │
//	    │                                ├──► expired │
//	    └──► void ◄──────────────────────┴────────────┘
//	         the message or the question was edited or redacted, or the work stopped
//
// A state without an outgoing arrow is final and never overwritten. Acts are stored in one transaction
// with the model's calls. They run once, after a vote in the poll or !approve, also across a restart:
// their idempotency keys are made from Code.
type Approval struct {
	Code         string // identifies it for people
	Room         string
	Talk         history.Timeline
	Conversation int64
	Event        string // the message or system event being answered
	Asker        string // on whose behalf
	Readers      trust.Readers
	Quote        string // text of the message
	Acts         []Act
	Sources      []string // sources of the untrusted text, for people
	Fingerprint  string   // changes when there is more untrusted text
	State        State
	Wide         bool      // also covers the same acts later in this conversation
	Answer       chat.Head // who answered: Sender and Unproven
	Created      time.Time
	Expires      time.Time
}

// State is the state of an approval.
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

// Act is one tool call and its result.
type Act struct {
	tool.Act
	Begun         bool            `json:"begun,omitempty"` // of a step: it may have run, and must not run again
	Done          bool            `json:"done,omitempty"`
	Result        string          `json:"result,omitempty"`
	Failed        bool            `json:"failed,omitempty"`
	ReadIntegrity trust.Integrity `json:"read,omitempty"` // of the text that the result adds
}

const (
	answerTimeout = 10 * time.Minute // of an open question
	retention     = 30 * 24 * time.Hour
	maxActs       = 20    // of one question
	maxArguments  = 6_000 // characters of all arguments of one question

	prefix = "ask:"
	// OutcomePrefix begins the Outgoing.ID of a message with the outcome of an approval.
	OutcomePrefix = "asked:"
)

// The options of a question: for now, for this conversation, no.
const (
	Once = "once"
	Wide = "conversation"
	No   = "no"
)

// QuestionID returns the Outgoing.ID of the question about a.
func (a *Approval) QuestionID() string { return prefix + a.Code }

// detailsID returns the Outgoing.ID of the notice before the question.
func (a *Approval) detailsID() string { return "acts:" + a.Code }

// CodeOf returns the approval code in the Outgoing.ID of a question; "" = it is not a question.
func CodeOf(id string) string {
	code, ok := strings.CutPrefix(id, prefix)
	if !ok {
		return ""
	}
	return code
}

// mayCover reports whether an approval may also cover later acts.
func (a *Approval) mayCover() bool {
	return !slices.ContainsFunc(a.Acts, func(act Act) bool { return act.Covers == "" })
}

// size returns the characters of all arguments.
func (a *Approval) size() (n int) {
	for _, act := range a.Acts {
		n += len([]rune(act.Call.Arguments))
	}
	return n
}

// sameAnswer reports whether person has already answered a with this option.
func (a *Approval) sameAnswer(person, option string) bool {
	if person != a.Answer.Sender {
		return false
	}
	if option == No {
		return a.State == Denied
	}
	return (a.State == Approved || a.State == Done) && a.Wide == (option == Wide && a.mayCover())
}

// ListUntrusted names the untrusted texts of a request for people: its messages, summary and sections.
// fingerprint changes when more of them arrive.
func ListUntrusted(say i18n.Say, past []history.Message, c history.Compaction, sections []prompt.SectionReport) (
	sources []string, fingerprint string,
) {
	add := func(key string, args ...string) {
		if text := say(key, args...); !slices.Contains(sources, text) {
			sources = append(sources, text)
		}
	}
	newest, prefix := int64(0), ""
	for i := range past {
		m := &past[i]
		outcome := strings.HasPrefix(m.EventID, OutcomePrefix) && m.Label.Integrity < trust.Guest
		if m.Role == llm.Assistant && !outcome || m.Label.Integrity >= trust.User { // the model's text derives from the others
			continue
		}
		newest = m.ID
		switch {
		case m.Role == llm.Tool, outcome:
			add("approve.seen.tool")
		case len(m.Files) > 0:
			for _, f := range m.Files {
				add("approve.seen.file", "name", history.OneLine(f.Name, 60))
			}
		case len(m.Quoted) > 0:
			add("approve.seen.quote")
		default:
			add("approve.seen.kept")
		}
	}
	for i := range past {
		if m := &past[i]; m.Tail != "" && m.TailIntegrity < trust.User {
			add("approve.seen.kept")
			if m.TailIntegrity < trust.Guest { // text stored by allowed acts is not from outside
				newest = max(newest, m.ID)
			}
		}
	}
	summary := int64(0)
	if c.Text() != "" && c.Integrity < trust.User {
		summary = c.ID
		add("approve.seen.kept")
	}
	for _, r := range sections {
		if r.Integrity < trust.User && r.Tokens > 0 && r.ID != "summary" {
			add("approve.seen.kept")
			if r.Zone == section.Prefix && r.Integrity < trust.Guest {
				prefix += " " + r.ID
			}
		}
	}
	return sources, fmt.Sprintf("%d %d%s", newest, summary, prefix)
}
