package llm

import "fmt"

// Kind is the sort of trouble that a model gave.
type Kind int

// The kinds of trouble.
const (
	Failed      Kind = iota // the server reported an error that is none of the others
	Unreachable             // no connection, or it broke
	RateLimited             // too many requests for now
	Denied                  // key or account refused
	NotFound                // no such model or path on that server
	TooLarge                // the request does not fit the model's window
	TimedOut                // no answer in time
	Empty                   // an answer with nothing in it
	Garbled                 // an answer that is none
)

// kinds has a row per Kind: how the log calls it, and the sentence for people.
var kinds = [...]struct{ name, calm string }{
	Failed:      {"failed", "The language model %q reported an error. Trying again may help; if not, its server's log says more."},
	Unreachable: {"unreachable", "I can't reach the language model %q right now. Its server may be off or still starting."},
	RateLimited: {"rate limited", "The language model %q has too much to do right now. Please try again in a minute."},
	Denied:      {"denied", "The language model %q refused my access. Its key or account needs a look by whoever runs me."},
	NotFound:    {"not found", "The language model %q is not there on its server. Its name or address needs a look by whoever runs me."},
	TooLarge:    {"too large", "This conversation has grown too large for the language model %q. A new one (`!new`) helps."},
	TimedOut:    {"timed out", "The language model %q took too long to answer. It may still be loading; please try again in a minute."},
	Empty:       {"empty", "The language model %q gave an empty answer. Trying again, or asking in other words, may help."},
	Garbled:     {"garbled", "The language model %q answered with something I can't read. If it stays so, its address needs a look by whoever runs me."},
}

// Kinds lists the kinds of trouble.
func Kinds() []Kind {
	all := make([]Kind, len(kinds))
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// String is the kind in a word or two, for logs.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		k = Failed
	}
	return kinds[k].name
}

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
func (e *Error) Calm() string {
	if e.Model == "" {
		return "No language model is set up yet. Whoever runs me can add one under `llm.models`."
	}
	k := e.Kind
	if k < 0 || int(k) >= len(kinds) {
		k = Failed
	}
	return fmt.Sprintf(kinds[k].calm, e.Model)
}
