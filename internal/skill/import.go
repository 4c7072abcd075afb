package skill

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// markFile marks a folder from outside. It holds the hash of what an owner has read; at first nothing.
const markFile = ".imported"

// Errors of Import and Review.
var (
	ErrForm   = errors.New("it is not a skill in the published form")
	ErrExists = errors.New("there is a skill of that name already; `bot skill remove` deletes it")
	ErrByHand = errors.New("it did not come from outside: it counts as written by hand, or has its origin in its front matter")
)

// readMark reports whether a skill folder came from outside, and whether an owner has read it as it
// is. In doubt it was not read.
func readMark(root *os.Root, folder string) (imported, reviewed bool) {
	mark, err := readIn(root, folder+"/"+markFile, 100)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false
	}
	read := strings.TrimSpace(string(mark))
	if err != nil || read == "" {
		return true, false
	}
	files, found, err := readFolder(root, folder)
	return true, err == nil && len(found) == 0 && hashFiles(files) == read
}

// checkFolder reads and checks the folder of s.
func (l *Library) checkFolder(s Skill) (files []File, found []Finding, err error) {
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	files, found, err = readFolder(root, s.RelPath())
	return files, append(checkFiles(s.Name, files, !s.imported), found...), err
}

// Import copies a folder into the library, for everybody or for the readers given. It stays foreign
// until Review. With faults among found nothing is copied and the error is ErrForm. The error of a name
// that is taken is ErrExists.
func (l *Library) Import(source string, readers trust.Readers) (s Skill, found []Finding, err error) {
	name, files, found, err := readSource(source)
	if err != nil {
		return Skill{}, nil, err
	}
	if Faulty(found) {
		return Skill{}, found, ErrForm
	}
	folder := Folder(readers)
	if folder == "" && readers != trust.Everybody {
		return Skill{}, found, errors.New("no skill can be kept for this person or room: its Matrix id is invalid or too long")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if taken, err := l.taken(folder, name); taken || err != nil {
		return Skill{}, found, cmp.Or(err, ErrExists)
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return Skill{}, found, err
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return Skill{}, found, err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Join(".", folder), 0o700); err != nil {
		return Skill{}, found, err
	}
	temp := path.Join(folder, ".import-"+rand.Text())
	defer root.RemoveAll(temp) //nolint:errcheck // it is hidden
	if err := l.writeFolder(root, temp, files); err != nil {
		return Skill{}, found, err
	}
	if err := root.Rename(temp, path.Join(folder, name)); err != nil {
		return Skill{}, found, err
	}
	s, _, _ = l.loadSkill(root, candidate{name, folder, path.Join(folder, name, folderFile)})
	return s, found, nil
}

// taken reports whether something in a folder has the name of a skill. Case is ignored, as by some file
// systems.
func (l *Library) taken(folder, name string) (bool, error) {
	entries, err := l.readDir(folder)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return strings.EqualFold(strings.TrimSuffix(e.Name(), ".md"), name)
	}), err
}

// writeFolder writes files and an empty mark into a new folder. The mark is durable before anything else is
// there: a folder without one counts as written by hand.
func (l *Library) writeFolder(root *os.Root, folder string, files []File) error {
	err := root.Mkdir(folder, 0o700)
	if err == nil {
		err = store.WriteFile(filepath.Join(l.dir, folder, markFile), nil)
	}
	for _, f := range files {
		switch name := path.Join(folder, f.Path); {
		case err != nil:
			return err
		case f.Folder():
			err = root.Mkdir(name, 0o700)
		default:
			err = root.WriteFile(name, f.Data, f.Mode)
		}
	}
	return err
}

// find returns the skill id, as Skill.ID names it.
func (l *Library) find(id string) (Skill, error) {
	skills, _, err := l.scan()
	if err != nil {
		return Skill{}, err
	}
	i := slices.IndexFunc(skills, func(s Skill) bool { return s.ID() == id })
	if i < 0 {
		return Skill{}, ErrUnknown
	}
	return skills[i], nil
}

// Review returns all files of a skill from outside for an owner to read, and what notes that an owner
// has read exactly these.
func (l *Library) Review(id string) (files []File, trust func() error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.find(id)
	if err != nil {
		return nil, nil, err
	}
	if !s.imported {
		return nil, nil, ErrByHand
	}
	files, found, err := l.checkFolder(s)
	if err == nil && Faulty(found) {
		err = ErrForm
	}
	mark := filepath.Join(l.dir, s.RelPath(), markFile)
	return files, func() error { return store.WriteFile(mark, []byte(hashFiles(files)+"\n")) }, err
}

// Remove deletes the skill id with all its files. Earlier versions beside it stay.
func (l *Library) Remove(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.find(id)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.RemoveAll(s.RelPath())
}

// Integrity returns the integrity of a file or folder below the folder of skills, for a place: that of
// the skill that it belongs to. Without one, it is foreign.
func (l *Library) Integrity(at trust.Place, rel string) trust.Integrity {
	skills, err := l.List(at)
	if err != nil {
		return trust.Foreign
	}
	for _, s := range skills {
		own := s.RelPath()
		if rel == own || strings.HasPrefix(rel, own+"/") && s.Path != pathPrefix+own {
			return s.Label.Integrity
		}
	}
	return trust.Foreign
}
