package session

import (
	"cmp"
	"context"
	"fmt"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/settings"
	"reverie/internal/tool"
	"slices"
	"strconv"
	"strings"
)

// shownSetting is a setting of the room as !config shows it.
type shownSetting struct {
	settings.Setting
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
	i := slices.IndexFunc(all, func(k shownSetting) bool { return strings.EqualFold(k.Name, name) })
	switch {
	case i < 0:
		var names []string
		for _, k := range all {
			names = append(names, k.Name)
		}
		return i18n.Sentences(s.text(ctx, "settings.unknown", "name", asWord(name)), s.nearestLine(ctx, name, names, "")), nil
	case value == "":
		return s.oneSetting(ctx, all[i]), nil
	case !tool.Allows(s.level(in), "!config"):
		return s.text(ctx, "settings.owners"), nil
	}
	return s.changeSetting(ctx, in, all[i], value)
}

// shownSettings reads all settings of the room.
func (s *Session) shownSettings(ctx context.Context) ([]shownSetting, error) {
	set, err := s.settings().Stored(ctx, s.room)
	if err != nil {
		return nil, err
	}
	var all []shownSetting
	for _, k := range settings.List() {
		d := set[k.Name]
		all = append(all, shownSetting{k, k.Of(d.Value), s.decidedBy(ctx, d)})
	}
	return all, nil
}

func (m *Manager) settings() settings.Store { return settings.Store{DB: m.cfg.DB} }

func (s *Session) decidedBy(ctx context.Context, d settings.Decided) string {
	if d.At.IsZero() {
		return s.text(ctx, "settings.default")
	}
	return s.text(ctx, "settings.by", "person", d.Person, "at", d.At.In(s.cfg.Location).Format(minute))
}

func (s *Session) settingsTable(ctx context.Context, all []shownSetting) string {
	var b strings.Builder
	b.WriteString(s.text(ctx, "settings.columns") + "\n|---|---|---|---|\n")
	for _, k := range all {
		others := strings.Join(slices.DeleteFunc(slices.Clone(k.Values), func(v string) bool { return v == k.value }), ", ")
		value := k.value
		if k.Values == nil {
			others = s.possible(ctx, k)
			value = cmp.Or(history.OneLine(value, shownText), s.text(ctx, "settings.none"))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k.Name, strings.ReplaceAll(value, "|", `\|`), k.by, strings.ReplaceAll(others, "|", `\|`))
	}
	return b.String() + "\n" + s.text(ctx, "settings.usage")
}

// oneSetting says what a setting is for, and what it can be.
func (s *Session) oneSetting(ctx context.Context, k shownSetting) string {
	return s.text(ctx, "settings.one", "name", k.Name, "what", s.text(ctx, "config."+k.Name), "value", s.settingValue(ctx, k, k.value, k.Most),
		"since", k.by, "values", s.possible(ctx, k))
}

// shownText is how many characters of a text are shown beside other settings.
const shownText = 60

// settingValue is a value of a setting as people are shown it, a text in at most so many characters.
func (s *Session) settingValue(ctx context.Context, k shownSetting, value string, most int) string {
	switch {
	case k.Values != nil:
		return asWord(value)
	case value == "":
		return s.text(ctx, "settings.none")
	}
	return asCode(history.OneLine(value, most))
}

// possible says what a setting can be.
func (s *Session) possible(ctx context.Context, k shownSetting) string {
	if k.Values == nil {
		return s.text(ctx, "settings.text", "most", strconv.Itoa(k.Most))
	}
	return asWords(k.Values)
}

// changeSetting has the sender of in, an owner, decide a setting.
func (s *Session) changeSetting(ctx context.Context, in chat.Inbound, k shownSetting, value string) (string, error) {
	reset := strings.EqualFold(value, settings.Default)
	if i := slices.IndexFunc(k.Values, func(v string) bool { return strings.EqualFold(v, value) }); i >= 0 {
		value = k.Values[i]
	}
	value, ok := k.Takes(value)
	switch {
	case reset:
		if err := s.Manager.settings().Clear(ctx, s.room, k.Name); err != nil {
			return "", err
		}
		return s.text(ctx, "settings.reset", "name", k.Name, "value", s.settingValue(ctx, k, k.Initial(), shownText)), nil
	case !ok:
		return s.text(ctx, "settings.value", "name", k.Name, "value", asWord(value), "values", s.possible(ctx, k)), nil
	}
	if err := s.Manager.settings().Set(ctx, s.room, k.Name, value, in.Sender, s.cfg.Now()); err != nil {
		return "", err
	}
	s.log.Info("setting", "name", k.Name, "who", in.Sender)
	return s.text(ctx, "settings.set", "name", k.Name, "value", s.settingValue(ctx, k, value, shownText)), nil
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
