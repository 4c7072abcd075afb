package skill

import (
	"crypto/rand"
	"errors"
	"fmt"
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

// Errors of Import and Trust.
var (
	ErrForm   = errors.New("it is not a skill in the published form")
	ErrExists = errors.New("there is a skill of that name already")
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
	inner, err := root.OpenRoot(folder)
	if err != nil {
		return true, false
	}
	defer inner.Close()
	files, found, err := readTree(inner)
	return true, err == nil && len(found) == 0 && hashFiles(files) == read
}

// readFolder reads and checks the folder of s.
func (l *Library) readFolder(s Skill) (files []File, found []Finding, err error) {
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	inner, err := root.OpenRoot(s.RelPath())
	if err != nil {
		return nil, nil, err
	}
	defer inner.Close()
	files, found, err = readTree(inner)
	return files, append(checkFiles(s.Name, files, !s.imported), found...), err
}

// Import copies a folder, or a file NAME.md, into the library, for everybody or for the readers
// given. It stays foreign until Trust. With faults among found nothing is copied and the error is
// ErrForm. A skill of that name is an error, or is kept as a hidden .NAME.1, .NAME.2 with replace.
func (l *Library) Import(source string, readers trust.Readers, replace bool) (s Skill, found []Finding, err error) {
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
	if err := os.MkdirAll(filepath.Join(l.dir, folder), 0o700); err != nil {
		return Skill{}, found, err
	}
	old, err := l.namesakes(folder, name)
	if err != nil || len(old) > 0 && !replace {
		return Skill{}, found, errors.Join(err, ErrExists)
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return Skill{}, found, err
	}
	defer root.Close()
	temp := path.Join(folder, ".import-"+rand.Text())
	err = writeFolder(root, temp, files)
	if err == nil {
		err = replaceFolder(root, folder, temp, name, old)
	}
	if err != nil {
		return Skill{}, found, errors.Join(fmt.Errorf("skill %s: %w", name, err), root.RemoveAll(temp))
	}
	s, _, _ = l.loadSkill(root, candidate{name, folder, path.Join(folder, name, folderFile)})
	return s, found, nil
}

// namesakes lists what has the name of a skill in a folder. Case is ignored, as by some file systems.
func (l *Library) namesakes(folder, name string) (bases []string, err error) {
	entries, err := l.readDir(folder)
	for _, e := range entries {
		if strings.EqualFold(strings.TrimSuffix(e.Name(), ".md"), name) {
			bases = append(bases, e.Name())
		}
	}
	return bases, err
}

// writeFolder writes files and an empty mark into a new folder, durably.
func writeFolder(root *os.Root, folder string, files []File) error {
	if err := root.Mkdir(folder, 0o700); err != nil {
		return err
	}
	folders := []string{folder}
	for _, f := range slices.Concat([]File{{Path: markFile, Mode: 0o600}}, files) {
		name := path.Join(folder, f.Path)
		if f.Folder() {
			if err := root.Mkdir(name, 0o700); err != nil {
				return err
			}
			folders = append(folders, name)
			continue
		}
		w, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.Mode)
		if err != nil {
			return err
		}
		_, err = w.Write(f.Data)
		if err := errors.Join(err, w.Sync(), w.Close()); err != nil {
			return err
		}
	}
	for _, name := range folders {
		if err := syncFolder(root, name); err != nil {
			return err
		}
	}
	return nil
}

func syncFolder(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// replaceFolder renames temp to name. What was in its place gets a free name .NAME.1, .NAME.2 and so on.
func replaceFolder(root *os.Root, folder, temp, name string, old []string) (err error) {
	n := 1
	for _, base := range old {
		was, kept := path.Join(folder, base), ""
		for ; ; n++ {
			kept = path.Join(folder, fmt.Sprintf(".%s.%d", base, n))
			if _, err := root.Lstat(kept); errors.Is(err, fs.ErrNotExist) {
				break
			} else if err != nil {
				return err
			}
		}
		if err := root.Rename(was, kept); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, root.Rename(kept, was))
			}
		}()
	}
	if err := root.Rename(temp, path.Join(folder, name)); err != nil {
		return err
	}
	return syncFolder(root, path.Join(".", folder))
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

// Review returns all files of a skill from outside for an owner to read, and the hash for Trust.
func (l *Library) Review(id string) (files []File, hash string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.find(id)
	if err != nil {
		return nil, "", err
	}
	if !s.imported {
		return nil, "", ErrByHand
	}
	files, found, err := l.readFolder(s)
	if err == nil && Faulty(found) {
		err = ErrForm
	}
	return files, hashFiles(files), err
}

// Trust notes that an owner has read the skill id with the hash given. Only call it for an owner. A
// skill that has changed meanwhile stays foreign.
func (l *Library) Trust(id, hash string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.find(id)
	if err != nil {
		return err
	}
	if !s.imported {
		return ErrByHand
	}
	return store.WriteFile(filepath.Join(l.dir, s.RelPath(), markFile), []byte(hash+"\n"))
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
