package dream

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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

// Errors of answers that cannot be used.
var (
	errProse   = errors.New("the answer has no list in it")
	errPartial = errors.New("the answer ends in the middle of its list")
)

// mostFindings is how many facts of one answer are looked at.
const mostFindings = 200

// readFindings reads a model's answer: a JSON array of objects, whatever stands around it.
// A list that is not complete is an error, because the rest is lost otherwise; an object
// of another form is left out.
func readFindings(answer string) ([]finding, error) {
	list, err := jsonObjects(answer)
	list = list[:min(len(list), mostFindings)]
	found := make([]finding, len(list))
	for i, o := range list {
		found[i] = finding{fact: field(o, "fact"), subject: field(o, "subject"), quote: field(o, "quote"), kind: kindOf(field(o, "kind")),
			from: dateOf(field(o, "valid_from")), to: dateOf(field(o, "valid_to")), message: whole(o, "message")}
	}
	return found, err
}

// jsonObjects are the objects of the last array of objects in text, in a fence or prose or not: what
// stands before may be thinking aloud. Of an array that is cut off they are those before the cut, with
// errPartial. What is no object is left out.
func jsonObjects(text string) ([]map[string]any, error) {
	objects, err := lastObjects(text)
	if errors.Is(err, errPartial) {
		if again, err := lastObjects(trailingComma.ReplaceAllString(text, "$1")); err == nil {
			return again, nil
		}
	}
	return objects, err
}

func lastObjects(text string) (objects []map[string]any, err error) {
	err = errProse
	for at := arrayStart.FindStringIndex(text); at != nil; at = arrayStart.FindStringIndex(text) {
		text = text[at[0]:]
		list, length, failed := readObjects(text)
		if len(list) > 0 || errors.Is(err, errProse) { // an empty one may be a part of another
			objects, err = list, failed
		}
		text = text[length:]
	}
	return objects, err
}

// readObjects reads the array that text begins with, and says how long it is.
func readObjects(text string) (list []map[string]any, length int64, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	_, err = dec.Token()
	for err == nil && dec.More() {
		var o any
		err = dec.Decode(&o)
		if object, ok := o.(map[string]any); ok && err == nil {
			list = append(list, object)
		}
	}
	if err == nil {
		_, err = dec.Token()
	}
	if err != nil {
		return list, 1, errPartial
	}
	return list, dec.InputOffset(), nil
}

// arrayStart begins an array of objects, or an empty one, but no bracket in prose.
var arrayStart = regexp.MustCompile(`\[\s*[{\]]`)

// trailingComma is a comma that some models put before the end of a list or object. In a quote it would
// be changed too, and then the quote is not found and its fact refused: nothing wrong is stored.
var trailingComma = regexp.MustCompile(`,\s*([\]}])`)

// field is a field of an object as text, if it is a text or number.
func field(o map[string]any, name string) string {
	switch v := o[name].(type) {
	case string:
		return strings.TrimSpace(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// whole is a field of an object as a whole number, also one in brackets; 0 = it is none.
func whole(o map[string]any, name string) int {
	n, _ := strconv.Atoi(strings.Trim(field(o, name), "[]# "))
	return n
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

// harvestedEntry is an entry with what it is compared by.
type harvestedEntry struct {
	memory.Entry
	names []string
}

// entry checks a finding against the message that it names, and makes an entry of it, or
// says why it is refused.
func (b *batch) entry(f finding) (harvestedEntry, string) {
	t := b.turnOf(f)
	if t == nil {
		return harvestedEntry{}, refusedMessage
	}
	if strings.TrimSpace(f.fact) == "" {
		return harvestedEntry{}, refusedText
	}
	if text.HasSecret(f.fact) || text.HasSecret(f.quote) || text.HasSecret(f.subject) {
		return harvestedEntry{}, refusedSecret
	}
	near, why := findQuote(t.own, f.quote)
	if why != "" {
		return harvestedEntry{}, why
	}
	if text.HasSecret(t.asked) || nearSecret(t.own, f.quote) {
		return harvestedEntry{}, refusedSecret
	}
	names := namesOf(t.sender)
	if why := grounded(f.fact, f.quote, near, t.asked, names); why != "" {
		return harvestedEntry{}, why
	}
	if plain := plainText(f.fact); strings.Contains(plainText(t.tail), plain) {
		return harvestedEntry{}, refusedRecalled
	}
	e := harvestedEntry{names: names, Entry: memory.Entry{Scope: t.scope, Text: f.fact, Subject: t.subjectOf(f.subject, names), Kind: f.kind, Source: memory.Harvest, Integrity: b.integrity(),
		Event: t.event, Quote: f.quote, ObservedAt: t.at, ValidFrom: f.from, ValidTo: f.to}}
	if !e.ValidTo.IsZero() && e.ValidTo.Before(e.ValidFrom) {
		e.ValidFrom, e.ValidTo = time.Time{}, time.Time{}
	}
	if strings.HasPrefix(string(t.scope), "room:") && saysI(f.fact) { // others read it as well
		e.Text = fmt.Sprintf("%s said: %s", shortName(t.sender), f.fact)
	}
	if e.repeats(t.known) {
		return harvestedEntry{}, refusedKnown
	}
	return e, ""
}

// turnOf is the message that a finding is from: the one it names, or, if it names none, the
// only one that has its quote.
func (b *batch) turnOf(f finding) *turn {
	if f.message != 0 {
		if f.message < 1 || f.message > len(b.turns) {
			return nil
		}
		return &b.turns[f.message-1]
	}
	var only *turn
	for i := range b.turns {
		if _, why := findQuote(b.turns[i].own, f.quote); why == "" {
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
	words := harvestWords(s)
	if len(words) == 0 || len(words) > 8 {
		return ""
	}
	content, said := contentWords(s, names), harvestWords(t.own)
	switch {
	case len(content) == 0:
		return t.sender
	case slices.ContainsFunc(content, func(w harvestWord) bool { return !saidIn(w.text, said) }):
		return ""
	}
	return s
}

// repeats reports whether one of others from the same message says the same.
func (e harvestedEntry) repeats(others []memory.Entry) bool {
	mine := contentWords(e.Text, e.names)
	for _, o := range others {
		if o.Event != e.Event || o.Scope != e.Scope && o.Scope != memory.Shared {
			continue
		}
		theirs := contentWords(o.Text, e.names)
		more := slices.ContainsFunc(mine, func(w harvestWord) bool { return !saidIn(w.text, theirs) })
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
