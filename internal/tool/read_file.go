package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/tool/workspace"
	"reverie/internal/trust"
)

type readFileArgs struct {
	Path   string `json:"path" rule:"required" doc:"Such as data/skills/NAME.md."`
	Offset int    `json:"offset" rule:"min=1" doc:"First line to show; 1 if left out." brief:"-"`
	Limit  int    `json:"limit" rule:"min=1" doc:"Most lines to show." brief:"-"`
}

// readableFolders are the folders of the data folder that a model may read. The list is closed:
// keys, the database and other people's memories are beside them.
var readableFolders = []string{skillFolder, "prompts", "personas"}

// readableFiles are single files of the data folder that a model may read. It may also read the
// memory files of its conversation.
var readableFiles = []string{
	"BASE_PROMPT.txt", "COMPACTION_PROMPT.txt",
	"DREAM_CONTRADICTION_PROMPT.txt", "DREAM_DEDUP_PROMPT.txt", "DREAM_TASK_PROMPT.txt",
	"MEMORY_HARVEST_PROMPT.txt",
}

// skillFolder holds skills. Those of other people and rooms cannot be read.
const skillFolder = "skills"

const (
	maxFileSize = workspace.MaxText // bytes; no text written by hand is larger
	maxShown    = MaxResult - 500   // characters; the rest is for the lines around the text
)

// readFile shows a text file or lists a folder.
func (s *Set) readFile(ctx context.Context, scope Scope, a readFileArgs) (string, error) {
	if name, ok := cleanPath(a.Path); ok && name == "." {
		return s.listReadable(scope), nil
	}
	work := files{s, scope}
	if sent, ok := work.findReceived(a.Path); ok {
		a.Path = sent
	} else if work.has(a.Path) {
		return work.read(ctx, a)
	}
	f, name, info, err := s.openNamed(scope, a.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info.IsDir() {
		if strings.Count(name, "/") > 0 && name != skillFolder+"/"+skill.Folder(scope.Place().Readers()) { // names of files
			scope.MarkShown(s.fileIntegrity(ctx, scope, name))
		}
		return s.listFolder(f, scope, name)
	}
	scope.MarkShown(s.fileIntegrity(ctx, scope, name))
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return "", err
	}
	return showFile(data, "data/"+name, a.Offset, a.Limit)
}

// openNamed opens the file or folder that a model asked for. name is its path in the data folder.
func (s *Set) openNamed(scope Scope, asked string) (f *os.File, name string, info fs.FileInfo, err error) {
	name, ok := cleanPath(asked)
	if ok {
		f, err = s.openFile(scope, name)
	}
	switch {
	case !ok || errors.Is(err, errNotReadable):
		return nil, "", nil, refusal(fmt.Sprintf("%s cannot be read. %s", clip(asked), s.listReadable(scope)))
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", nil, refusal(fmt.Sprintf("There is no file %s. %s", clip(asked), s.listReadable(scope)))
	case err != nil:
		return nil, "", nil, err
	}
	info, err = f.Stat()
	return f, name, info, err
}

// fileIntegrity returns the integrity of a readable file's text.
func (s *Set) fileIntegrity(ctx context.Context, scope Scope, name string) trust.Integrity {
	switch {
	case scope.Files[name] != "":
		return trust.Foreign
	case slices.Contains(s.memoryFiles(scope), name):
		entries, err := s.cfg.Memory.Outline(ctx, scope.Memory...)
		if err != nil {
			return trust.Foreign
		}
		least := trust.Owner
		for _, e := range entries {
			least = min(least, e.Integrity)
		}
		return least
	case strings.HasPrefix(name, "skills/"):
		return s.cfg.Skills.Integrity(scope.Place(), strings.TrimPrefix(name, "skills/"))
	}
	return trust.Owner // edited by hand
}

var errNotReadable = errors.New("not among what may be read")

func (s *Set) listReadable(scope Scope) string {
	names := store.Map(readableFolders, func(dir string) string { return "data/" + dir + "/" })
	for _, file := range s.singleFiles(scope) {
		names = append(names, "data/"+file)
	}
	names = append(names, files{s, scope}.folders()...)
	return "What may be read: " + strings.Join(names, ", ") + ". A folder's path lists what is in it."
}

func (s *Set) singleFiles(scope Scope) []string {
	return slices.Concat(s.memoryFiles(scope), slices.Sorted(maps.Keys(scope.Files)), readableFiles)
}

