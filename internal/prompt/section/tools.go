package section

import (
	"context"
	"slices"
	"strings"
)

// gatherTools gathers the tools by name, with a line on each.
func gatherTools(_ context.Context, q *Question) (*Content, error) {
	lines := make([]string, 0, len(q.turn.Tools))
	for _, name := range q.turn.Tools {
		line := "- " + name
		if q.sources.Summary != nil {
			if s := q.sources.Summary(name); s != "" {
				line += ": " + OneLine(s, 200)
			}
		}
		lines = append(lines, line)
	}
	return q.textContent("tools", lines...)
}

// gatherReminder repeats the names of the tools near the end, where models heed them most.
func gatherReminder(_ context.Context, q *Question) (*Content, error) {
	if len(q.turn.Tools) == 0 {
		return nil, nil
	}
	return q.textContent("reminder", "These are all the tools there are: "+strings.Join(q.turn.Tools, ", ")+". Call no others.")
}

// gatherGuides gathers prompts/tools/NAME.txt for each of the turn's tools. There is no built-in
// fallback, because the owner may have deleted the file.
func gatherGuides(_ context.Context, q *Question) (*Content, error) {
	const folder = "prompts/tools/"
	there, err := q.listFolder("prompts/tools")
	if err != nil || len(there) == 0 {
		return nil, nil
	}
	var lines []string
	for _, file := range there {
		tool, _ := strings.CutSuffix(file, ".txt")
		if tool == file || !slices.Contains(q.turn.Tools, tool) {
			continue
		}
		t := q.sources.read(folder + file)
		if t.builtin || t.problem == missing {
			continue // deleted meanwhile
		}
		if c := q.part(t, folder+file, all); len(c.Lines) > 0 {
			lines = append(lines, tool+": "+c.Lines[0].Text)
		}
	}
	return q.textContent("guides", lines...)
}
