package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/tool"
)

// settingMode and settingModel are kept elsewhere than the other settings, or can be
// what the configuration says.
const (
	settingMode    = "mode"
	settingModel   = "model"
	settingDefault = "default"
)

// shownSetting is a setting of the room as !config shows it.
type shownSetting struct {
	name, value string
	by          string   // who decided, and when; "" = it is as by default
	values      []string // what it can be
}

// config is the command !config: it shows the settings of the room, or changes one.
func (s *Session) config(ctx context.Context, in Inbound, args string) (string, error) {
	all, err := s.shownSettings(ctx)
	if err != nil {
		return "", err
	}
	words := strings.Fields(strings.ReplaceAll(args, "=", " "))
	if len(words) == 0 {
		return s.settingsTable(ctx, all), nil
	}
	i := slices.IndexFunc(all, func(k shownSetting) bool { return strings.EqualFold(k.name, words[0]) })
	switch {
	case i < 0:
		var names []string
		for _, k := range all {
			names = append(names, k.name)
		}
		return sentences(s.text(ctx, "settings.unknown", "name", asWord(words[0])), s.nearestLine(ctx, words[0], names, "")), nil
	case len(words) == 1:
		return s.oneSetting(ctx, all[i]), nil
	case !tool.Allows(s.level(in), "!config"):
		return s.text(ctx, "settings.owners"), nil
	}
	return s.changeSetting(ctx, in, all[i], strings.Join(words[1:], " "))
}

// shownSettings reads all settings of the room.
func (s *Session) shownSettings(ctx context.Context) ([]shownSetting, error) {
	now, err := s.mode(ctx)
	if err != nil {
		return nil, err
	}
	mode := shownSetting{name: settingMode, value: now.name, values: append(Modes(), settingAuto)}
	if now.auto {
		mode.value += " (" + settingAuto + ")"
	}
	past, err := s.switches(ctx, 1)
	if err != nil {
		return nil, err
	}
	if len(past) > 0 && past[0].to == now.name {
		mode.by = s.decidedBy(ctx, decided{person: past[0].who, at: past[0].at})
	}
	model, err := s.Manager.settings().decided(ctx, s.room, settingModel)
	if err != nil {
		return nil, err
	}
	all := []shownSetting{mode, {name: settingModel, value: s.firstModel(now.role), values: s.cfg.Models.Names(), by: s.decidedBy(ctx, model)}}
	for _, k := range settings() {
		value, err := s.Manager.settings().Get(ctx, s.room, k.name)
		if err != nil {
			return nil, err
		}
		d, err := s.Manager.settings().decided(ctx, s.room, k.name)
		if err != nil {
			return nil, err
		}
		if d.value != value { // of another release
			d = decided{}
		}
		all = append(all, shownSetting{name: k.name, value: value, values: k.values, by: s.decidedBy(ctx, d)})
	}
	return all, nil
}

func (m *Manager) settings() Settings { return Settings{DB: m.cfg.DB} }

func (s *Session) decidedBy(ctx context.Context, d decided) string {
	switch {
	case d.at.IsZero():
		return ""
	case d.person == "":
		return s.text(ctx, "settings.self", "at", d.at.In(s.cfg.Location).Format(minute))
	}
	return s.text(ctx, "settings.by", "person", d.person, "at", d.at.In(s.cfg.Location).Format(minute))
}

// since is who decided, or that nobody has.
func (s *Session) since(ctx context.Context, k shownSetting) string {
	if k.by == "" {
		return s.text(ctx, "settings.default")
	}
	return k.by
}

func (s *Session) settingsTable(ctx context.Context, all []shownSetting) string {
	var b strings.Builder
	b.WriteString(s.text(ctx, "settings.columns") + "\n|---|---|---|---|\n")
	for _, k := range all {
		others := slices.DeleteFunc(slices.Clone(k.values), func(v string) bool { return v == k.value })
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k.name, strings.ReplaceAll(k.value, "|", `\|`), s.since(ctx, k), strings.ReplaceAll(strings.Join(others, ", "), "|", `\|`))
	}
	return b.String() + "\n" + s.text(ctx, "settings.usage")
}

// oneSetting says what a setting is for, and what it can be.
func (s *Session) oneSetting(ctx context.Context, k shownSetting) string {
	return s.text(ctx, "settings.one", "name", k.name, "what", s.text(ctx, s.settingKey(k.name)), "value", asWord(k.value), "since", s.since(ctx, k), "values", asWords(k.values))
}

func (s *Session) settingKey(name string) string {
	if name == settingMode || name == settingModel {
		return "settings." + name
	}
	return "config." + name
}

// changeSetting has the sender of in, an owner, decide a setting.
func (s *Session) changeSetting(ctx context.Context, in Inbound, k shownSetting, value string) (string, error) {
	reset := strings.EqualFold(value, settingDefault)
	switch k.name {
	case settingMode:
		if reset {
			value = modes[0].name
		}
		return s.changeMode(ctx, in, value)
	case settingModel:
		return s.chooseModel(ctx, in, value)
	}
	i := slices.IndexFunc(k.values, func(v string) bool { return strings.EqualFold(v, value) })
	if k.name == SettingLanguage && s.cfg.Spoken != nil {
		defer s.cfg.Spoken()
	}
	switch {
	case reset:
		if err := s.Manager.settings().clear(ctx, s.room, k.name); err != nil {
			return "", err
		}
		return s.text(ctx, "settings.reset", "name", k.name, "value", asWord(k.values[0])), nil
	case i < 0:
		return s.text(ctx, "settings.value", "name", k.name, "value", asWord(value), "values", asWords(k.values)), nil
	}
	if err := s.Manager.settings().Set(ctx, s.room, k.name, k.values[i], in.Sender, s.cfg.Now()); err != nil {
		return "", err
	}
	s.log.Info("setting", "name", k.name, "value", k.values[i], "who", in.Sender)
	return s.text(ctx, "settings.set", "name", k.name, "value", asWord(k.values[i])), nil
}

// asWord is a word that somebody wrote, to be shown as it is.
func asWord(word string) string { return "`" + strings.ReplaceAll(oneLine(word, 40), "`", "'") + "`" }

func asWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = asWord(w)
	}
	return strings.Join(out, ", ")
}