func (s *Set) memoryFiles(scope Scope) []string {
	var files []string
	for _, m := range scope.Memory {
		if file := s.cfg.Memory.File(m); file != "" {
			files = append(files, file)
		}
	}
	return files
}

// cleanPath converts a model's path to one relative to the data folder. It rejects every path that
// leads outside instead of repairing it.
func cleanPath(p string) (string, bool) {
	p = strings.TrimSpace(p)
	if strings.ContainsFunc(p, unicode.IsControl) || strings.ContainsAny(p, "\\:") || strings.HasPrefix(p, "/") {
		return "", false
	}
	p = strings.TrimPrefix(p, "./")
	if p == "data" {
		p = "."
	}
	p = strings.TrimPrefix(p, "data/")
	for part := range strings.SplitSeq(p, "/") {
		// A leading dot means hidden: older versions, locks, "..".
		if strings.HasPrefix(part, ".") && p != "." {
			return "", false
		}
	}
	return path.Clean(p), true
}

// openFile opens name if scope may read it. It rejects symbolic links, also among the parents,
// because they may lead to keys or other people's memories. It does not block on a pipe.
func (s *Set) openFile(scope Scope, name string) (*os.File, error) {
	top, rest, _ := strings.Cut(name, "/")
	switch {
	case top == skillFolder && !scope.Place().MayRead(skill.Readers(rest)):
		return nil, fs.ErrNotExist // as if it did not exist
	case !slices.Contains(readableFolders, top) && !slices.Contains(s.singleFiles(scope), name):
		return nil, errNotReadable
	}
	data, err := os.OpenRoot(s.cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	for at, char := range name + "/" {
		if char != '/' {
			continue
		}
		info, err := data.Lstat(name[:at])
		switch {
		case err != nil:
			return nil, err
		case !info.IsDir() && (at < len(name) || !info.Mode().IsRegular()):
			return nil, errNotReadable
		}
	}
	return data.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func (s *Set) listFolder(f *os.File, scope Scope, name string) (string, error) {
	entries, err := f.ReadDir(-1)
	if err != nil {
		return "", err
	}
	var names []string
	if own := skill.Folder(scope.Place().Readers()); name == skillFolder && own != "" {
		if info, err := os.Stat(path.Join(s.cfg.Dir, skillFolder, own)); err == nil && info.IsDir() {
			names = append(names, own+"/")
		}
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || name == skillFolder && !scope.Place().MayRead(skill.Readers(e.Name())) {
			continue
		}
		if e.IsDir() {
			names = append(names, e.Name()+"/")
		} else {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return "data/" + name + " is empty.", nil
	}
	slices.Sort(names)
	return "data/" + name + "/ holds:\n" + strings.Join(names, "\n"), nil
}

// showFile shows the lines of a file from offset on. It shows at most limit lines, within the size
// of a result.
func showFile(data []byte, name string, offset, limit int) (string, error) {
	switch {
	case len(data) > maxFileSize:
		return "", refusal(fmt.Sprintf("%s is too large to be shown (more than %d MiB).", name, maxFileSize>>20))
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
		return "", refusal(fmt.Sprintf("%s is no text file and cannot be shown.", name))
	case len(bytes.TrimSpace(data)) == 0:
		return name + " is empty.", nil
	}
	text := strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\uFEFF"), "\n")
	lines := strings.Split(text, "\n")
	first := max(offset, 1)
	if first > len(lines) {
		return "", faults{fmt.Sprintf("offset: %s has only %d lines; send a smaller number", name, len(lines))}
	}
	shown, last := takeLines(lines, first, limit)
	head := fmt.Sprintf("%s, lines %d–%d of %d:\n\n", name, first, last, len(lines))
	if last < len(lines) {
		return fmt.Sprintf("%s%s\n\n[%d more lines: read on with offset %d]", head, shown, len(lines)-last, last+1), nil
	}
	return head + shown, nil
}

// takeLines joins lines from number first (1-based) on, at least one. It returns the last number.
func takeLines(lines []string, first, limit int) (shown string, last int) {
	var b strings.Builder
	size := 0
	for last = first - 1; last < len(lines) && (limit == 0 || last-first+1 < limit); last++ {
		line := lines[last]
		n := utf8.RuneCountInString(line) + 1
		if size+n > maxShown {
			if size > 0 {
				break
			}
			line = text.Clip(line, maxShown) + " [line cut here]"
		}
		if size > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
		size += n
	}
	return b.String(), last
}
