package llm

import (
	"fmt"
	"strings"

	"reverie/internal/i18n"
)

// Kind classifies the failure of a request. It is the word in the log.
type Kind string

// The kinds of failure. Their sentences for people have the same names.
const (
	Failed        Kind = "failed"         // an error reported by the server that fits no other kind
	Unreachable   Kind = "unreachable"    // no connection, or it broke
	RateLimited   Kind = "rate limited"   // too many requests for now
	Quota         Kind = "quota"          // the model's daily limit of tokens is used up
	PersonalQuota Kind = "personal quota" // that of the person, for all models
	Denied        Kind = "denied"         // key or account refused
	NotFound      Kind = "not found"      // no such model or path on that server
	TooLarge      Kind = "too large"      // the request does not fit the model's window
	TimedOut      Kind = "timed out"      // no answer in time
	Empty         Kind = "empty"          // an answer with nothing in it
	Garbled       Kind = "garbled"        // the answer violates the protocol
)

// Why returns the kind in a word or two, for people.
func (k Kind) Why() i18n.Text { return i18n.New("trouble.why." + k.key()) }

func (k Kind) key() string { return strings.ReplaceAll(string(k), " ", "_") }

// Error is the failure of Complete or Probe. Its text is for the operator: it quotes the server,
// without keys. ForPeople is for everybody else.
type Error struct {
	Kind  Kind
	Model string // configured name; empty when no model is configured
	Err   error
}

func (e *Error) Error() string {
	if e.Model == "" {
		return fmt.Sprintf("llm: %v", e.Err)
	}
	return fmt.Sprintf("llm: model %q: %s: %v", e.Model, e.Kind, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ForPeople returns a sentence or two for chat users: what happened and what helps. It names the model
// and quotes nothing from the server.
func (e *Error) ForPeople() i18n.Text {
	if e.Model == "" {
		return i18n.New("error.no_model")
	}
	return i18n.New("trouble."+e.Kind.key(), "model", e.Model)
}
