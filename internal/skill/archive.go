package skill

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// Place is where a skill lies in the folder of skills: such as "NAME.md", or "NAME" if it is
// a folder.
func (s Skill) Place() string {
	return strings.TrimSuffix(strings.TrimPrefix(s.Path, pathPrefix), "/"+folderFile)
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
