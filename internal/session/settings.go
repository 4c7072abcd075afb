package session

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/media"
	"reverie/internal/store"
	"reverie/internal/tool"
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

// The settings with commands of their own, and what has any be as by default.
const (
	settingMode    = "mode"
	settingModel   = "model"
	settingThink   = "think"
	settingDefault = "default"
)

// shownSetting is a setting of the room as !config shows it.
type shownSetting struct {
	setting
	value string
	by    string // who decided, and when, or that it is as by default
}

// config is the command !config: it shows the settings of the room, or changes one.
func (s *Session) config(ctx context.Context, in chat.Inbound, args string) (string, error) {
	all, err := s.shownSettings(ctx)
	if err != nil {
		return "", err
	}
	name, value, _ := strings.Cut(args, " ")
	value = strings.TrimLeft(value, "= ")
	if name == "" {
		return s.settingsTable(ctx, all), nil
	}
	i := slices.IndexFunc(all, func(k shownSetting) bool { return strings.EqualFold(k.name, name) })
	switch {
	case i < 0:
		var names []string
		for _, k := range all {
			names = append(names, k.name)
		}
		return sentences(s.text(ctx, "settings.unknown", "name", asWord(name)), s.nearestLine(ctx, name, names, "")), nil
	case value == "":
		return s.oneSetting(ctx, all[i]), nil
	case !tool.Allows(s.level(in), "!config"):
		return s.text(ctx, "settings.owners"), nil
	}
	return s.changeSetting(ctx, in, all[i], value)
}

// shownSettings reads all settings of the room.
func (s *Session) shownSettings(ctx context.Context) ([]shownSetting, error) {
	set, err := s.settings().stored(ctx, s.room)
	if err != nil {
		return nil, err
	}
	var all []shownSetting
	for _, k := range settings() {
		d := set[k.name]
		all = append(all, shownSetting{k, k.is(d.value), s.decidedBy(ctx, d)})
	}
	return all, nil
}

func (m *Manager) settings() Settings { return Settings{DB: m.cfg.DB} }

func (s *Session) decidedBy(ctx context.Context, d decided) string {
	if d.at.IsZero() {
		return s.text(ctx, "settings.default")
	}
	return s.text(ctx, "settings.by", "person", d.person, "at", d.at.In(s.cfg.Location).Format(minute))
}

func (s *Session) settingsTable(ctx context.Context, all []shownSetting) string {
	var b strings.Builder
	b.WriteString(s.text(ctx, "settings.columns") + "\n|---|---|---|---|\n")
	for _, k := range all {
		others := strings.Join(slices.DeleteFunc(slices.Clone(k.values), func(v string) bool { return v == k.value }), ", ")
		value := k.value
		if k.values == nil {
			others = s.possible(ctx, k)
			value = cmp.Or(history.OneLine(value, shownText), s.text(ctx, "settings.none"))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k.name, strings.ReplaceAll(value, "|", `\|`), k.by, strings.ReplaceAll(others, "|", `\|`))
	}
	return b.String() + "\n" + s.text(ctx, "settings.usage")
}

// oneSetting says what a setting is for, and what it can be.
func (s *Session) oneSetting(ctx context.Context, k shownSetting) string {
	return s.text(ctx, "settings.one", "name", k.name, "what", s.text(ctx, "config."+k.name), "value", s.settingValue(ctx, k, k.value, k.most),
		"since", k.by, "values", s.possible(ctx, k))
}

// shownText is how many characters of a text are shown beside other settings.
const shownText = 60

// settingValue is a value of a setting as people are shown it, a text in at most so many characters.
func (s *Session) settingValue(ctx context.Context, k shownSetting, value string, most int) string {
	switch {
	case k.values != nil:
		return asWord(value)
	case value == "":
		return s.text(ctx, "settings.none")
	}
	return asCode(history.OneLine(value, most))
}

// possible says what a setting can be.
func (s *Session) possible(ctx context.Context, k shownSetting) string {
	if k.values == nil {
		return s.text(ctx, "settings.text", "most", strconv.Itoa(k.most))
	}
	return asWords(k.values)
}

// changeSetting has the sender of in, an owner, decide a setting.
func (s *Session) changeSetting(ctx context.Context, in chat.Inbound, k shownSetting, value string) (string, error) {
	reset := strings.EqualFold(value, settingDefault)
	if i := slices.IndexFunc(k.values, func(v string) bool { return strings.EqualFold(v, value) }); i >= 0 {
		value = k.values[i]
	}
	value, ok := k.takes(value)
	switch {
	case reset:
		if err := s.Manager.settings().clear(ctx, s.room, k.name); err != nil {
			return "", err
		}
		return s.text(ctx, "settings.reset", "name", k.name, "value", s.settingValue(ctx, k, k.initial(), shownText)), nil
	case !ok:
		return s.text(ctx, "settings.value", "name", k.name, "value", asWord(value), "values", s.possible(ctx, k)), nil
	}
	if err := s.Manager.settings().Set(ctx, s.room, k.name, value, in.Sender, s.cfg.Now()); err != nil {
		return "", err
	}
	s.log.Info("setting", "name", k.name, "who", in.Sender)
	return s.text(ctx, "settings.set", "name", k.name, "value", s.settingValue(ctx, k, value, shownText)), nil
}

// asWord is a word that somebody wrote, to be shown as it is.
func asWord(word string) string { return asCode(history.OneLine(word, 40)) }

// asCode puts a line of text between marks that have it shown as it is.
func asCode(line string) string { return "`" + strings.ReplaceAll(line, "`", "'") + "`" }

func asWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = asWord(w)
	}
	return strings.Join(out, ", ")
}
