package skill

import (
	"cmp"
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

// The folders that hold the skills of one person or one room each.
const (
	usersFolder = "users"
	roomsFolder = "rooms"
)

// reserved reports whether base, a name in the folder of skills, is that of the folder of
// people or rooms. Case is ignored because some file systems ignore it.
func reserved(base string) bool {
	return strings.EqualFold(base, usersFolder) || strings.EqualFold(base, roomsFolder)
}

// Readers says who may read what lies at rel, a clean path below the folder of skills.
func Readers(rel string) trust.Readers {
	kind, rest, _ := strings.Cut(rel, "/")
	if !reserved(kind) {
		return trust.Everybody
	}
	name, _, _ := strings.Cut(rest, "/")
	id, ok := store.FileNameID(name)
	switch {
	case ok && kind == usersFolder:
		return trust.Person(id)
	case ok && kind == roomsFolder:
		return trust.Room(id)
	}
	return trust.Nobody
}

// Folder is the path, below the folder of skills, of the skills of a person or a room. It is
// "" for other readers, and for an id that is too long for a file name.
func Folder(r trust.Readers) string {
	for _, folder := range []string{usersFolder + "/" + store.FileName(r.Person()), roomsFolder + "/" + store.FileName(r.Room())} {
		if r != trust.Nobody && Readers(folder) == r {
			return folder
		}
	}
	return ""
}

// ID names the skill among all: "NAME", "users/PERSON/NAME" or "rooms/ROOM/NAME".
func (s Skill) ID() string { return strings.TrimSuffix(s.Place(), ".md") }

// Place is where a skill lies in the folder of skills: such as "NAME.md", or "NAME" if it is
// a folder.
func (s Skill) Place() string {
	return strings.TrimSuffix(strings.TrimPrefix(s.Path, pathPrefix), "/"+folderFile)
}

// OwnedAt reports whether who asks at a place had s written there, and so may change it.
func (s Skill) OwnedAt(at trust.Place) bool {
	return s.Owner != "" && s.Owner == at.Person && s.Label.Readers == at.Readers()
}

// filesOf are the paths at which the skill called id may lie; none for what is no id.
func filesOf(id string) []string {
	i := strings.LastIndexByte(id, '/')
	folder, name := id[:max(i, 0)], id[i+1:]
	if !nameForm.MatchString(name) || i >= 0 && (folder == "" || Folder(Readers(folder)) != folder) {
		return nil
	}
	return []string{id + ".md", id + "/" + folderFile}
}

// candidate is a file that is or may become a skill.
type candidate struct {
	name   string // of the skill
	folder string // in which it lies: "", or such as "users/PERSON"
	rel    string // below the folder of skills
}

// candidates finds the files that may be skills, sorted by name, and what else lies there.
func (l *Library) candidates() (found []candidate, odd []store.Problem, err error) {
	folders := []string{""}
	for _, kind := range []string{usersFolder, roomsFolder} {
		entries, err := l.entries(kind)
		if err != nil {
			odd = append(odd, l.leftOut(kind, err.Error()))
		}
		for _, e := range entries {
			switch folder := kind + "/" + e.Name(); {
			case e.IsDir() && Folder(Readers(folder)) == folder:
				folders = append(folders, folder)
			case !strings.HasPrefix(e.Name(), "."):
				odd = append(odd, l.leftOut(folder, "it is not the folder of a person or a room: "+
					"the name is a Matrix id in which other characters than a-z, 0-9 and @!._- are = and two hex digits"))
			}
		}
	}
	for _, folder := range folders {
		entries, err := l.entries(folder)
		if err != nil && folder == "" {
			return nil, nil, err
		}
		if err != nil {
			odd = append(odd, l.leftOut(folder, err.Error()))
		}
		for _, e := range entries {
			switch c, ok := candidateOf(folder, e); {
			case ok && nameForm.MatchString(c.name):
				found = append(found, c)
			case ok:
				odd = append(odd, l.leftOut(path.Join(folder, e.Name()),
					"its name is not that of a skill: use letters, digits, - and _ and the ending .md"))
			}
		}
	}
	// In one folder, for one name, the file comes before the folder ("." sorts before "/").
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.folder, b.folder), strings.Compare(a.rel, b.rel))
	})
	return found, odd, nil
}

// entries is what lies in a folder; nothing if there is no such folder.
func (l *Library) entries(folder string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(filepath.Join(l.dir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// candidateOf tells which skill an entry of folder would be; false if it is none.
func candidateOf(folder string, e fs.DirEntry) (candidate, bool) {
	switch base := e.Name(); {
	case strings.HasPrefix(base, "."), folder == "" && reserved(base): // earlier versions, editors' files; people's and rooms' folders
		return candidate{}, false
	case strings.HasSuffix(base, ".md"):
		return candidate{strings.TrimSuffix(base, ".md"), folder, path.Join(folder, base)}, true
	case e.IsDir() || e.Type()&fs.ModeSymlink != 0:
		return candidate{base, folder, path.Join(folder, base, folderFile)}, true
	}
	return candidate{}, false
}
