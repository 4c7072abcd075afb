package prompt

import (
	"reverie/internal/llm"
	"reverie/internal/trust"
	"strings"
)

// State says what became of a section.
type State string

// The states of a section.
const (
	Kept    State = "kept"
	Shrunk  State = "shrunk"  // a part is left out; the note says how much
	Dropped State = "dropped" // no room at all
	Failed  State = "failed"  // its source could not be read, or it broke its fence
)

// Section is a contributor's share of one prompt.
type Section struct {
	SectionReport
	Text string // as sent, with its fence, without its title

	row int // in the layout
}

// render makes the section of a row from its content, in at most most
// characters of the source's own words.
func render(row *row, c *content, most int, nonce string) *Section {
	s := &Section{SectionReport: SectionReport{ID: row.Name, Zone: row.Zone, State: Kept, Integrity: trust.Owner}}
	if row.Trust == Data && len(c.lines) > 0 {
		s.Integrity = c.integrity
	}
	body, note := shrink(row.Shrink, c, most)
	if c.note != "" {
		note = both(c.note, note)
	}
	if note != "" {
		s.State, s.Note = Shrunk, note
	}
	var parts []string
	if c.lead != "" {
		parts = append(parts, c.lead)
	}
	if body != "" {
		if row.Trust == Data {
			body = fenced(body, c.source, nonce)
		}
		parts = append(parts, body)
	}
	if note != "" && body != "" {
		if c.rest != "" {
			note = both(note, c.rest)
		}
		parts = append(parts, "("+note+")")
	}
	if len(c.lines) == 0 && c.none != "" {
		parts = append(parts, c.none)
	}
	s.Text = strings.Join(parts, "\n")
	if body == "" && len(c.lines) > 0 {
		s.State, s.Text = Dropped, ""
	}
	if err := checkFences(s.Text, nonce); err != nil {
		s.State, s.Note = Failed, err.Error()
		s.Text = "(This section is left out: its text could not be told apart from the program's own. The operator's log says why.)"
	}
	if s.Text != "" {
		s.Tokens = sectionFrame + llm.EstimateTokens(s.Text)
	}
	return s
}
