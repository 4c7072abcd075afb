package skill

import (
	"cmp"
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

// listing is what a folder held when it was read last.
type listing struct {
	stamp   store.Stamp
	settled bool // stamp alone tells whether entries is complete
	entries []fs.DirEntry
	fault   error
}

// refreshFolders finds the files again if one of the folders changed.
func (l *Library) refreshFolders() (changed bool, err error) {
	now := l.now()
	stamp, err := store.Stat(l.dir)
	if err != nil {
		return false, fmt.Errorf("skills: %w", err)
	}
	root, reread := l.listing("", stamp, stamp.Settled(now))
	if root.fault != nil {
		return false, fmt.Errorf("skills: %w", root.fault)
	}
	look := func(folder string) *listing {
		stamp, err := store.Stat(filepath.Join(l.dir, filepath.FromSlash(folder)))
		if err != nil {
			stamp = store.Stamp{} // what is wrong shows when it is read
		}
		at, again := l.listing(folder, stamp, stamp.Settled(now))
		reread = reread || again
		return at
	}
	folders := []string{""}
	for _, kind := range []string{usersFolder, roomsFolder} {
		if !slices.ContainsFunc(root.entries, func(e fs.DirEntry) bool { return strings.EqualFold(e.Name(), kind) }) {
			l.listings[kind] = &listing{}
			continue
		}
		for _, e := range look(kind).entries {
			if folder := kind + "/" + e.Name(); isFolder(e, folder) {
				look(folder)
				folders = append(folders, folder)
			}
		}
	}
	if !reread {
		return false, nil
	}
	return l.findFiles(folders), nil
}

// listing is the folder's, read again if its stamp does not tell that nothing changed.
func (l *Library) listing(folder string, stamp store.Stamp, settled bool) (at *listing, reread bool) {
	at = l.listings[folder]
	if at == nil {
		at = &listing{}
		l.listings[folder] = at
	}
	if at.fault == nil && stamp == at.stamp && (at.settled || !stamp.Exists()) {
		return at, false
	}
	entries, err := os.ReadDir(filepath.Join(l.dir, filepath.FromSlash(folder)))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	*at = listing{stamp, settled, entries, err}
	return at, true
}

// isFolder reports whether e is the folder of a person or a room.
func isFolder(e fs.DirEntry, folder string) bool {
	return e.IsDir() && Folder(Readers(folder)) == folder
}

// findFiles makes the list of files anew from the listings of folders.
func (l *Library) findFiles(folders []string) (changed bool) {
	old := map[string]*file{}
	for _, f := range l.files {
		old[f.rel] = f
	}
	l.odd = nil
	l.findStrays()
	var files []*file
	for _, folder := range folders {
		at := l.listings[folder]
		if at.fault != nil {
			l.odd = append(l.odd, l.leftOut(folder, at.fault.Error()))
		}
		for _, e := range at.entries {
			name, rel, ok := l.candidate(folder, e)
			if !ok {
				continue
			}
			f := old[rel]
			if f == nil {
				f = &file{name: name, folder: folder, rel: rel}
			}
			files = append(files, f)
		}
	}
	// In one folder, for one name, the file comes before the folder ("." sorts before "/").
	slices.SortFunc(files, func(a, b *file) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.folder, b.folder), strings.Compare(a.rel, b.rel))
	})
	changed = !slices.Equal(files, l.files)
	l.files = files
	return changed
}

// findStrays reports what lies between the folders of people and rooms.
func (l *Library) findStrays() {
	for _, kind := range []string{usersFolder, roomsFolder} {
		for _, e := range l.listings[kind].entries {
			if folder := kind + "/" + e.Name(); !isFolder(e, folder) && !strings.HasPrefix(e.Name(), ".") {
				l.odd = append(l.odd, l.leftOut(folder, "it is not the folder of a person or a room: "+
					"the name is a Matrix id in which other characters than a-z, 0-9 and @!._- are = and two hex digits"))
			}
		}
	}
}

// candidate tells which skill an entry of folder can be.
func (l *Library) candidate(folder string, e fs.DirEntry) (name, rel string, ok bool) {
	switch base := e.Name(); {
	case strings.HasPrefix(base, "."): // earlier versions, editors' files
		return "", "", false
	case folder == "" && reserved(base):
		return "", "", false
	case strings.HasSuffix(base, ".md"):
		name, rel = strings.TrimSuffix(base, ".md"), base
	case e.IsDir() || e.Type()&fs.ModeSymlink != 0:
		name, rel = base, base+"/"+folderFile
	default:
		return "", "", false
	}
	if !nameForm.MatchString(name) {
		l.odd = append(l.odd, l.leftOut(path.Join(folder, e.Name()), "its name is not that of a skill: use letters, digits, - and _ and the ending .md"))
		return "", "", false
	}
	return name, path.Join(folder, rel), true
}
