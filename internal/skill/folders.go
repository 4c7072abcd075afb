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

// Folders of the skills of single persons and rooms.
const (
	usersFolder = "users"
	roomsFolder = "rooms"
)

// reserved reports whether base is the folder of people or rooms. It ignores case, as some file
// systems do.
func reserved(base string) bool {
	return strings.EqualFold(base, usersFolder) || strings.EqualFold(base, roomsFolder)
}

// Readers returns who may read rel, a clean path below the folder of skills.
func Readers(rel string) trust.Readers {
	kind, rest, _ := strings.Cut(rel, "/")
	if !reserved(kind) {
		return trust.Everybody
	}
	name, _, _ := strings.Cut(rest, "/")
	id, ok := store.FileNameID(name)
	switch {
	case ok && kind == usersFolder:
		return trust.PersonReaders(id)
	case ok && kind == roomsFolder:
		return trust.RoomReaders(id)
	}
	return trust.Nobody
}

// Folder returns the folder of a person's or room's skills, below the folder of skills. It is ""
// for other readers, and for an ID too long for a file name.
func Folder(r trust.Readers) string {
	for _, folder := range []string{usersFolder + "/" + store.FileName(r.Person()), roomsFolder + "/" + store.FileName(r.Room())} {
		if r != trust.Nobody && Readers(folder) == r {
			return folder
		}
	}
	return ""
}

// ID identifies the skill: "NAME", "users/PERSON/NAME" or "rooms/ROOM/NAME".
func (s Skill) ID() string { return strings.TrimSuffix(s.RelPath(), ".md") }

// RelPath returns the path below the folder of skills, "NAME.md" or "NAME" for a folder.
func (s Skill) RelPath() string {
	return strings.TrimSuffix(strings.TrimPrefix(s.Path, pathPrefix), "/"+folderFile)
}

// OwnedAt reports whether the person at a place had s written there. Then that person may change
// it.
func (s Skill) OwnedAt(at trust.Place) bool {
	return s.Owner != "" && s.Owner == at.Person && s.Label.Readers == at.Readers()
}

// skillFiles returns the possible paths of the skill id; nil for an invalid ID.
func skillFiles(id string) []string {
	i := strings.LastIndexByte(id, '/')
	folder, name := id[:max(i, 0)], id[i+1:]
	if !namePattern().MatchString(name) || i >= 0 && (folder == "" || Folder(Readers(folder)) != folder) {
		return nil
	}
	return []string{id + ".md", id + "/" + folderFile}
}

// candidate is a file with the name of a skill.
type candidate struct {
	name   string // name of the skill
	folder string // its folder: "", or such as "users/PERSON"
	rel    string // below the folder of skills
}

// candidates lists the files that may be skills, sorted by name. It also lists problems with other
// files.
func (l *Library) candidates() (found []candidate, problems []store.Problem, err error) {
	folders := []string{""}
	for _, kind := range []string{usersFolder, roomsFolder} {
		entries, err := l.readDir(kind)
		if err != nil {
			problems = append(problems, l.reportSkipped(kind, err.Error()))
		}
		for _, e := range entries {
			switch folder := kind + "/" + e.Name(); {
			case e.IsDir() && Folder(Readers(folder)) == folder:
				folders = append(folders, folder)
			case !strings.HasPrefix(e.Name(), "."):
				problems = append(problems, l.reportSkipped(folder, "it is not the folder of a person or a room: "+
					"the name is a Matrix id in which other characters than a-z, 0-9 and @!._- are = and two hex digits"))
			}
		}
	}
	for _, folder := range folders {
		entries, err := l.readDir(folder)
		if err != nil && folder == "" {
			return nil, nil, err
		}
		if err != nil {
			problems = append(problems, l.reportSkipped(folder, err.Error()))
		}
		for _, e := range entries {
			switch c, ok := candidateOf(folder, e); {
			case ok && namePattern().MatchString(c.name):
				found = append(found, c)
			case ok:
				problems = append(problems, l.reportSkipped(path.Join(folder, e.Name()),
					"its name is not that of a skill: use letters, digits, - and _ and the ending .md"))
			}
		}
	}
	// In a folder, NAME.md sorts before NAME/SKILL.md ("." before "/").
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.folder, b.folder), strings.Compare(a.rel, b.rel))
	})
	return found, problems, nil
}

// readDir lists a folder; nil if it does not exist.
func (l *Library) readDir(folder string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(filepath.Join(l.dir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// candidateOf returns the skill that an entry of folder may be; false if it cannot be one.
func candidateOf(folder string, e fs.DirEntry) (candidate, bool) {
	switch base := e.Name(); {
	case strings.HasPrefix(base, "."), folder == "" && reserved(base): // earlier versions, editors' files, other folders
		return candidate{}, false
	case strings.HasSuffix(base, ".md"):
		return candidate{strings.TrimSuffix(base, ".md"), folder, path.Join(folder, base)}, true
	case e.IsDir() || e.Type()&fs.ModeSymlink != 0:
		return candidate{base, folder, path.Join(folder, base, folderFile)}, true
	}
	return candidate{}, false
}
