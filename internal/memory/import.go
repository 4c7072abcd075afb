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

	"reverie/internal/memory/lines"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// Importer takes memories from a file of JSON lines.
type Importer struct {
	Store    *Store
	Scope    Scope          // of lines that name none; empty = every line must
	Location *time.Location // of times without a zone; nil = UTC
	Now      func() time.Time
}

// ImportResult says what an import did.
type ImportResult struct {
	Lines     int    `json:"lines"`
	Added     int    `json:"added"`
	Known     int    `json:"known"`           // they were there already, word for word
	Forgotten int    `json:"forgotten"`       // they were to be forgotten, and were left out
	Batch     string `json:"batch,omitempty"` // takes the whole import back (Undo); empty if nothing was added
}

// badLines is the error of Import for a file that holds lines it cannot take: an error for each of the
// first, with its place, and how many there are more.
func badLines(bad []error) error {
	const most = 20
	if more := len(bad) - most; more > 0 {
		bad = append(bad[:most:most], fmt.Errorf("… and %d more", more))
	}
	return errors.Join(append(bad, errors.New("nothing was imported: mend these lines and import the file again"))...)
}

const (
	maxImportText = 100_000 // bytes of one text
	maxImportLine = 1 << 20 // bytes of one line
)

// record is a line of the file. Other fields mean nothing here.
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
	Integrity    trust.Integrity `json:"integrity"` // without it the operator, who runs the import
}

// imported is a line of the file, and where it stands.
type imported struct {
	Entry
	line int
}

// parse reads all lines of data. Lines that are none are in bad.
func (m *Importer) parse(name string, data []byte) (all []imported, bad []error) {
	now, n := m.Now(), 0
	for line := range bytes.Lines(bytes.TrimPrefix(data, lines.BOM)) {
		if n++; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		e, err := m.entry(line, now)
		if err != nil {
			bad = append(bad, fmt.Errorf("%s:%d: %w", name, n, err))
			continue
		}
		all = append(all, imported{e, n})
	}
	return all, bad
}

// entry makes an entry of one line.
func (m *Importer) entry(line []byte, now time.Time) (Entry, error) {
	r := record{Scope: m.Scope, Source: Imported, Kind: Fact, Integrity: trust.Owner}
	switch {
	case len(line) > maxImportLine:
		return Entry{}, fmt.Errorf("the line is longer than %d bytes", maxImportLine)
	case !utf8.Valid(line):
		return Entry{}, errors.New("the line is not valid UTF-8")
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return Entry{}, fmt.Errorf("the line is no JSON object with fields as expected: %w", err)
	}
	said := oneLine(r.Text)
	switch {
	case said == "":
		return Entry{}, errors.New("text is missing or empty")
	case len(said) > maxImportText:
		return Entry{}, fmt.Errorf("text is %d bytes long, and at most %d are taken: divide it", len(said), maxImportText)
	case r.Scope.Check() != nil:
		return Entry{}, fmt.Errorf("scope %q: give private:@user:server, room:!id:server or shared", r.Scope)
	case !slices.Contains(allSources, r.Source):
		return Entry{}, fmt.Errorf("source %q: it is one of %v", r.Source, allSources)
	case !slices.Contains(allKinds, r.Kind):
		return Entry{}, fmt.Errorf("kind %q: it is fact, preference, event or insight", r.Kind)
	case r.Integrity < trust.Foreign || r.Integrity > trust.Owner:
		return Entry{}, fmt.Errorf("integrity %d: it is 0 (foreign), 1 (guest), 2 (user) or 3 (owner)", r.Integrity)
	}
	e := Entry{Scope: r.Scope, Text: said, Subject: oneLine(r.Subject), Kind: r.Kind, Source: r.Source, State: Active,
		Integrity: r.Integrity, Pinned: r.Pinned, Event: oneLine(r.Event), Quote: text.Cut(r.Quote, maxQuote), Ref: oneLine(r.Ref),
		Conversation: oneLine(r.Conversation), Seq: r.Seq, ObservedAt: now, CreatedAt: now, UpdatedAt: now, Rev: 1}
	for name, of := range map[string]struct {
		raw json.RawMessage
		to  *time.Time
	}{"observed_at": {r.ObservedAt, &e.ObservedAt}, "valid_from": {r.ValidFrom, &e.ValidFrom}, "valid_to": {r.ValidTo, &e.ValidTo}} {
		if err := m.time(of.raw, of.to); err != nil {
			return Entry{}, fmt.Errorf("%s %w", name, err)
		}
	}
	return e, nil
}

var allKinds = []Kind{Fact, Preference, Happening, Insight}

var allSources = []Source{UserExplicit, Assistant, Harvest, DreamingMerge, FromFile, Imported}

// oneLine makes a line of s. Control characters, which other programs leave in what they export, become spaces.
func oneLine(s string) string {
	between := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\uFEFF' }
	return strings.Join(strings.FieldsFunc(s, between), " ")
}

// layouts are how times may be written, beside Unix seconds.
var layouts = []string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly, "3:04 pm on 2 January, 2006",
}

// time reads raw into to, which stays as it is if raw is empty.
func (m *Importer) time(raw json.RawMessage, to *time.Time) error {
	said := strings.Trim(string(raw), ` "`)
	if said == "" || said == "null" {
		return nil
	}
	if n, err := strconv.ParseFloat(string(raw), 64); err == nil && n > -1e11 && n < 1e14 {
		if n < 1e11 { // seconds, and no milliseconds
			n *= 1000
		}
		*to = time.UnixMilli(int64(n)).UTC()
		return nil
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, said, cmp.Or(m.Location, time.UTC)); err == nil && t.Year() > 0 {
			*to = t
			return nil
		}
	}
	return fmt.Errorf("%s: write it as 2026-01-31T18:30:00Z or 2026-01-31", raw)
}
