package harvest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/llm/answer"
	"reverie/internal/memory"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// finding is a fact as the model returned it, unchecked.
type finding struct {
	fact, subject, quote string
	kind                 memory.Kind
	from, to             time.Time
	message              int // number in the request; 0 = none given
}

// parseFindings parses a model's answer: a JSON array of objects within any text. A truncated array
// is an error, as facts would be lost.
func parseFindings(said string) ([]finding, error) {
	list, err := answer.LastObjects(said)
	found := make([]finding, len(list))
	for i, o := range list {
		found[i] = finding{fact: answer.Text(o, "fact"), subject: answer.Text(o, "subject"), quote: answer.Text(o, "quote"),
			kind: parseKind(answer.Text(o, "kind")), message: answer.Int(o, "message"),
			from: parseDate(answer.Text(o, "valid_from")), to: parseDate(answer.Text(o, "valid_to"))}
	}
	return found, err
}

// parseKind parses a kind; the default is a fact.
func parseKind(s string) memory.Kind {
	switch k := memory.Kind(strings.ToLower(s)); k {
	case memory.Preference, memory.Happening:
		return k
	}
	return memory.Fact
}

// parseDate parses a date; zero if it is invalid.
func parseDate(s string) time.Time {
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04", "2006-01", "2006"} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() > 1800 && t.Year() < 2200 {
			return t.UTC()
		}
	}
	return time.Time{}
}

// Why a fact is refused.
const (
	refusedMessage     = "it is from no message of the request"
	refusedQuote       = "its quote is not in the message"
	refusedOthersWords = "its quote is what somebody else said"
	refusedInvented    = "it names what the message does not"
	refusedUngrounded  = "it says something else than its quote"
	refusedNegation    = "it turns its quote around"
	refusedSecret      = "it is a secret"
	refusedRecalled    = "it repeats what was recalled"
	refusedKnown       = "it is known from this message already"
	refusedForgotten   = "it was to be forgotten"
	refusedPutAway     = "it was put away"
	refusedText        = "its text cannot be kept"
)

// candidate is an entry with its sender's names, for comparisons.
type candidate struct {
	memory.Entry
	names []string
}

// checkFinding checks a finding against its message. It returns the entry, or why the finding is
// refused.
func (b *batch) checkFinding(f finding) (candidate, string) {
	t := b.messageOf(f)
	if t == nil {
		return candidate{}, refusedMessage
	}
	if strings.TrimSpace(f.fact) == "" {
		return candidate{}, refusedText
	}
	if text.HasSecret(f.fact) || text.HasSecret(f.quote) || text.HasSecret(f.subject) {
		return candidate{}, refusedSecret
	}
	context, why := FindQuote(t.ownWords, f.quote)
	if why != "" {
		return candidate{}, why
	}
	if text.HasSecret(t.question) || secretNearQuote(t.ownWords, f.quote) {
		return candidate{}, refusedSecret
	}
	names := senderNames(t.sender)
	if why := checkGrounding(f.fact, f.quote, context, t.question, names); why != "" {
		return candidate{}, why
	}
	if normalized := normalizeText(f.fact); strings.Contains(normalizeText(t.tail), normalized) {
		return candidate{}, refusedRecalled
	}
	e := candidate{names: names, Entry: memory.Entry{Scope: t.scope, Text: f.fact, Kind: f.kind,
		Subject: t.resolveSubject(f.subject, names), Source: memory.Harvest, Integrity: b.integrity(), Event: t.event, Quote: f.quote,
		ObservedAt: t.at, ValidFrom: f.from, ValidTo: f.to}}
	if !e.ValidTo.IsZero() && e.ValidTo.Before(e.ValidFrom) {
		e.ValidFrom, e.ValidTo = time.Time{}, time.Time{}
	}
	first := func(w word) bool { return isFirstPerson[w.text] }
	if strings.HasPrefix(string(t.scope), "room:") && slices.ContainsFunc(wordsOf(f.fact), first) { // others read it too: name the speaker
		e.Text = fmt.Sprintf("%s said: %s", chat.ShortName(t.sender), f.fact)
	}
	if e.repeats(t.learned) {
		return candidate{}, refusedKnown
	}
	return e, ""
}

// messageOf returns the message that a finding names. If it names no message, the only one that
// contains its quote is returned, or nil.
func (b *batch) messageOf(f finding) *unreadMessage {
	if f.message != 0 {
		if f.message < 1 || f.message > len(b.messages) {
			return nil
		}
		return &b.messages[f.message-1]
	}
	var only *unreadMessage
	for i := range b.messages {
		if _, why := FindQuote(b.messages[i].ownWords, f.quote); why == "" {
			if only != nil {
				return nil
			}
			only = &b.messages[i]
		}
	}
	return only
}

// resolveSubject returns whom a fact is about: the sender for "I", else s if the message contains it, else "".
func (t *unreadMessage) resolveSubject(s string, names []string) string {
	words := wordsOf(s)
	if len(words) == 0 || len(words) > 8 {
		return ""
	}
	content, said := contentWords(s, names), wordsOf(t.ownWords)
	switch {
	case len(content) == 0:
		return t.sender
	case slices.ContainsFunc(content, func(w word) bool { return !containsForm(w.text, said) }):
		return ""
	}
	return s
}

// repeats reports whether an entry of others from the same message says the same.
func (e candidate) repeats(others []memory.Entry) bool {
	words := contentWords(e.Text, e.names)
	for _, o := range others {
		if o.Event != e.Event || o.Scope != e.Scope && o.Scope != memory.Shared {
			continue
		}
		otherWords := contentWords(o.Text, e.names)
		more := slices.ContainsFunc(words, func(w word) bool { return !containsForm(w.text, otherWords) })
		if !more && negated(e.Text) == negated(o.Text) {
			return true
		}
	}
	return false
}

// integrity returns the lowest integrity of the senders of b.
func (b *batch) integrity() trust.Integrity {
	least := trust.Owner
	for _, t := range b.messages {
		least = min(least, t.integrity)
	}
	return least
}
