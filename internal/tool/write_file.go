package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"reverie/internal/media"
	"reverie/internal/tool/workspace"
	"reverie/internal/trust"
)

type writeFileArgs struct {
	Path    string `json:"path" rule:"required" doc:"Such as work/hello.py."`
	Content string `json:"content" rule:"verbatim" doc:"The whole file."`
	From    string `json:"from" doc:"Instead of content: a file to copy, such as work/received/table.csv."`
}

func (f files) write(ctx context.Context, a writeFileArgs) (string, error) {
	switch {
	case a.Content == "" && a.From == "":
		return "", faults{"content: is missing; send the whole text of the file"}
	case a.From != "" && a.Content != "":
		return "", faults{"from: a file has content or a copy, not both; leave one out"}
	case a.From != "":
		return f.copy(ctx, a)
	}
	result := ""
	err := f.cfg.Files.Change(ctx, f.Place(), a.Path, func(old workspace.Old) ([]byte, trust.Integrity, error) {
		size := media.FormatSize(int64(len(a.Content)))
		switch {
		case errors.Is(old.Err, fs.ErrNotExist):
			result = fmt.Sprintf("%s is written (%s, new).", a.Path, size)
		case old.Err != nil:
			result = fmt.Sprintf("%s is written (%s) in place of what was no text.", a.Path, size)
		default:
			f.MarkShown(old.Integrity)
			result = fmt.Sprintf("%s is written (%s):\n%s", a.Path, size, diff(a.Path, string(old.Text), a.Content))
		}
		return []byte(a.Content), f.Label.Integrity, nil
	})
	return result, err
}

// copy copies a file. The copy is foreign: its text may be anybody's.
func (f files) copy(ctx context.Context, a writeFileArgs) (string, error) {
	from, _, err := f.open(a.From)
	if err != nil {
		return "", err
	}
	defer from.Close()
	size, err := f.cfg.Files.Copy(ctx, f.Place(), a.Path, from, trust.Foreign)
	return fmt.Sprintf("%s is a copy of %s (%s).", a.Path, a.From, media.FormatSize(size)), err
}

type editFileArgs struct {
	Path string `json:"path" rule:"required" doc:"Such as work/hello.py."`
	Old  string `json:"old" rule:"required" doc:"Text of the file that occurs once, exactly as it stands there."`
	New  string `json:"new" rule:"verbatim" doc:"What replaces it; nothing deletes it."`
}

func (f files) edit(ctx context.Context, a editFileArgs) (string, error) {
	result := ""
	err := f.cfg.Files.Change(ctx, f.Place(), a.Path, func(old workspace.Old) ([]byte, trust.Integrity, error) {
		if errors.Is(old.Err, fs.ErrNotExist) {
			return nil, 0, refusal(a.Path + " does not exist, so nothing was changed. write_file makes it; list_files shows what is there.")
		}
		if old.Err != nil {
			return nil, 0, old.Err
		}
		text, err := replaceOnce(a, string(old.Text))
		if err != nil {
			return nil, 0, err
		}
		f.MarkShown(old.Integrity)
		result = a.Path + " is changed:\n" + diff(a.Path, string(old.Text), text)
		return []byte(text), min(f.Label.Integrity, old.Integrity), nil
	})
	return result, err
}

// replaceOnce replaces a.Old, which must occur exactly once. The model sees all lines end in \n, so they
// may end in \r\n in the file.
func replaceOnce(a editFileArgs, text string) (string, error) {
	if strings.Contains(text, "\r\n") && !strings.Contains(text, a.Old) {
		crlf := strings.NewReplacer("\r\n", "\r\n", "\n", "\r\n")
		a.Old, a.New = crlf.Replace(a.Old), crlf.Replace(a.New)
	}
	before, after, found := strings.Cut(text, a.Old)
	switch {
	case !found:
		return "", refusal("old does not occur in " + a.Path + ", so nothing was changed. " +
			"Read the file and copy the text exactly, with its indentation.")
	case a.Old == a.New:
		return "", refusal("old and new are the same, so nothing was changed.")
	}
	if lines := linesOf(text, a.Old); len(lines) > 1 {
		return "", refusal(fmt.Sprintf("old occurs several times in %s, in the lines %s, so nothing was changed. "+
			"Send more of the text around the one you mean.", a.Path, strings.Join(lines, ", ")))
	}
	return before + a.New + after, nil
}

// linesOf returns the numbers of the lines in which part begins, at most ten.
func linesOf(text, part string) (lines []string) {
	n := 1
	for len(lines) < 10 {
		i := strings.Index(text, part)
		if i < 0 {
			return lines
		}
		n += strings.Count(text[:i], "\n")
		lines = append(lines, fmt.Sprint(n))
		n += strings.Count(text[i:i+1], "\n")
		text = text[i+1:]
	}
	return append(lines, "and more")
}

type deleteFileArgs struct {
	Path string `json:"path" rule:"required" doc:"Such as work/hello.py."`
}

func (f files) remove(_ context.Context, a deleteFileArgs) (string, error) {
	if err := f.cfg.Files.Remove(f.Place(), a.Path); err != nil {
		return "", err
	}
	return a.Path + " is deleted.", nil
}

// Move moves the work folder of a room to the room that replaces it.
func (s *Set) Move(ctx context.Context, from, to string) error {
	if s.cfg.Files == nil {
		return nil
	}
	return s.cfg.Files.Move(ctx, from, to)
}

const (
	diffContext = 3   // unchanged lines around a change
	diffLines   = 120 // lines shown of a change
)

// diff returns a unified diff of one hunk: all lines from the first to the last that changed.
func diff(path, old, now string) string {
	a, b := splitLines(old), splitLines(now)
	first := 0
	for first < len(a) && first < len(b) && a[first] == b[first] {
		first++
	}
	if first == len(a) && first == len(b) {
		return "(nothing is different)"
	}
	same := 0 // at the end
	for same < len(a)-first && same < len(b)-first && a[len(a)-1-same] == b[len(b)-1-same] {
		same++
	}
	begin := max(first-diffContext, 0)
	after := min(same, diffContext)
	var lines []string
	add := func(mark string, part []string) {
		for _, line := range part {
			lines = append(lines, mark+line)
		}
	}
	add(" ", a[begin:first])
	add("-", a[first:len(a)-same])
	add("+", b[first:len(b)-same])
	add(" ", a[len(a)-same:len(a)-same+after])
	head := fmt.Sprintf("--- %s\n+++ %s\n@@ -%s +%s @@\n", path, path, span(begin, len(a)-same+after), span(begin, len(b)-same+after))
	if len(lines) > diffLines {
		more := len(lines) - diffLines
		lines = append(lines[:diffLines:diffLines], fmt.Sprintf("[%d more lines of this change]", more))
	}
	return head + strings.Join(lines, "\n")
}

// span formats the lines from index begin up to end.
func span(begin, end int) string {
	if begin == end { // no line: it stands for the place after line begin
		return fmt.Sprintf("%d,0", begin)
	}
	return fmt.Sprintf("%d,%d", begin+1, end-begin)
}

// splitLines splits a text into lines. A last line without an end gets a mark, as diff has it.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	if rest, ok := strings.CutSuffix(text, "\n"); ok {
		return strings.Split(rest, "\n")
	}
	lines := strings.Split(text, "\n")
	lines[len(lines)-1] += "\n\\ No newline at end of file"
	return lines
}
