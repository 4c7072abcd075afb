package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/tool"
)

// shownSetting is a setting of a room with what !config shows.
type shownSetting struct {
	settings.Setting
	value string
	by    string // who set it and when, or that it is the default
}

// configure is the command !config: it shows the settings of the room, or changes one.
func configure(ctx context.Context, call *Call, args string) (string, error) {
	set, err := call.Settings.Choices(ctx, call.In.Room)
	if err != nil {
		return "", err
	}
	var all []shownSetting
	for _, k := range settings.List {
		d := set[k.Name]
		all = append(all, shownSetting{k, k.Effective(d.Value), decidedBy(ctx, call, d)})
	}
	name, value, _ := strings.Cut(args, " ")
	value = strings.TrimLeft(value, "= ")
	if name == "" {
		return settingsTable(ctx, call, all), nil
	}
	i := slices.IndexFunc(all, func(k shownSetting) bool { return strings.EqualFold(k.Name, name) })
	switch {
	case i < 0:
		names := store.Map(all, func(k shownSetting) string { return k.Name })
		return i18n.Sentences(call.text(ctx, "settings.unknown", "name", Word(name)), suggestion(ctx, call, name, names, "")), nil
	case value == "":
		k := all[i]
		return call.text(ctx, "settings.one", "name", k.Name, "what", call.text(ctx, "config."+k.Name),
			"value", settingValue(ctx, call, k, k.value, k.MaxLength), "since", k.by, "values", possibleValues(ctx, call, k)), nil
	case !tool.AllowsAct(call.Access.Integrity, "!config"):
		return call.text(ctx, "settings.owners"), nil
	}
	return changeSetting(ctx, call, all[i], value)
}

// decidedBy says who set a setting and when, or that it is the default.
func decidedBy(ctx context.Context, call *Call, d settings.Choice) string {
	if d.At.IsZero() {
		return call.text(ctx, "settings.default")
	}
	return call.text(ctx, "settings.by", "person", d.Person, "at", d.At.In(call.Zone).Format(minute))
}

func settingsTable(ctx context.Context, call *Call, all []shownSetting) string {
	var b strings.Builder
	b.WriteString(call.text(ctx, "settings.columns") + "\n|---|---|---|---|\n")
	for _, k := range all {
		others := strings.Join(slices.DeleteFunc(slices.Clone(k.Values), func(v string) bool { return v == k.value }), ", ")
		value := k.value
		if k.Values == nil {
			others = possibleValues(ctx, call, k)
			value = cmp.Or(history.OneLine(value, maxShownText), call.text(ctx, "settings.none"))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k.Name, strings.ReplaceAll(value, "|", `\|`), k.by,
			strings.ReplaceAll(others, "|", `\|`))
	}
	return b.String() + "\n" + call.text(ctx, "settings.usage")
}

// maxShownText limits the characters of a text value in the table of settings.
const maxShownText = 60

// settingValue formats a value of a setting, a text in at most maxRunes characters.
func settingValue(ctx context.Context, call *Call, k shownSetting, value string, maxRunes int) string {
	switch {
	case k.Values != nil:
		return Word(value)
	case value == "":
		return call.text(ctx, "settings.none")
	}
	return code(history.OneLine(value, maxRunes))
}

func possibleValues(ctx context.Context, call *Call, k shownSetting) string {
	if k.Values == nil {
		return call.text(ctx, "settings.text", "most", strconv.Itoa(k.MaxLength))
	}
	return codeWords(k.Values)
}

// changeSetting sets or resets a setting for the sender, an owner.
func changeSetting(ctx context.Context, call *Call, k shownSetting, value string) (string, error) {
	reset := strings.EqualFold(value, settings.Default)
	if i := slices.IndexFunc(k.Values, func(v string) bool { return strings.EqualFold(v, value) }); i >= 0 {
		value = k.Values[i]
	}
	value, ok := k.Normalize(value)
	said, err := "settings.set", error(nil)
	switch {
	case reset:
		said, value = "settings.reset", k.DefaultValue()
		err = call.Settings.Clear(ctx, call.In.Room, k.Name)
	case !ok:
		return call.text(ctx, "settings.value", "name", k.Name, "value", Word(value), "values", possibleValues(ctx, call, k)), nil
	default:
		err = call.Settings.Put(ctx, call.In.Room, k.Name, value, call.In.Sender, call.Now())
	}
	call.Log.Info("setting", "name", k.Name, "who", call.In.Sender)
	return call.text(ctx, said, "name", k.Name, "value", settingValue(ctx, call, k, value, maxShownText)), err
}

// Word formats a word that a person wrote as inline code.
func Word(word string) string { return code(history.OneLine(word, 40)) }

// code formats a line of text as inline code.
func code(line string) string { return "`" + strings.ReplaceAll(line, "`", "'") + "`" }

func codeWords(words []string) string {
	return strings.Join(store.Map(words, Word), ", ")
}
