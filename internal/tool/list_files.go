package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"reverie/internal/media"
	"reverie/internal/tool/workspace"
	"reverie/internal/trust"
)

// files are the files that a call may see.
type files struct {
	*Set
	Scope
}

// onFiles makes a tool of a method of files.
func onFiles[A any](do func(files, context.Context, A) (string, error)) func(*Set, context.Context, Scope, A) (string, error) {
	return func(s *Set, ctx context.Context, scope Scope, a A) (string, error) {
		if s.cfg.Files == nil {
			return "", noWorkFolder
		}
		return do(files{s, scope}, ctx, a)
	}
}

const noWorkFolder = refusal("There is no work folder here, so nothing was done. Show text and code in your answer instead.")

type listFilesArgs struct {
	Path string `json:"path" doc:"A folder; work if left out."`
}

// maxEntries is how many files list_files shows.
const maxEntries = 300

// list lists the files of a work folder or bound folder.
func (f files) list(ctx context.Context, a listFilesArgs) (string, error) {
	asked := strings.Trim(strings.TrimSpace(cmp.Or(a.Path, workspace.Top)), "/")
	all := workspace.Listing{}
	if asked != receivedFolder {
		var err error
		if all, err = f.cfg.Files.List(ctx, f.Place(), asked); err != nil {
			return "", err
		}
	}
	var lines []string
	for _, e := range all.Entries[:min(len(all.Entries), maxEntries)] {
		f.MarkShown(e.Integrity)
		lines = append(lines, fmt.Sprintf("%s (%s)", e.Path, cmp.Or(e.Kind, media.FormatSize(e.Size))))
	}
	if asked == workspace.Top || asked == receivedFolder {
		for _, name := range slices.Sorted(maps.Keys(f.received())) {
			f.MarkShown(trust.Foreign)
			lines = append(lines, name+" (sent by a person)")
		}
	}
	if len(lines) == 0 {
		lines = []string{clip(asked) + " is empty."}
	}
	if all.Cut || len(all.Entries) > maxEntries {
		lines = append(lines, "[there are more; name a folder to see less at once]")
	}
	if all.Skipped > 0 {
		f.MarkShown(trust.Foreign)
		lines = append(lines, fmt.Sprintf("[left out: %d with names that cannot be shown]", all.Skipped))
	}
	if names := f.cfg.Files.BoundNames(f.Place()); asked == workspace.Top && len(names) > 0 {
		lines = append(lines, "Other folders: "+strings.Join(names, "/, ")+"/")
	}
	return strings.Join(lines, "\n"), nil
}

// has reports whether a path begins in the work folder or a bound folder.
func (f files) has(asked string) bool {
	return f.cfg.Files != nil && f.cfg.Files.Has(f.Place(), asked)
}

// folders lists the work folder and the bound folders, as a model names them.
func (f files) folders() []string {
	if f.cfg.Files == nil {
		return nil
	}
	names := []string{workspace.Top + "/"}
	for _, name := range f.cfg.Files.BoundNames(f.Place()) {
		names = append(names, name+"/")
	}
	return names
}

// checkTarget refuses a path that no call may change, before a person is asked about it.
func (f files) checkTarget(asked string) error {
	if f.cfg.Files == nil {
		return noWorkFolder
	}
	return f.cfg.Files.CheckWritable(f.Place(), asked)
}

// read shows a text file of the work folder, or lists a folder.
func (f files) read(ctx context.Context, a readFileArgs) (string, error) {
	data, of, err := f.cfg.Files.Read(ctx, f.Place(), a.Path)
	if errors.Is(err, workspace.ErrFolder) || errors.Is(err, fs.ErrNotExist) { // the folder is made by the first write
		return f.list(ctx, listFilesArgs{a.Path})
	}
	if err != nil {
		return "", err
	}
	f.MarkShown(of)
	return showFile(data, strings.TrimSpace(a.Path), a.Offset, a.Limit)
}

const receivedFolder = workspace.Top + "/" + workspace.Received

// received maps the names under which people's files are seen to their paths below the data folder.
// The files are not copied, so that a redaction removes them here, too.
func (f files) received() map[string]string {
	names := map[string]string{}
	for _, p := range slices.Sorted(maps.Keys(f.Files)) {
		sent, err := f.openFile(f.Scope, p)
		if err != nil {
			continue
		}
		sent.Close()
		name := media.Name(f.Files[p])
		if strings.HasSuffix(p, ".pdf.txt") { // see media.TextPath
			name += ".txt"
		}
		ext := path.Ext(name)
		full := receivedFolder + "/" + name
		if names[full] != "" {
			full = fmt.Sprintf("%s/%s-%.8s%s", receivedFolder, strings.TrimSuffix(name, ext), media.Stem(p), ext)
		}
		names[full] = p
	}
	return names
}

// findReceived returns the path below the data folder of a file that a person sent.
func (f files) findReceived(asked string) (string, bool) {
	p, ok := f.received()[strings.TrimPrefix(strings.TrimSpace(asked), "data/")]
	return p, ok && f.cfg.Files != nil
}
