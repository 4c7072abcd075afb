package section

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"reverie/internal/skill"
	"reverie/internal/trust"
)

// gatherWorkspace gathers the contents of the folders that the model may read.
func gatherWorkspace(_ context.Context, q *Question) (*Content, error) {
	var lines []string
	for _, dir := range []string{"skills", "prompts", "personas"} {
		names, err := q.listFolder(dir)
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
	return q.textContent("workspace", lines...) // numbers, not names
}

// listFolder returns the names in a folder of the data folder, sorted.
func (q *Question) listFolder(dir string) (names []string, err error) {
	all, err := os.ReadDir(filepath.Join(q.sources.Dir, filepath.FromSlash(dir)))
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names, err
}
