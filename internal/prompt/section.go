package prompt

import (
	"strings"

	"reverie/internal/llm"
	"reverie/internal/prompt/section"
	"reverie/internal/trust"
)

// State says what became of a section.
type State string

// The states of a section.
const (
	Kept    State = "kept"
	Shrunk  State = "shrunk"  // partly left out; the note says how much
	Dropped State = "dropped" // no room at all
	Failed  State = "failed"  // its source could not be read, or it broke its fence
)

// rendered is a contributor's share of one prompt.
type rendered struct {
	SectionReport
	Text string // as sent, fenced, without its title

	row int // in the layout
}

// render makes the section of a row from its content. It has at most most characters of the
// source's words.
func render(row *row, c *section.Content, most int, nonce string) *rendered {
	s := &rendered{SectionReport: SectionReport{ID: row.Name, Zone: row.Zone, State: Kept, Integrity: trust.Owner}}
	if row.Trust == section.Data && len(c.Lines) > 0 {
		s.Integrity = c.Integrity
	}
	body, note := c.Cut(row.Shrink, most)
	if note = joinNotes(c.Note, note); note != "" {
		s.State, s.Note = Shrunk, note
	}
	var parts []string
	if c.Lead != "" {
		parts = append(parts, c.Lead)
	}
	if body != "" {
		if row.Trust == section.Data {
			body = fenced(body, c.Source, nonce)
		}
		parts = append(parts, body)
	}
	if note != "" && body != "" {
		parts = append(parts, "("+joinNotes(note, c.Rest)+")")
	}
	if len(c.Lines) == 0 && c.None != "" {
		parts = append(parts, c.None)
	}
	s.Text = strings.Join(parts, "\n")
	if body == "" && len(c.Lines) > 0 {
		s.State, s.Text = Dropped, ""
	}
	if err := checkFences(s.Text, nonce); err != nil {
		s.State, s.Note = Failed, err.Error()
		s.Text = "(This section is left out: its text could not be told apart from the program's own. The operator's log says why.)"
	}
	if s.Text != "" {
		s.Tokens = section.Frame + llm.EstimateTokens(s.Text)
	}
	return s
}

// joinNotes joins two notes.
func joinNotes(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "; " + second
}
