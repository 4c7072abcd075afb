package section

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// gatherWorkspace gathers what the owner put into the folders that the model may read: files with their
// first line, but those of the program, and the number of skills, which have a section of their own.
func gatherWorkspace(_ context.Context, q *Question) (*Content, error) {
	var lines []string
	if skills, err := q.skills(); err == nil && len(skills) > 0 {
		lines = append(lines, fmt.Sprintf("- data/skills: %d, see Skills", len(skills)))
	}
	for _, dir := range []string{"prompts", "personas"} {
		all, err := os.ReadDir(filepath.Join(q.sources.Dir, dir))
		if err != nil {
			continue
		}
		for _, e := range all {
			name := dir + "/" + e.Name()
			if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") { // read_file follows no links, either
				continue
			}
			if t := q.sources.read(name); t.text != q.sources.builtin(name).text {
				lines = append(lines, OneLine("- data/"+name+firstWords(t.text), 120))
			}
		}
	}
	return q.textContent("workspace", lines...)
}

// firstWords returns the first line of a text file that is no marker, after a colon; "" = none.
func firstWords(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.Trim(line, "#- \t\n"); line != "" && !strings.HasPrefix(line, "<!") {
			return ": " + line
		}
	}
	return ""
}

// listFolder returns the names in a folder of the data folder, sorted.
func (q *Question) listFolder(dir string) (names []string, err error) {
	all, err := os.ReadDir(filepath.Join(q.sources.Dir, filepath.FromSlash(dir)))
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names, err
}
