// Package jsonl imports memories from JSON lines.
package jsonl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"reverie/internal/memory"
	"reverie/internal/memory/lines"
	"reverie/internal/trust"
)

// Importer imports memories from a file of JSON lines.
type Importer struct {
	Store    *memory.Store
	Scope    memory.Scope   // the default; empty = every line must name one
	Location *time.Location // for times without a zone; nil = UTC
	Now      func() time.Time
}

// Result counts what an import did.
type Result struct {
	Lines     int    `json:"lines"`
	Added     int    `json:"added"`
	Known     int    `json:"known"`           // lines that exist already, word for word
	Forgotten int    `json:"forgotten"`       // lines left out because they were forgotten
	Batch     string `json:"batch,omitempty"` // for Undo of the whole import; empty if nothing was added
}

// Import adds the lines of data in one transaction; name is the file's name for error messages. If
// one line is bad, nothing is imported. See memory.Store.Import for existing entries.
func (m *Importer) Import(ctx context.Context, name string, data []byte) (Result, error) {
	all, places, bad := m.parse(name, data)
	if len(bad) > 0 {
		return Result{}, badLines(bad)
	}
	learned, batch, err := m.Store.Import(ctx, all)
	r := Result{Lines: len(all)}
	for i, l := range learned {
		switch {
		case errors.Is(l.Refused, memory.ErrRefTaken):
			bad = append(bad, fmt.Errorf("%s: ref %q %w", places[i], l.Entry.Ref, l.Refused))
		case l.Refused != nil:
			r.Forgotten++
		case l.Added:
			r.Added, r.Batch = r.Added+1, batch
		default:
			r.Known++
		}
	}
	switch {
	case len(bad) > 0:
		return Result{}, badLines(bad)
	case err != nil:
		return Result{}, fmt.Errorf("import %s: nothing was imported: %w", name, cmp.Or(ctx.Err(), err))
	}
	return r, nil
}

// badLines joins the errors of the first bad lines and counts the others.
func badLines(bad []error) error {
	const most = 20
	if more := len(bad) - most; more > 0 {
		bad = append(bad[:most:most], fmt.Errorf("… and %d more", more))
	}
	return errors.Join(append(bad, errors.New("nothing was imported: correct these lines and import the file again"))...)
}

const (
	maxText = 100_000 // bytes of one text
	maxLine = 1 << 20 // bytes of one line
)

// record is a line of the file. Other fields are ignored.
type record struct {
	Text         string          `json:"text"`
	Scope        memory.Scope    `json:"scope"`
	Subject      string          `json:"subject"`
	Source       memory.Source   `json:"source"`
	ObservedAt   json.RawMessage `json:"observed_at"`
	Kind         memory.Kind     `json:"kind"`
	ValidFrom    json.RawMessage `json:"valid_from"`
	ValidTo      json.RawMessage `json:"valid_to"`
	Pinned       bool            `json:"pinned"`
	Event        string          `json:"event"`
	Quote        string          `json:"quote"`
	Ref          string          `json:"ref"`
	Conversation string          `json:"conversation"`
	Seq          int             `json:"seq"`
	Integrity    trust.Integrity `json:"integrity"` // default: the operator's
}

// parse reads all lines of data, with the position of each. Invalid lines are in bad.
func (m *Importer) parse(name string, data []byte) (all []memory.Entry, places []string, bad []error) {
	now, n := m.Now(), 0
	for line := range bytes.Lines(bytes.TrimPrefix(data, lines.BOM)) {
		if n++; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		place := fmt.Sprintf("%s:%d", name, n)
		e, err := m.parseEntry(line, now)
		if err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", place, err))
			continue
		}
		all, places = append(all, e), append(places, place)
	}
	return all, places, bad
}

func (m *Importer) parseEntry(line []byte, now time.Time) (memory.Entry, error) {
	r := record{Scope: m.Scope, Source: memory.Imported, Kind: memory.Fact, Integrity: trust.Owner}
	switch {
	case len(line) > maxLine:
		return memory.Entry{}, fmt.Errorf("the line is longer than %d bytes", maxLine)
	case !utf8.Valid(line):
		return memory.Entry{}, errors.New("the line is not valid UTF-8")
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return memory.Entry{}, fmt.Errorf("the line is no JSON object with fields as expected: %w", err)
	}
	text := oneLine(r.Text)
	switch {
	case text == "":
		return memory.Entry{}, errors.New("text is missing or empty")
	case len(text) > maxText:
		return memory.Entry{}, fmt.Errorf("text is %d bytes long, and at most %d are taken: divide it", len(text), maxText)
	case r.Scope.Check() != nil:
		return memory.Entry{}, fmt.Errorf("scope %q: give private:@user:server, room:!id:server or shared", r.Scope)
	case !slices.Contains(allSources, r.Source):
		return memory.Entry{}, fmt.Errorf("source %q: it is one of %v", r.Source, allSources)
	case !slices.Contains(allKinds, r.Kind):
		return memory.Entry{}, fmt.Errorf("kind %q: it is fact, preference, event or insight", r.Kind)
	case r.Integrity < trust.Foreign || r.Integrity > trust.Owner:
		return memory.Entry{}, fmt.Errorf("integrity %d: it is 0 (foreign), 1 (guest), 2 (user) or 3 (owner)", r.Integrity)
	}
	e := memory.Entry{Scope: r.Scope, Text: text, Subject: oneLine(r.Subject), Kind: r.Kind, Source: r.Source,
		Integrity: r.Integrity, Pinned: r.Pinned, Event: oneLine(r.Event), Quote: r.Quote, Ref: oneLine(r.Ref),
		Conversation: oneLine(r.Conversation), Seq: r.Seq, ObservedAt: now}
	for name, of := range map[string]struct {
		raw json.RawMessage
		to  *time.Time
	}{"observed_at": {r.ObservedAt, &e.ObservedAt}, "valid_from": {r.ValidFrom, &e.ValidFrom}, "valid_to": {r.ValidTo, &e.ValidTo}} {
		if err := m.parseTime(of.raw, of.to); err != nil {
			return memory.Entry{}, fmt.Errorf("%s %w", name, err)
		}
	}
	return e, nil
}

var allKinds = []memory.Kind{memory.Fact, memory.Preference, memory.Happening, memory.Insight}

var allSources = []memory.Source{
	memory.UserExplicit, memory.Assistant, memory.Harvest, memory.DreamingMerge, memory.FromFile, memory.Imported,
}

// oneLine folds white space and control characters in s to single spaces.
func oneLine(s string) string {
	between := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\uFEFF' }
	return strings.Join(strings.FieldsFunc(s, between), " ")
}

// layouts are the accepted time formats, besides Unix seconds and milliseconds.
var layouts = []string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly, "3:04 pm on 2 January, 2006",
}

// parseTime parses raw into to. If raw is empty, to keeps its value.
func (m *Importer) parseTime(raw json.RawMessage, to *time.Time) error {
	value := strings.Trim(string(raw), ` "`)
	if value == "" || value == "null" {
		return nil
	}
	if n, err := strconv.ParseFloat(string(raw), 64); err == nil && n > -1e11 && n < 1e14 {
		if n < 1e11 { // seconds, not milliseconds
			n *= 1000
		}
		*to = time.UnixMilli(int64(n)).UTC()
		return nil
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, value, cmp.Or(m.Location, time.UTC)); err == nil && t.Year() > 0 {
			*to = t
			return nil
		}
	}
	return fmt.Errorf("%s: write it as 2026-01-31T18:30:00Z or 2026-01-31", raw)
}
