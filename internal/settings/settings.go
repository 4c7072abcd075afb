// Package settings stores what people choose for their rooms, in the table room_setting.
//
// modes.go defines the modes. messages.go reads the sentences that the program itself says, in the
// language of a room.
package settings

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"reverie/internal/store"
	"reverie/internal/text"
)

// Setting describes one setting of a room.
type Setting struct {
	Name      string
	Values    []string // allowed values, default first; nil = free text, empty by default
	MaxLength int      // characters of a free text
}

// DefaultValue returns the default of the setting.
func (k Setting) DefaultValue() string {
	if len(k.Values) == 0 {
		return ""
	}
	return k.Values[0]
}

// Normalize returns value as it is stored; ok is false if it is not allowed.
func (k Setting) Normalize(value string) (_ string, ok bool) {
	if k.Values != nil {
		return value, slices.Contains(k.Values, value)
	}
	value = text.Clean(value)
	return value, utf8.RuneCountInString(value) <= k.MaxLength
}

// Effective returns the stored value if it is allowed, else the default.
func (k Setting) Effective(stored string) string {
	if value, ok := k.Normalize(stored); ok && value != "" {
		return value
	}
	return k.DefaultValue()
}

// Names of settings.
const (
	Threads   = "threads"
	Streaming = "streaming"
	Mention   = "mention"
	Listen    = "listen"
	Direct    = "direct"
	Language  = "language"
	Context   = "context"

	Auto = "auto"
)

// MaxContext is the maximum length of the setting Context, in characters.
const MaxContext = 1000

// List holds all settings in the order they are shown.
var List = []Setting{
	{Name: Threads, Values: []string{"auto", "always", "off"}},
	{Name: Streaming, Values: []string{"auto", "on", "off"}},
	{Name: Mention, Values: []string{"needed", "off"}},
	{Name: Listen, Values: []string{"on", "off"}},
	{Name: Direct, Values: []string{"auto", "on", "off"}},
	{Name: Language, Values: append([]string{Auto}, Languages()...)},
	{Name: Context, MaxLength: MaxContext},
}

// Store keeps the settings of rooms in bot.db.
type Store struct {
	DB *store.DB // migrated
}

// Effective returns the value of each setting: what is chosen, or the default if nothing or nothing allowed is.
func Effective(set map[string]Choice) map[string]string {
	all := map[string]string{}
	for _, setting := range List {
		all[setting.Name] = setting.Effective(set[setting.Name].Value)
	}
	return all
}

// Put stores a value, which Normalize returned, chosen by person. Readers ignore one that is not allowed.
func (s Store) Put(ctx context.Context, room, name, value, person string, at time.Time) error {
	return store.Exec(ctx, s.DB, `INSERT INTO room_setting (room, name, value, person, at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (room, name) DO UPDATE SET value = excluded.value, person = excluded.person, at = excluded.at`,
		room, name, value, person, at.UnixMilli())
}

// Choice is a stored value, with who set it and when.
type Choice struct {
	Value, Person string
	At            time.Time
}

// Choices returns all stored values of room by name, also unknown ones.
func (s Store) Choices(ctx context.Context, room string) (map[string]Choice, error) {
	set := map[string]Choice{}
	err := store.Each(ctx, s.DB, func(row store.Row) error {
		var name string
		var d Choice
		var at int64
		err := row.Scan(&name, &d.Value, &d.Person, &at)
		d.At = time.UnixMilli(at)
		set[name] = d
		return err
	}, `SELECT name, value, person, at FROM room_setting WHERE room = ?`, room)
	return set, store.Wrap(err, "settings: read settings")
}

// Clear resets a setting of room to its default.
func (s Store) Clear(ctx context.Context, room, name string) error {
	return store.Exec(ctx, s.DB, `DELETE FROM room_setting WHERE room = ? AND name = ?`, room, name)
}

// Move copies the settings of room from to room to, except those set there.
func (s Store) Move(ctx context.Context, from, to string) error {
	return store.Exec(ctx, s.DB, `INSERT INTO room_setting (room, name, value, person, at)
		SELECT ?, name, value, person, at FROM room_setting WHERE room = ? ON CONFLICT (room, name) DO NOTHING`, to, from)
}

// Names stored by commands of their own, and the word that resets a setting.
const (
	ModeName    = "mode"
	ModelName   = "model"
	PersonaName = "persona"
	ThinkLevel  = "think"
	Default     = "default"
)
