package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// earlier has the names that default files had in earlier releases, by today's.
var earlier = map[string]string{
	"BASE_PROMPT.txt":                "prompts/BASE_PROMPT.txt",
	"COMPACTION_PROMPT.txt":          "prompts/COMPACT.txt",
	"MEMORY_HARVEST_PROMPT.txt":      "prompts/MEMORY_HARVEST.txt",
	"DREAM_MEMORIES_PROMPT.txt":      "prompts/DREAM_MEMORIES.txt",
	"DREAM_DEDUP_PROMPT.txt":         "prompts/DREAM_DEDUP.txt",
	"DREAM_CONTRADICTION_PROMPT.txt": "prompts/DREAM_CONTRADICTION.txt",
	"DREAM_TASK_PROMPT.txt":          "prompts/DREAM_TASK.txt",
}

// Move says whether a default file stands elsewhere than in earlier releases.
type Move string

// The states of a move.
const (
	Stays  Move = ""       // it has its name from the beginning
	Due    Move = "due"    // it had its earlier name until now
	Moved  Move = "moved"  // it was moved at an earlier start
	Unused Move = "unused" // there is a file with each name; nothing reads the earlier one
)

// moveOf fills in whether d is to be moved, or was. The record of what was written under
// the earlier name stays in the ledger, so a later start still knows of a move.
func (l ledger) moveOf(dir string, d *Default) error {
	old, ok := earlier[d.Path]
	if !ok {
		return nil
	}
	atOld, err := lstat(dir, old)
	if err != nil {
		return err
	}
	atNew, err := lstat(dir, d.Path)
	if err != nil {
		return err
	}
	isFile := atOld != nil && (atOld.Mode().IsRegular() || isLink(atOld))
	switch {
	case isFile && atNew != nil:
		d.Move = Unused
	case isFile:
		d.Move = Due
	case atNew != nil && l[old] != "":
		d.Move = Moved
	default:
		return nil
	}
	d.Earlier = old
	return nil
}

// move gives the file its name of today. A link is moved itself, and leads where it led.
func (d Default) move(dir string) error {
	from, to := filepath.Join(dir, filepath.FromSlash(d.Earlier)), filepath.Join(dir, filepath.FromSlash(d.Path))
	info, err := os.Lstat(from)
	if err == nil && isLink(info) {
		err = moveLink(from, to, path.Dir(d.Earlier))
	} else if err == nil && os.Rename(from, to) != nil {
		// The earlier folder is on another file system, or cannot be written to.
		var text []byte
		if text, err = os.ReadFile(from); err == nil {
			err = WriteFile(to, text)
		}
	}
	if err != nil {
		return fmt.Errorf("move %s to %s: %w; it stays as it is, so check free space and permissions, or move it yourself", from, to, err)
	}
	return syncDir(dir)
}

// moveLink moves a link out of folder into the one above. A relative target is read
// from where the link stands, so folder becomes its beginning.
func moveLink(from, to, folder string) error {
	target, err := os.Readlink(from)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(target) {
		target = filepath.FromSlash(folder) + string(filepath.Separator) + target // not Join: folder may be a link itself
	}
	if err := os.Symlink(target, to); err != nil {
		return err
	}
	return os.Remove(from)
}

// lstat looks at name in dir without following a link; nil = there is nothing.
func lstat(dir, name string) (fs.FileInfo, error) {
	info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("default file: %w", err)
	}
	return info, nil
}

func isLink(info fs.FileInfo) bool { return info.Mode()&fs.ModeSymlink != 0 }
