package section

import (
	"context"
	"slices"
	"strings"

	"reverie/internal/trust"
)

// Program is a connected program, such as an MCP server. The owner agreed to its texts.
type Program struct {
	Name    string
	Tools   []ProgramTool
	Prompts []string // its texts for the model
}

// ProgramTool is a tool of a program.
type ProgramTool struct {
	Name    string // its full name
	Summary string
}

// maxSummaries is how many tools are listed with a summary. The others are listed by name.
const maxSummaries = 12

// gatherPrograms lists the tools of connected programs. The list stands in the tail, so that programs
// come and go without a new epoch.
func gatherPrograms(_ context.Context, q *Question) (*Content, error) {
	programs, err := q.programs()
	if err != nil || !slices.Contains(q.turn.Tools, "call_tool") {
		return nil, err
	}
	var each, names []string // a line for each tool, and one for each program
	for _, p := range programs {
		var of []string
		for _, t := range p.Tools {
			each, of = append(each, OneLine(t.Name+": "+t.Summary, 160)), append(of, t.Name)
		}
		names = append(names, OneLine(p.Name+" has "+strings.Join(of, ", "), 400))
	}
	lines := each
	if len(each) > maxSummaries {
		lines = names
	}
	return NewContent(Content{Source: "programs", Lines: linesOf(trust.Owner, lines...), Rest: "find_tool finds them",
		None: "No programs are connected any more."}), nil
}

// gatherProgramPrompts gathers the texts that connected programs have for the model.
func gatherProgramPrompts(_ context.Context, q *Question) (*Content, error) {
	programs, err := q.programs()
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, p := range programs {
		for _, text := range p.Prompts {
			lines = append(lines, p.Name+": "+text)
		}
	}
	return q.textContent("programs", lines...)
}
