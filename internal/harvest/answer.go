package harvest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/llm/answer"
	"reverie/internal/memory"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// finding is one fact as a model gave it. Nothing of it is believed yet.
type finding struct {
	fact, subject, quote string
	kind                 memory.Kind
	from, to             time.Time
	message              int // as numbered in the request; 0 = it did not say
}

// readFindings reads a model's answer: a JSON array of objects, whatever stands around it. A list that
// is not complete is an error, because the rest would be lost.
func readFindings(said string) ([]finding, error) {
	list, err := answer.Objects(said)
	found := make([]finding, len(list))
	for i, o := range list {
		found[i] = finding{fact: answer.Text(o, "fact"), subject: answer.Text(o, "subject"), quote: answer.Text(o, "quote"),
			kind: kindOf(answer.Text(o, "kind")), from: dateOf(answer.Text(o, "valid_from")), to: dateOf(answer.Text(o, "valid_to")),
			message: answer.Int(o, "message")}
	}
	return found, err
}

// kindOf reads a kind; what is none is a fact.
func kindOf(s string) memory.Kind {
	switch k := memory.Kind(strings.ToLower(s)); k {
	case memory.Preference, memory.Happening:
		return k
	}
	return memory.Fact
}

// dateOf reads a date; what is none is no date.
func dateOf(s string) time.Time {
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04", "2006-01", "2006"} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() > 1800 && t.Year() < 2200 {
			return t.UTC()
		}
	}
	return time.Time{}
}

// Why a fact is refused.
const (
	refusedMessage   = "it is from no message of the request"
	refusedQuote     = "its quote is not in the message"
	refusedOther     = "its quote is what somebody else said"
	refusedInvented  = "it names what the message does not"
	refusedLoose     = "it says something else than its quote"
	refusedTurned    = "it turns its quote around"
	refusedSecret    = "it is a secret"
	refusedRecalled  = "it repeats what was recalled"
	refusedKnown     = "it is known from this message already"
	refusedForgotten = "it was to be forgotten"
	refusedPutAway   = "it was put away"
	refusedText      = "its text cannot be kept"
)

// candidate is an entry with what it is compared by.
type candidate struct {
	memory.Entry
	names []string
}

// entry checks a finding against the message that it names, and makes an entry of it, or
// says why it is refused.
func (b *batch) entry(f finding) (candidate, string) {
	t := b.turnOf(f)
	if t == nil {
		return candidate{}, refusedMessage
	}
	if strings.TrimSpace(f.fact) == "" {
		return candidate{}, refusedText
	}
	if text.HasSecret(f.fact) || text.HasSecret(f.quote) || text.HasSecret(f.subject) {
		return candidate{}, refusedSecret
	}
	near, why := FindQuote(t.own, f.quote)
	if why != "" {
		return candidate{}, why
	}
	if text.HasSecret(t.asked) || nearSecret(t.own, f.quote) {
		return candidate{}, refusedSecret
	}
	names := namesOf(t.sender)
	if why := grounded(f.fact, f.quote, near, t.asked, names); why != "" {
		return candidate{}, why
	}
	if plain := plainText(f.fact); strings.Contains(plainText(t.tail), plain) {
		return candidate{}, refusedRecalled
	}
	e := candidate{names: names, Entry: memory.Entry{Scope: t.scope, Text: f.fact, Subject: t.subjectOf(f.subject, names), Kind: f.kind,
		Source: memory.Harvest, Integrity: b.integrity(), Event: t.event, Quote: f.quote,
		ObservedAt: t.at, ValidFrom: f.from, ValidTo: f.to}}
	if !e.ValidTo.IsZero() && e.ValidTo.Before(e.ValidFrom) {
		e.ValidFrom, e.ValidTo = time.Time{}, time.Time{}
	}
	if strings.HasPrefix(string(t.scope), "room:") && saysI(f.fact) { // others read it as well
		e.Text = fmt.Sprintf("%s said: %s", ShortName(t.sender), f.fact)
	}
	if e.repeats(t.known) {
		return candidate{}, refusedKnown
	}
	return e, ""
}

// turnOf is the message that a finding names, or, if it names none, the only one with its quote.
func (b *batch) turnOf(f finding) *turn {
	if f.message != 0 {
		if f.message < 1 || f.message > len(b.turns) {
			return nil
		}
		return &b.turns[f.message-1]
	}
	var only *turn
	for i := range b.turns {
		if _, why := FindQuote(b.turns[i].own, f.quote); why == "" {
			if only != nil {
				return nil
			}
			only = &b.turns[i]
		}
	}
	return only
}

// subjectOf is whom a fact is about: the sender where it says "I", else what it says, if the
// message says it too.
func (t *turn) subjectOf(s string, names []string) string {
	words := wordsOf(s)
	if len(words) == 0 || len(words) > 8 {
		return ""
	}
	content, said := contentWords(s, names), wordsOf(t.own)
	switch {
	case len(content) == 0:
		return t.sender
	case slices.ContainsFunc(content, func(w word) bool { return !saidIn(w.text, said) }):
		return ""
	}
	return s
}

// repeats reports whether one of others from the same message says the same.
func (e candidate) repeats(others []memory.Entry) bool {
	mine := contentWords(e.Text, e.names)
	for _, o := range others {
		if o.Event != e.Event || o.Scope != e.Scope && o.Scope != memory.Shared {
			continue
		}
		theirs := contentWords(o.Text, e.names)
		more := slices.ContainsFunc(mine, func(w word) bool { return !saidIn(w.text, theirs) })
		if !more && negated(e.Text) == negated(o.Text) {
			return true
		}
	}
	return false
}

// integrity is that of what is learned from b: of its least trusted sender.
func (b *batch) integrity() trust.Integrity {
	least := trust.Owner
	for _, t := range b.turns {
		least = min(least, t.level)
	}
	return least
}
