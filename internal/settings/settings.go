// Package settings holds what people decide for their rooms, in the table room_setting: settings,
// the mode, and the language. modes.go is what the modes are; messages.go reads the sentences that
// the program says by itself.
package settings

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reverie/internal/store"
	"reverie/internal/text"
)

// Setting is one thing that people may decide for a room.
type Setting struct {
	Name   string
	Values []string // what it can be; the first one is the default. nil = a text, by default none
	Most   int      // characters of the text
}

// Initial is what a setting is by default.
func (k Setting) Initial() string {
	if len(k.Values) == 0 {
		return ""
	}
	return k.Values[0]
}

// Takes returns value as it is stored; ok is false if the setting cannot be that.
func (k Setting) Takes(value string) (_ string, ok bool) {
	if k.Values != nil {
		return value, slices.Contains(k.Values, value)
	}
	value = text.Clean(value)
	return value, utf8.RuneCountInString(value) <= k.Most
}

// Of is what a setting is of which stored was kept; "" = nothing was.
func (k Setting) Of(stored string) string {
	if value, ok := k.Takes(stored); ok && value != "" {
		return value
	}
	return k.Initial()
}

// The settings that the transport asks for too.
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

// MaxContext is how many characters what a room is about may have.
const MaxContext = 1000

// List lists what can be set for a room, in the order it is shown.
func List() []Setting {
	return []Setting{
		{Name: Threads, Values: []string{"auto", "always", "off"}},
		{Name: Streaming, Values: []string{"auto", "on", "off"}},
		{Name: Mention, Values: []string{"needed", "off"}},
		{Name: Listen, Values: []string{"on", "off"}},
		{Name: Direct, Values: []string{"auto", "on", "off"}},
		{Name: Language, Values: append([]string{Auto}, Languages()...)},
		{Name: Context, Most: MaxContext},
	}
}

func settingNamed(name string) (Setting, error) {
	for _, k := range List() {
		if k.Name == name {
			return k, nil
		}
	}
	return Setting{}, fmt.Errorf("settings: there is no setting %q", name)
}

// Store keeps what people have set for their rooms, in bot.db.
type Store struct {
	DB *sql.DB // migrated
}

// Get returns what the setting name is in room: what was set there, else its
// default. A value that there is no more counts as not set.
func (s Store) Get(ctx context.Context, room, name string) (string, error) {
	known, err := settingNamed(name)
	if err != nil {
		return "", err
	}
	d, err := s.Decided(ctx, room, name)
	return known.Of(d.Value), err
}

// All is Get for each setting there is.
func (s Store) All(ctx context.Context, room string) (map[string]string, error) {
	set, err := s.Stored(ctx, room)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, known := range List() {
		all[known.Name] = known.Of(set[known.Name].Value)
	}
	return all, nil
}

// Set has person decide what the setting name is in room.
func (s Store) Set(ctx context.Context, room, name, value, person string, at time.Time) error {
	known, err := settingNamed(name)
	if err != nil {
		return err
	}
	value, ok := known.Takes(value)
	switch {
	case !ok && known.Values == nil:
		return fmt.Errorf("settings: %s is too long, write at most %d characters", name, known.Most)
	case !ok:
		return fmt.Errorf("settings: %s cannot be %q, only %s", name, value, strings.Join(known.Values, ", "))
	}
	return s.Put(ctx, room, name, value, person, at)
}

// Put stores a setting.
func (s Store) Put(ctx context.Context, room, name, value, person string, at time.Time) error {
	_, err := s.DB.ExecContext(ctx, `INSERT INTO room_setting (room, name, value, person, at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (room, name) DO UPDATE SET value = excluded.value, person = excluded.person, at = excluded.at`,
		room, name, value, person, at.UnixMilli())
	return store.Wrap(err, "settings: store a setting")
}

// Decided is what somebody has set for a room.
type Decided struct {
	Value, Person string
	At            time.Time
}

// Stored reads all that was set for room, by name, whatever it is.
func (s Store) Stored(ctx context.Context, room string) (map[string]Decided, error) {
	set := map[string]Decided{}
	err := store.Each(ctx, s.DB, func(row store.Row) error {
		var name string
		var d Decided
		var at int64
		err := row.Scan(&name, &d.Value, &d.Person, &at)
		d.At = time.UnixMilli(at)
		set[name] = d
		return err
	}, `SELECT name, value, person, at FROM room_setting WHERE room = ?`, room)
	return set, store.Wrap(err, "settings: read settings")
}

// Decided reads what was set for room as name, whatever it is; zero = nothing.
func (s Store) Decided(ctx context.Context, room, name string) (Decided, error) {
	set, err := s.Stored(ctx, room)
	return set[name], err
}

// Clear makes the setting name of room as it is by default.
func (s Store) Clear(ctx context.Context, room, name string) error {
	_, err := s.DB.ExecContext(ctx, `DELETE FROM room_setting WHERE room = ? AND name = ?`, room, name)
	return store.Wrap(err, "settings: store a setting")
}

// Move gives room the settings of the room from, where it has none of its own.
func (s Store) Move(ctx context.Context, from, to string) error {
	_, err := s.DB.ExecContext(ctx, `INSERT INTO room_setting (room, name, value, person, at)
		SELECT ?, name, value, person, at FROM room_setting WHERE room = ? ON CONFLICT (room, name) DO NOTHING`, to, from)
	return store.Wrap(err, "settings: move settings")
}

// The settings with commands of their own, and what has any be as by default.
const (
	ModeName   = "mode"
	ModelName  = "model"
	ThinkLevel = "think"
	Default    = "default"
)
