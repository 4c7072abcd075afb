package skill

import (
	"errors"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Errors of Share.
var (
	ErrUnknown     = errors.New("there is no such skill here")
	ErrShared      = errors.New("the skill is everybody's already")
	ErrTaken       = errors.New("everybody's skills have one of that name already")
	ErrFrontMatter = errors.New("its front matter cannot be changed by a program")
	ErrUnreviewed  = errors.New("it came from outside and no owner has read it yet")
)

// Share publishes a skill visible at a place to everyone. The skill gets the integrity of an owner.
// Only call it for an owner, who vouches for it. Earlier versions stay in the old folder.
func (l *Library) Share(at trust.Place, name string) (s Skill, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { err = store.Wrap(err, "skill %s", name) }()
	s, err = l.sharable(at, name)
	if err != nil {
		return Skill{}, err
	}
	rel := strings.TrimPrefix(s.Path, pathPrefix)
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return Skill{}, err
	}
	defer root.Close()
	if s.Unreviewed {
		return Skill{}, ErrUnreviewed
	}
	if s.imported { // an owner has read it; a change would make it foreign again
		from := s.RelPath()
		s.Path, s.Label.Readers = pathPrefix+s.Name+"/"+folderFile, trust.Everybody
		return s, root.Rename(from, s.Name)
	}
	old, err := l.readFile(rel, math.MaxInt64)
	if err != nil {
		return Skill{}, err
	}
	text, ok := relabel(old, trust.Owner)
	if !ok {
		return Skill{}, ErrFrontMatter
	}
	file := filepath.Join(l.dir, rel)
	if err := saveVersion(file, old); err != nil {
		return Skill{}, err
	}
	if err := store.WriteFile(file, text); err != nil {
		return Skill{}, err
	}
	to := strings.TrimPrefix(rel, Folder(s.Label.Readers)+"/")
	return newSkill(s.Name, to, readHead(text)), root.Rename(s.RelPath(), path.Base(s.RelPath()))
}

// sharable returns the skill name if it can be shared.
func (l *Library) sharable(at trust.Place, name string) (Skill, error) {
	visible, err := l.visible(at)
	if err != nil {
		return Skill{}, err
	}
	found, err := Skill{}, ErrUnknown
	for _, s := range visible {
		switch {
		case s.Name != name:
		case s.Label.Readers == trust.Everybody:
			err = ErrShared
		default:
			found = s
		}
	}
	if found.Name == "" {
		return Skill{}, err
	}
	taken, err := l.taken("", name)
	if taken {
		err = ErrTaken
	}
	return found, err
}

// Move moves the skills of a room, with their earlier versions, to another. Names that exist there
// stay in the old folder. It is idempotent.
func (l *Library) Move(from, to string) error {
	old, now := Folder(trust.RoomReaders(from)), Folder(trust.RoomReaders(to))
	if old == "" || now == "" || old == now {
		return nil // one of the rooms cannot have skills
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return store.Wrap(store.MoveEntries(l.dir, old, now), "skills: move room")
}
