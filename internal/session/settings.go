package session

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reverie/internal/media"
	"reverie/internal/store"
)

// setting is one thing that people may decide for a room.
type setting struct {
	name   string
	values []string // what it can be; the first one is the default. nil = a text, by default none
	most   int      // characters of the text
}

// initial is what a setting is by default.
func (k setting) initial() string {
	if len(k.values) == 0 {
		return ""
	}
	return k.values[0]
}

// takes returns value as it is stored; ok is false if the setting cannot be that.
func (k setting) takes(value string) (_ string, ok bool) {
	if k.values != nil {
		return value, slices.Contains(k.values, value)
	}
	value = strings.TrimSpace(media.Clean(value))
	return value, utf8.RuneCountInString(value) <= k.most
}

// is what a setting is of which stored was kept; "" = nothing was.
func (k setting) is(stored string) string {
	if value, ok := k.takes(stored); ok && value != "" {
		return value
	}
	return k.initial()
}

// The settings that the transport asks for too.
const (
	SettingThreads   = "threads"
	SettingStreaming = "streaming"
	SettingMention   = "mention"
	SettingListen    = "listen"
	SettingDirect    = "direct"
	SettingLanguage  = "language"
	SettingContext   = "context"

	settingAuto = "auto"
)

// maxContext is how many characters what a room is about may have.
const maxContext = 1000

// settings lists what can be set for a room, in the order it is shown.
func settings() []setting {
	return []setting{
		{name: SettingThreads, values: []string{"auto", "always", "off"}},
		{name: SettingStreaming, values: []string{"auto", "on", "off"}},
		{name: SettingMention, values: []string{"needed", "off"}},
		{name: SettingListen, values: []string{"on", "off"}},
		{name: SettingDirect, values: []string{"auto", "on", "off"}},
		{name: SettingLanguage, values: append([]string{settingAuto}, Languages()...)},
		{name: SettingContext, most: maxContext},
	}
}

func settingNamed(name string) (setting, error) {
	for _, k := range settings() {
		if k.name == name {
			return k, nil
		}
	}
	return setting{}, fmt.Errorf("session: there is no setting %q", name)
}

// Settings keeps what people have set for their rooms, in bot.db.
type Settings struct {
	DB *sql.DB // migrated
}

// Get returns what the setting name is in room: what was set there, else its
// default. A value that there is no more counts as not set.
func (s Settings) Get(ctx context.Context, room, name string) (string, error) {
	known, err := settingNamed(name)
	if err != nil {
		return "", err
	}
	d, err := s.decided(ctx, room, name)
	return known.is(d.value), err
}

// Person is who set the setting name of room; empty if nobody has.
func (s Settings) Person(ctx context.Context, room, name string) (string, error) {
	d, err := s.decided(ctx, room, name)
	return d.person, err
}

// All is Get for each setting there is.
func (s Settings) All(ctx context.Context, room string) (map[string]string, error) {
	set, err := s.stored(ctx, room)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, known := range settings() {
		all[known.name] = known.is(set[known.name].value)
	}
	return all, nil
}

// Set has person decide what the setting name is in room.
func (s Settings) Set(ctx context.Context, room, name, value, person string, at time.Time) error {
	known, err := settingNamed(name)
	if err != nil {
		return err
	}
	value, ok := known.takes(value)
	switch {
	case !ok && known.values == nil:
		return fmt.Errorf("session: %s is too long, write at most %d characters", name, known.most)
	case !ok:
		return fmt.Errorf("session: %s cannot be %q, only %s", name, value, strings.Join(known.values, ", "))
	}
	return s.put(ctx, room, name, value, person, at)
}

// put stores a setting.
func (s Settings) put(ctx context.Context, room, name, value, person string, at time.Time) error {
	_, err := s.DB.ExecContext(ctx, `INSERT INTO room_setting (room, name, value, person, at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (room, name) DO UPDATE SET value = excluded.value, person = excluded.person, at = excluded.at`,
		room, name, value, person, at.UnixMilli())
	if err != nil {
		return fmt.Errorf("session: store a setting: %w", err)
	}
	return nil
}

// decided is what somebody has set for a room.
type decided struct {
	value, person string
	at            time.Time
}

// stored reads all that was set for room, by name, whatever it is.
func (s Settings) stored(ctx context.Context, room string) (map[string]decided, error) {
	set := map[string]decided{}
	err := store.Each(ctx, s.DB, func(row store.Row) error {
		var name string
		var d decided
		var at int64
		err := row.Scan(&name, &d.value, &d.person, &at)
		d.at = time.UnixMilli(at)
		set[name] = d
		return err
	}, `SELECT name, value, person, at FROM room_setting WHERE room = ?`, room)
	if err != nil {
		return nil, fmt.Errorf("session: read settings: %w", err)
	}
	return set, nil
}

// decided reads what was set for room as name, whatever it is; zero = nothing.
func (s Settings) decided(ctx context.Context, room, name string) (decided, error) {
	set, err := s.stored(ctx, room)
	return set[name], err
}

// clear makes the setting name of room as it is by default.
func (s Settings) clear(ctx context.Context, room, name string) error {
	if _, err := s.DB.ExecContext(ctx, `DELETE FROM room_setting WHERE room = ? AND name = ?`, room, name); err != nil {
		return fmt.Errorf("session: store a setting: %w", err)
	}
	return nil
}

// move gives room the settings of the room from, where it has none of its own.
func (s Settings) move(ctx context.Context, from, to string) error {
	_, err := s.DB.ExecContext(ctx, `INSERT INTO room_setting (room, name, value, person, at)
		SELECT ?, name, value, person, at FROM room_setting WHERE room = ? ON CONFLICT (room, name) DO NOTHING`, to, from)
	if err != nil {
		return fmt.Errorf("session: move settings: %w", err)
	}
	return nil
}
