package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reverie/internal/history"
	"reverie/internal/tool"
)

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
func (s *Session) config(ctx context.Context, in Inbound, args string) (string, error) {
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
	switch {
	case d.at.IsZero():
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
func (s *Session) changeSetting(ctx context.Context, in Inbound, k shownSetting, value string) (string, error) {
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
