package memory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"reverie/internal/trust"
)

// Importer takes memories from a file of JSON lines.
type Importer struct {
	Store    *Store
	Scope    Scope          // of lines that name none; empty = every line must
	Location *time.Location // of times without a zone; nil = UTC
	Now      func() time.Time
	Progress func(done, total int) // may be nil
}

// ImportResult says what an import did.
type ImportResult struct {
	Lines     int      `json:"lines"`
	Added     int      `json:"added"`
	Known     int      `json:"known"`             // they were there already, word for word
	Forgotten int      `json:"forgotten"`         // they were to be forgotten, and were left out
	Batch     string   `json:"batch,omitempty"`   // takes the whole import back (Undo); empty if nothing was added
	Ignored   []string `json:"ignored,omitempty"` // fields that mean nothing here
}

// BadLines is the error of Import for a file that holds lines it cannot take:
// one error for each, with its place.
type BadLines []error

// Error lists the first of them and counts the rest.
func (b BadLines) Error() string {
	const shown = 20
	var out strings.Builder
	for i, err := range b {
		if i == shown {
			fmt.Fprintf(&out, "\n… and %d more", len(b)-shown)
			break
		}
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(err.Error())
	}
	out.WriteString("\nNothing was imported. Mend these lines and import the file again.")
	return out.String()
}

// Unwrap returns them all.
func (b BadLines) Unwrap() []error { return b }

const (
	maxImportText = 100_000 // bytes of one text
	maxImportLine = 1 << 20 // bytes of one line
)

// record is a line of the file.
type record struct {
	Text         string          `json:"text"`
	Scope        Scope           `json:"scope"`
	Subject      string          `json:"subject"`
	Source       Source          `json:"source"`
	ObservedAt   json.RawMessage `json:"observed_at"`
	Kind         Kind            `json:"kind"`
	ValidFrom    json.RawMessage `json:"valid_from"`
	ValidTo      json.RawMessage `json:"valid_to"`
	Pinned       bool            `json:"pinned"`
	Event        string          `json:"event"`
	Quote        string          `json:"quote"`
	Ref          string          `json:"ref"`
	Conversation string          `json:"conversation"`
	Seq          int             `json:"seq"`

	Integrity *trust.Integrity `json:"integrity"` // nil = the operator, who runs the import
}

var recordFields = []string{"text", "scope", "subject", "source", "observed_at", "ref", "conversation", "seq",
	"kind", "valid_from", "valid_to", "pinned", "event", "quote", "integrity"}

// imported is a line of the file, and where it stands.
type imported struct {
	Entry
	line int
}

// parse reads all lines of data, and notes in ignored the fields that mean nothing. Lines that
// are none are in bad.
func (m *Importer) parse(name string, data []byte, ignored map[string]bool) (all []imported, bad BadLines) {
	now, n := m.Now(), 0
	for line := range bytes.Lines(bytes.TrimPrefix(data, bom)) {
		if n++; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		e, err := m.entry(line, now, ignored)
		if err != nil {
			bad = append(bad, fmt.Errorf("%s:%d: %w", name, n, err))
			continue
		}
		all = append(all, imported{e, n})
	}
	return all, bad
}

