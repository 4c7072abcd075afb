package llm

import (
	"fmt"
	"strings"

	"reverie/internal/i18n"
)

// Kind is the sort of trouble that a model gave, as the log calls it.
type Kind string

// The kinds of trouble. Their sentences for people have the same names.
const (
	Failed      Kind = "failed"       // the server reported an error that is none of the others
	Unreachable Kind = "unreachable"  // no connection, or it broke
	RateLimited Kind = "rate limited" // too many requests for now
	Denied      Kind = "denied"       // key or account refused
	NotFound    Kind = "not found"    // no such model or path on that server
	TooLarge    Kind = "too large"    // the request does not fit the model's window
	TimedOut    Kind = "timed out"    // no answer in time
	Empty       Kind = "empty"        // an answer with nothing in it
	Garbled     Kind = "garbled"      // an answer that is none
)

// Why is the kind in a word or two, for people.
func (k Kind) Why() i18n.Text { return i18n.New("trouble.why." + k.key()) }

func (k Kind) key() string { return strings.ReplaceAll(string(k), " ", "_") }

// Error is how Complete and Probe fail. Its text is for the operator and holds
// what the server said, with keys taken out; Calm is for everybody else.
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

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Calm says in a sentence or two for the chat user what happened and what
// helps. It names the model and holds nothing that the server said.
func (e *Error) Calm() i18n.Text {
	if e.Model == "" {
		return i18n.New("error.no_model")
	}
	return i18n.New("trouble."+e.Kind.key(), "model", e.Model)
}
