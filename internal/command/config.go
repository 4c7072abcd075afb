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
	"reverie/internal/tool"
)

// shownSetting is a setting of the room as !config shows it.
type shownSetting struct {
	settings.Setting
	value string
	by    string // who decided, and when, or that it is as by default
}

// configure is the command !config: it shows the settings of the room, or changes one.
func configure(ctx context.Context, call *Call, args string) (string, error) {
	all, err := shownSettings(ctx, call)
	if err != nil {
		return "", err
	}
	name, value, _ := strings.Cut(args, " ")
	value = strings.TrimLeft(value, "= ")
	if name == "" {
		return settingsTable(ctx, call, all), nil
	}
	i := slices.IndexFunc(all, func(k shownSetting) bool { return strings.EqualFold(k.Name, name) })
	switch {
	case i < 0:
		var names []string
		for _, k := range all {
			names = append(names, k.Name)
		}
		return i18n.Sentences(call.text(ctx, "settings.unknown", "name", Word(name)), nearestLine(ctx, call, name, names, "")), nil
	case value == "":
		return oneSetting(ctx, call, all[i]), nil
	case !tool.AllowsAct(call.Access.Integrity, "!config"):
		return call.text(ctx, "settings.owners"), nil
	}
	return changeSetting(ctx, call, all[i], value)
}

// shownSettings reads all settings of the room.
func shownSettings(ctx context.Context, call *Call) ([]shownSetting, error) {
	set, err := call.Settings.Stored(ctx, call.In.Room)
	if err != nil {
		return nil, err
	}
	var all []shownSetting
	for _, k := range settings.List() {
		d := set[k.Name]
		all = append(all, shownSetting{k, k.Of(d.Value), decidedBy(ctx, call, d)})
	}
	return all, nil
}

func decidedBy(ctx context.Context, call *Call, d settings.Decided) string {
	if d.At.IsZero() {
		return call.text(ctx, "settings.default")
	}
	return call.text(ctx, "settings.by", "person", d.Person, "at", d.At.In(call.Location).Format(minute))
}

func settingsTable(ctx context.Context, call *Call, all []shownSetting) string {
	var b strings.Builder
	b.WriteString(call.text(ctx, "settings.columns") + "\n|---|---|---|---|\n")
	for _, k := range all {
		others := strings.Join(slices.DeleteFunc(slices.Clone(k.Values), func(v string) bool { return v == k.value }), ", ")
		value := k.value
		if k.Values == nil {
			others = possible(ctx, call, k)
			value = cmp.Or(history.OneLine(value, shownText), call.text(ctx, "settings.none"))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k.Name, strings.ReplaceAll(value, "|", `\|`), k.by,
			strings.ReplaceAll(others, "|", `\|`))
	}
	return b.String() + "\n" + call.text(ctx, "settings.usage")
}

// oneSetting says what a setting is for, and what it can be.
func oneSetting(ctx context.Context, call *Call, k shownSetting) string {
	return call.text(ctx, "settings.one", "name", k.Name, "what", call.text(ctx, "config."+k.Name),
		"value", settingValue(ctx, call, k, k.value, k.Most),
		"since", k.by, "values", possible(ctx, call, k))
}

// shownText is how many characters of a text are shown beside other settings.
const shownText = 60

// settingValue is a value of a setting as people are shown it, a text in at most so many characters.
func settingValue(ctx context.Context, call *Call, k shownSetting, value string, most int) string {
	switch {
	case k.Values != nil:
		return Word(value)
	case value == "":
		return call.text(ctx, "settings.none")
	}
	return code(history.OneLine(value, most))
}

// possible says what a setting can be.
func possible(ctx context.Context, call *Call, k shownSetting) string {
	if k.Values == nil {
		return call.text(ctx, "settings.text", "most", strconv.Itoa(k.Most))
	}
	return words(k.Values)
}

// changeSetting has the sender of in, an owner, decide a setting.
func changeSetting(ctx context.Context, call *Call, k shownSetting, value string) (string, error) {
	reset := strings.EqualFold(value, settings.Default)
	if i := slices.IndexFunc(k.Values, func(v string) bool { return strings.EqualFold(v, value) }); i >= 0 {
		value = k.Values[i]
	}
	value, ok := k.Takes(value)
	switch {
	case reset:
		if err := call.Settings.Clear(ctx, call.In.Room, k.Name); err != nil {
			return "", err
		}
		return call.text(ctx, "settings.reset", "name", k.Name, "value", settingValue(ctx, call, k, k.Initial(), shownText)), nil
	case !ok:
		return call.text(ctx, "settings.value", "name", k.Name, "value", Word(value), "values", possible(ctx, call, k)), nil
	}
	if err := call.Settings.Set(ctx, call.In.Room, k.Name, value, call.In.Sender, call.Now()); err != nil {
		return "", err
	}
	call.Log.Info("setting", "name", k.Name, "who", call.In.Sender)
	return call.text(ctx, "settings.set", "name", k.Name, "value", settingValue(ctx, call, k, value, shownText)), nil
}

// Word is a word that somebody wrote, to be shown as it is.
func Word(word string) string { return code(history.OneLine(word, 40)) }

// code puts a line of text between marks that have it shown as it is.
func code(line string) string { return "`" + strings.ReplaceAll(line, "`", "'") + "`" }

func words(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = Word(w)
	}
	return strings.Join(out, ", ")
}