// entry makes an entry of one line.
func (m *Importer) entry(line []byte, now time.Time, ignored map[string]bool) (Entry, error) {
	switch {
	case len(line) > maxImportLine:
		return Entry{}, fmt.Errorf("the line is longer than %d bytes", maxImportLine)
	case !utf8.Valid(line):
		return Entry{}, errors.New("the line is not valid UTF-8")
	}
	var fields map[string]json.RawMessage
	var r record
	if err := cmp.Or(json.Unmarshal(line, &r), json.Unmarshal(line, &fields)); err != nil {
		return Entry{}, jsonError(err)
	}
	for f := range fields {
		if !slices.Contains(recordFields, f) {
			ignored[f] = true
		}
	}
	text, err := importText(r.Text)
	if err != nil {
		return Entry{}, err
	}
	scope := cmp.Or(r.Scope, m.Scope)
	if scope.Check() != nil {
		return Entry{}, fmt.Errorf("scope %q: give private:@user:server, room:!id:server or shared", scope)
	}
	source := cmp.Or(r.Source, Imported)
	if !slices.Contains(allSources, source) {
		return Entry{}, fmt.Errorf("source %q: it is one of %v", source, allSources)
	}
	kind := cmp.Or(r.Kind, Fact)
	if !slices.Contains(allKinds, kind) {
		return Entry{}, fmt.Errorf("kind %q: it is fact, preference, event or insight", kind)
	}
	integrity := trust.Owner
	if r.Integrity != nil {
		integrity = *r.Integrity
	}
	if integrity < trust.Foreign || integrity > trust.Owner {
		return Entry{}, fmt.Errorf("integrity %d: it is 0 (foreign), 1 (guest), 2 (user) or 3 (owner)", integrity)
	}
	var times [3]time.Time
	for i, of := range []struct {
		name string
		raw  json.RawMessage
		none time.Time
	}{{"observed_at", r.ObservedAt, now}, {"valid_from", r.ValidFrom, time.Time{}}, {"valid_to", r.ValidTo, time.Time{}}} {
		if times[i], err = m.time(of.raw, of.none); err != nil {
			return Entry{}, fmt.Errorf("%s %w", of.name, err)
		}
	}
	return Entry{Scope: scope, Text: text, Subject: oneLine(r.Subject), Kind: kind, Source: source, State: Active, Integrity: integrity,
		ValidFrom: times[1], ValidTo: times[2], Pinned: r.Pinned, Event: oneLine(r.Event), Quote: cut(r.Quote, maxQuote),
		Ref: oneLine(r.Ref), Conversation: oneLine(r.Conversation), Seq: r.Seq, ObservedAt: times[0], CreatedAt: now, UpdatedAt: now, Rev: 1}, nil
}

var allKinds = []Kind{Fact, Preference, Happening, Insight}

var allSources = []Source{UserExplicit, Assistant, Harvest, DreamingMerge, FromFile, Imported}

func jsonError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Errorf("%s is a %s; it must be a %s", wrong.Field, wrong.Value, strings.Replace(wrong.Type.Kind().String(), "int", "whole number", 1))
	}
	if errors.As(err, &wrong) {
		return errors.New("the line is no JSON object")
	}
	return fmt.Errorf("the line is no JSON object: %w", err)
}

// importText is text as one line. Control characters, which other programs leave
// in what they export, become spaces.
func importText(text string) (string, error) {
	text = oneLine(text)
	switch {
	case text == "":
		return "", errors.New("text is missing or empty")
	case len(text) > maxImportText:
		return "", fmt.Errorf("text is %d bytes long, and at most %d are taken: divide it", len(text), maxImportText)
	}
	return text, nil
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\uFEFF' }), " ")
}

// layouts are how times may be written, beside RFC 3339 and Unix seconds.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
	"2006-01-02 15:04:05Z07:00", "2006/01/02", "3:04 pm on 2 January, 2006", "2 January 2006", "2 January, 2006", "January 2, 2006",
}

func (m *Importer) time(raw json.RawMessage, now time.Time) (time.Time, error) {
	text := strings.TrimSpace(string(raw))
	if text == "" || text == "null" || text == `""` {
		return now, nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		if n > 1e11 { // milliseconds
			n /= 1000
		}
		if n < -1e11 || n != n {
			return time.Time{}, badTime(text)
		}
		return time.UnixMilli(int64(n * 1000)).UTC(), nil
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return time.Time{}, badTime(text)
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, strings.TrimSpace(s), cmp.Or(m.Location, time.UTC)); err == nil && t.Year() > 0 {
			return t, nil
		}
	}
	return time.Time{}, badTime(text)
}

func badTime(text string) error {
	return fmt.Errorf("%s: write it as 2026-01-31T18:30:00Z or 2026-01-31", text)
}
