package store

import "fmt"

// Problem is a mistake in a file, to be reported to its owner.
type Problem struct {
	File string `json:"file,omitempty"` // relative to the data folder
	Line int    `json:"line,omitempty"`
	Text string `json:"problem"`
}

func (p Problem) String() string {
	switch {
	case p.File == "":
		return p.Text
	case p.Line == 0:
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}
