package prompt

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reverie/internal/llm"
	"reverie/internal/skill"
	"reverie/internal/trust"
)

// Contributors that show files of the data folder. One that is not there has
// nothing to say.

// gatherFile gathers one of the owner's own files.
func gatherFile(name string) func(context.Context, *Question) (*content, error) {
	return func(_ context.Context, q *Question) (*content, error) {
		return q.file(name)
	}
}

func (q *Question) file(name string) (*content, error) {
	return q.said(name, q.fill(q.text(name)))
}

// text is that of a file, which may be missing.
func (q *Question) text(name string) string {
	t := q.files.read(name)
	if t.problem != "" && t.problem != missing {
		q.Problem(name, 0, t.problem)
	}
	return t.text
}

// gatherContext gathers what the room is about. Only its owners say that, so no fence is around it.
func gatherContext(_ context.Context, q *Question) (*content, error) {
	return q.saidAs(content{source: "context", lines: []string{strings.TrimSpace(q.turn.Context)}, integrity: trust.Owner})
}

// fill completes a text that people wrote. Only this one placeholder is known
// everywhere; any other brace is text.
func (q *Question) fill(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(s), "{agent_name}", q.sources.Name)
}

// gatherInstructions gathers the owner's instructions from the configuration.
func gatherInstructions(_ context.Context, q *Question) (*content, error) {
	return q.said("instructions", q.fill(q.sources.Instructions))
}

// gatherGuides gathers prompts/tools/NAME.txt for each of the turn's tools. Its owner may have
// taken one away, so a built-in one does not stand in.
func gatherGuides(_ context.Context, q *Question) (*content, error) {
	const folder = "prompts/tools/"
	there, err := q.listed("prompts/tools")
	if err != nil || len(there) == 0 {
		return nil, nil
	}
	var lines []string
	for _, file := range there {
		tool, _ := strings.CutSuffix(file, ".txt")
		if tool == file || !slices.Contains(q.turn.Tools, tool) {
			continue
		}
		t := q.files.read(folder + file)
		if t.builtin || t.problem == missing {
			continue // just taken away
		}
		if c := q.part(t, folder+file, all); len(c.lines) > 0 {
			lines = append(lines, tool+": "+c.lines[0])
		}
	}
	return q.said("guides", lines...)
}

// gatherWorkspace gathers what is in the folders that the model may read.
func gatherWorkspace(_ context.Context, q *Question) (*content, error) {
	var lines []string
	for _, dir := range []string{"skills", "prompts", "personas"} {
		names, err := q.listed(dir)
		if err != nil {
			continue
		}
		n := 0
		for _, name := range names {
			if !strings.HasPrefix(name, ".") && (dir != "skills" || skill.Readers(name) != trust.Nobody) {
				n++
			}
		}
		lines = append(lines, fmt.Sprintf("- data/%s: %d entries", dir, n))
	}
	return q.saidAs(content{source: "workspace", lines: lines, integrity: trust.Owner}) // numbers, no names
}

// listed returns the names in a folder of the data folder, sorted.
func (q *Question) listed(dir string) (names []string, err error) {
	all, err := os.ReadDir(filepath.Join(q.sources.Dir, filepath.FromSlash(dir)))
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names, err
}

// gatherFiles gathers the names of the files that were read in this
// conversation, the newest last.
func gatherFiles(_ context.Context, q *Question) (*content, error) {
	var names []string
	least, in := trust.Owner, map[string]int64{}
	for i := range q.turn.History {
		for _, call := range q.turn.History[i].Calls {
			name := readPath(call)
			if name == "" {
				continue
			}
			names = slices.DeleteFunc(names, func(n string) bool { return n == name })
			names, in[name] = append(names, name), q.turn.History[i].ID
			least = min(least, q.turn.History[i].Label.Integrity)
		}
	}
	c := content{source: "files", integrity: least}
	for _, n := range names[max(0, len(names)-latest):] {
		c.lines, c.in = append(c.lines, "- "+oneLine(n, 200)), append(c.in, in[n])
	}
	return q.saidAs(c)
}

// readPath is the path that a call reads, "" if it reads none.
func readPath(c llm.ToolCall) string {
	var args struct {
		Path string `json:"path"`
	}
	if c.Name != "read_file" || json.Unmarshal([]byte(c.Arguments), &args) != nil {
		return ""
	}
	return args.Path
}
