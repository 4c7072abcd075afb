package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// archive is the folder, beside the skills, of those that are put away. No skill is
// looked for in it.
const archive = ".archive"

// Place is where a skill lies in the folder of skills: such as "NAME.md", or "NAME" if it is
// a folder.
func (s Skill) Place() string {
	return strings.TrimSuffix(strings.TrimPrefix(s.Path, pathPrefix), "/"+folderFile)
}

// Archive is a free place in the archive for what lies at place.
func (l *Library) Archive(place string) (string, error) {
	ext := path.Ext(place)
	for n := 1; ; n++ {
		to := archive + "/" + place
		if n > 1 {
			to = archive + "/" + strings.TrimSuffix(place, ext) + "." + strconv.Itoa(n) + ext
		}
		_, err := os.Lstat(filepath.Join(l.dir, to))
		if errors.Is(err, fs.ErrNotExist) {
			return to, nil
		}
		if err != nil {
			return "", fmt.Errorf("skills: %w", err)
		}
	}
}

// Shift moves what lies at the place from to the place to; one of the two is in the archive.
// It can be repeated: what was moved already stays where it is. Nothing that is there
// already is replaced.
func (l *Library) Shift(from, to string) error {
	if !filepath.IsLocal(from) || !filepath.IsLocal(to) {
		return fmt.Errorf("skills: %q is no place of a skill", from)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.shift(from, to); err != nil {
		return fmt.Errorf("skills: %w", err)
	}
	return nil
}

func (l *Library) shift(from, to string) error {
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_, here := root.Lstat(from)
	_, there := root.Lstat(to)
	switch {
	case errors.Is(here, fs.ErrNotExist) && there == nil:
		return nil
	case here != nil:
		return here
	case there == nil:
		return fmt.Errorf("there is something at %s%s already, so %s%s stays where it is", pathPrefix, to, pathPrefix, from)
	}
	if err := root.MkdirAll(path.Dir(to), 0o700); err != nil {
		return err
	}
	return root.Rename(from, to)
}

// Changed is when a file of s was last written, by whomever.
func (l *Library) Changed(s Skill) (time.Time, error) {
	var last time.Time
	err := filepath.WalkDir(filepath.Join(l.dir, s.Place()), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("skill %s: %w", s.Name, err)
	}
	return last, nil
}
