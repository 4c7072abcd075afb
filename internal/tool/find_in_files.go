package tool

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/tool/workspace"
)

type findInFilesArgs struct {
	Text   string `json:"text" rule:"required" doc:"What a line must contain; case does not matter."`
	Path   string `json:"path" doc:"A folder or file; work if left out."`
	Files  string `json:"files" doc:"Only these, such as *.go."`
	Regexp *bool  `json:"regexp" doc:"text is a regular expression."`
}

const (
	maxHits = 60
	hitSize = 200 // characters of a line
)

func (f files) find(ctx context.Context, a findInFilesArgs) (string, error) {
	pattern := a.Text
	if a.Regexp == nil || !*a.Regexp {
		pattern = regexp.QuoteMeta(a.Text)
	}
	line, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return "", faults{"text: is no regular expression (" + err.Error() + "); leave out regexp to look for it as it is"}
	}
	where := strings.Trim(strings.TrimSpace(cmp.Or(a.Path, workspace.Top)), "/")
	found, err := f.cfg.Files.Find(ctx, f.Place(), where, a.Files, line.MatchString, maxHits)
	if err != nil {
		return "", err
	}
	if len(found.Hits) == 0 {
		return fmt.Sprintf("No line in the %d text files of %s contains it. list_files shows what is there.", found.Files, clip(where)), nil
	}
	f.MarkShown(found.Integrity)
	lines := store.Map(found.Hits, func(h workspace.Hit) string {
		return fmt.Sprintf("%s:%d: %s", h.Path, h.Line, text.Clip(h.Text, hitSize))
	})
	if found.Cut {
		lines = append(lines, "[there are more; name a folder or a longer text]")
	}
	return strings.Join(lines, "\n"), nil
}
