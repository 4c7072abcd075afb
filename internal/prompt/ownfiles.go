package prompt

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reverie/internal/llm"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Contributors that show files of the data folder. One that is not there has
// nothing to say.

// gatherFile gathers one of the owner's own files.
func gatherFile(name string) func(context.Context, *question) (*content, error) {
	return func(_ context.Context, q *question) (*content, error) {
		return q.file(name)
	}
}

func (q *question) file(name string) (*content, error) {
	return q.said(name, "", q.fill(q.text(name)))
}

// text is that of a file, which may be missing.
func (q *question) text(name string) string {
	t := q.a.files.readIn(q.folders.of(name), name)
	if t.problem != "" && t.problem != missing {
		q.problem(name, 0, t.problem)
	}
	return t.text
}

// gatherContext gathers what the room is about. Only its owners say that, so no fence is around it.
func gatherContext(_ context.Context, q *question) (*content, error) {
	return q.saidAs(content{source: "context", lines: []string{strings.TrimSpace(q.turn.Context)}, integrity: trust.Owner}, q.turn.Room)
}

// fill completes a text that people wrote. Only this one placeholder is known
// everywhere; any other brace is text.
func (q *question) fill(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(s), "{agent_name}", q.a.cfg.Name)
}

// gatherGuides gathers prompts/tools/NAME.txt for each of the turn's tools.
func gatherGuides(_ context.Context, q *question) (*content, error) {
	const folder = "prompts/tools/"
	if at := q.folders.of(folder); at.known && !at.stamp.Exists() {
		return nil, nil
	}
	var lines []string
	for _, tool := range q.turn.Tools {
		if !isName(tool) {
			continue
		}
		name := folder + tool + ".txt"
		t := q.a.files.readIn(q.folders.of(name), name)
		if t.builtin || t.problem == missing {
			continue // its owner took it away, or there is none
		}
		if c := q.part(t, name, all); len(c.lines) > 0 {
			lines = append(lines, tool+": "+c.lines[0])
		}
	}
	return q.said("guides", string(q.turn.Talk), lines...)
}

// gatherWorkspace gathers what is in the folders that the model may read.
func gatherWorkspace(_ context.Context, q *question) (*content, error) {
	var lines []string
	for _, dir := range []string{"skills", "prompts", "personas"} {
		if n, there := q.a.entries(dir); there {
			lines = append(lines, fmt.Sprintf("- data/%s: %d entries", dir, n))
		}
	}
	return q.saidAs(content{source: "workspace", lines: lines, integrity: trust.Owner}, "") // numbers, no names
}

// counted is how many entries a folder had when it was read last.
type counted struct {
	stamp   store.Stamp
	settled bool // stamp alone tells whether n still holds
	n       int
}

// entries counts what is in a folder of the data folder; there is false if it cannot be read.
func (a *Assembler) entries(dir string) (n int, there bool) {
	path := filepath.Join(a.cfg.Dir, dir)
	stamp, err := store.Stat(path)
	if err != nil || !stamp.Exists() {
		return 0, false
	}
	a.mu.Lock()
	last := a.counted[dir]
	a.mu.Unlock()
	if last.settled && last.stamp == stamp {
		return last.n, true
	}
	now := time.Now()
	all, err := os.ReadDir(path)
	if err != nil {
		return 0, false
	}
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), ".") && (dir != "skills" || skill.Readers(e.Name()) != trust.Nobody) {
			n++
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counted[dir] = counted{stamp, stamp.Settled(now), n}
	return n, true
}

// gatherFiles gathers the names of the files that were read in this
// conversation, the newest last.
func gatherFiles(_ context.Context, q *question) (*content, error) {
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
	return q.saidAs(c, string(q.turn.Talk))
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
