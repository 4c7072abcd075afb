// Package profile keeps what each person says about themselves: a file for each, which they may edit.
package profile

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reverie/internal/i18n"
	"reverie/internal/lazyregexp"
	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// Zone is the field with the time zone of the person's direct chats.
const Zone = "time zone"

// Fields lists the names of the fields in the order in which they are shown.
var Fields = []string{"name", "form of address", "place", Zone, "occupation", "interests", "goals"}

const maxValue = 400 // characters

// Store reads and changes profiles. It keeps nothing, so that edits of the files count at once.
type Store struct {
	Dir      string         // the data folder
	Location *time.Location // the usual time zone
}

// Fault is a line that does not count, and why.
type Fault struct {
	Line int // from 1
	Why  i18n.Text
}

// RelativePath returns the path of a person's file, relative to the data folder. It has forward slashes and need not exist.
func RelativePath(person string) string {
	return "memories/users/" + store.FileName(person) + "/profile.txt"
}

func (s Store) path(person string) string { return filepath.Join(s.Dir, RelativePath(person)) }

// PersonalOrUsualZone returns the time zone for readers: the person's of a direct chat, else the usual one.
func (s Store) PersonalOrUsualZone(readers trust.Readers) *time.Location {
	values, _, _ := s.Read(readers.Person()) // `bot doctor` reports faults
	if zone := values[Zone]; zone != "" {
		return location(zone)
	}
	return s.Location
}

// Read returns the fields of a person that are set, and the lines that do not count. An empty person has none.
func (s Store) Read(person string) (values map[string]string, faults []Fault, err error) {
	data, err := os.ReadFile(s.path(person))
	switch {
	case person == "" || errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	values = map[string]string{}
	for i, line := range strings.Split(string(data), "\n") {
		field, value := split(line)
		switch value, err := validate(field, value); {
		case err != nil:
			faults = append(faults, Fault{i + 1, i18n.FromError(err)})
		case values[field] == "":
			values[field] = value
		case value != "":
			faults = append(faults, Fault{i + 1, i18n.New("profile.twice")})
		}
	}
	return values, faults, nil
}

// split splits a line "field: value". A comment has neither.
func split(line string) (field, value string) {
	if line = oneLine(line); strings.HasPrefix(line, "#") {
		return "", ""
	}
	field, value, _ = strings.Cut(line, ":")
	return strings.TrimSpace(strings.ToLower(field)), strings.TrimSpace(value)
}

func oneLine(s string) string { return strings.Join(strings.Fields(text.Clean(s)), " ") }

// validate returns a value as it is used. Its error, an i18n.Text, does not repeat the words, because it is logged.
func validate(field, value string) (string, error) {
	switch {
	case field+value != "" && !slices.Contains(Fields, field):
		return "", i18n.New("profile.unknown", "names", strings.Join(Fields, ", "))
	case utf8.RuneCountInString(value) > maxValue:
		return "", i18n.New("profile.long", "most", maxValue)
	case field == Zone && value != "":
		if zone := location(value); zone != nil {
			return zone.String(), nil
		}
		return "", i18n.New("profile.zone")
	}
	return value, nil
}

// initials matches the first letter of each word in the name of a time zone.
var initials = lazyregexp.New(`(^|[/_])\pL`)

// location returns the time zone called name, or of the city name; nil = none. "Local" depends on the machine.
func location(name string) *time.Location {
	name = initials().ReplaceAllStringFunc(strings.ReplaceAll(name, " ", "_"), strings.ToUpper)
	for _, area := range []string{"", "Europe/", "America/", "Asia/", "Africa/", "Australia/", "Pacific/", "Atlantic/", "Indian/"} {
		zone, err := time.LoadLocation(area + name)
		if err == nil && zone != time.Local {
			return zone
		}
	}
	return nil
}

// Set sets a field of a person and returns the value as it is used; an empty value removes it. All other lines stay
// as they are. An i18n.Text as error is meant for the person.
func (s Store) Set(person, field, value string) (string, error) {
	value, err := validate(field, oneLine(value))
	if err != nil {
		return "", err
	}
	file := s.path(person)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		data = []byte("# What you say about yourself, a line \"field: value\" each: " + strings.Join(Fields, ", ") + ".\n")
	} else if err != nil {
		return "", err
	}
	all := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	sets := func(line string) bool { name, _ := split(line); return name == field }
	at := slices.IndexFunc(all, sets)
	if at < 0 {
		at = len(all)
	}
	all = slices.DeleteFunc(all, sets)
	if value != "" {
		all = slices.Insert(all, at, field+": "+value)
	}
	return value, store.WriteFile(file, []byte(strings.Join(all, "\n")+"\n"))
}

// Forget deletes a person's file, if there is one.
func (s Store) Forget(person string) error { return os.RemoveAll(s.path(person)) }

// Problems lists what does not count in all files.
func (s Store) Problems() (all []store.Problem) {
	files, _ := fs.Glob(os.DirFS(s.Dir), "memories/users/*/profile.txt") // the pattern is valid
	for _, file := range files {
		person, _ := store.FileNameID(path.Base(path.Dir(file))) // none, if the name was too long
		_, faults, err := s.Read(person)
		if err != nil {
			faults = []Fault{{0, i18n.FromError(err)}}
		}
		for _, f := range faults {
			all = append(all, store.Problem{File: file, Line: f.Line, Text: f.Why.String()})
		}
	}
	return all
}
