package skill

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Why a skill is not shared.
var (
	ErrUnknown = errors.New("there is no such skill here")
	ErrShared  = errors.New("the skill is everybody's already")
	ErrTaken   = errors.New("everybody's skills have one of that name already")
	ErrFront   = errors.New("its front matter cannot be changed by a program")
)

// Share makes the skill of a name that is visible at a place everybody's, with the integrity of
// an owner: call it for an owner, who vouches for it. Its earlier versions stay where they are.
func (l *Library) Share(at trust.Place, name string) (Skill, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.share(at, name)
	return s, store.Wrap(err, "skill %s", name)
}

func (l *Library) share(at trust.Place, name string) (Skill, error) {
	s, err := l.sharable(at, name)
	if err != nil {
		return Skill{}, err
	}
	rel := strings.TrimPrefix(s.Path, pathPrefix)
	old, err := l.read(rel, math.MaxInt64)
	if err != nil {
		return Skill{}, err
	}
	text, ok := relabel(old, trust.Owner)
	if !ok {
		return Skill{}, ErrFront
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return Skill{}, err
	}
	defer root.Close()
	file := filepath.Join(l.dir, rel)
	if err := keep(file, old); err != nil {
		return Skill{}, err
	}
	if err := store.WriteFile(file, text); err != nil {
		return Skill{}, err
	}
	to := strings.TrimPrefix(rel, Folder(s.Label.Readers)+"/")
	return newSkill(s.Name, to, readHead(text)), root.Rename(s.Place(), path.Base(s.Place()))
}

// sharable is the skill of a name that may become everybody's.
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
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return Skill{}, fmt.Errorf("skills: %w", err)
	}
	for _, e := range entries {
		if strings.EqualFold(strings.TrimSuffix(e.Name(), ".md"), name) {
			return Skill{}, ErrTaken
		}
	}
	return found, nil
}

// Move gives the skills of one room to another, with their earlier versions. What the other
// room has under the same name already stays, and the old room's, too. It can be repeated.
func (l *Library) Move(from, to string) error {
	old, now := Folder(trust.Room(from)), Folder(trust.Room(to))
	if old == "" || now == "" || old == now {
		return nil // the old room can have none, or the new one
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return store.Wrap(l.move(old, now), "skills: move room")
}

func (l *Library) move(from, to string) error {
	entries, err := l.entries(from)
	if err != nil || len(entries) == 0 {
		return err
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := root.Lstat(to + "/" + e.Name()); err == nil {
			continue
		}
		if err := root.Rename(from+"/"+e.Name(), to+"/"+e.Name()); err != nil {
			return err
		}
	}
	return nil
}
