package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/agent"
	"reverie/internal/i18n"
	"reverie/internal/settings"
	"reverie/internal/tool"
	"reverie/internal/voice"
)

// changeModel is the command !model: it sets or shows the model that the room asks first. Tier and prompt
// change with the next message.
func changeModel(ctx context.Context, call *Call, args string) (string, error) {
	switch {
	case args == "":
		return describeModel(ctx, call)
	case !tool.AllowsAct(call.Access.Integrity, "!model"):
		return call.text(ctx, "settings.owners"), nil
	}
	return choose(ctx, call, "model.", args, call.Models.Names(), func() (string, error) {
		now, err := modeNow(ctx, call)
		return agent.FirstModel(call.Models, now.Role), err
	})
}

// choose sets a setting of the room to one of names, or back to what the configuration says, and returns the
// answer. texts is the beginning of its texts: the setting's name and a point.
func choose(ctx context.Context, call *Call, texts, to string, names []string, configured func() (string, error)) (string, error) {
	setting := strings.TrimSuffix(texts, ".")
	at := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, to) })
	switch {
	case strings.EqualFold(to, settings.Default), strings.EqualFold(to, settings.Auto):
		if err := call.Settings.Clear(ctx, call.In.Room, setting); err != nil {
			return "", err
		}
		value, err := configured()
		return call.text(ctx, texts+"reset", setting, Word(value)), err
	case at < 0:
		return i18n.Sentences(call.text(ctx, texts+"unknown", "name", Word(to), setting+"s", codeWords(names)),
			suggestion(ctx, call, to, names, "")), nil
	}
	call.Log.Info(setting, "name", names[at], "who", call.In.Sender)
	return call.text(ctx, texts+"set", setting, Word(names[at])),
		call.Settings.Put(ctx, call.In.Room, setting, names[at], call.In.Sender, call.Now())
}

func describeModel(ctx context.Context, call *Call) (string, error) {
	now, err := modeNow(ctx, call)
	if err != nil {
		return "", err
	}
	asked := call.Models.Role(now.Role)
	if len(asked) == 0 {
		return call.text(ctx, "error.no_model"), nil
	}
	set, err := call.Settings.Choices(ctx, call.In.Room)
	if err != nil {
		return "", err
	}
	d := set[settings.ModelName]
	if d.Value != asked[0] {
		d = settings.Choice{}
	}
	var b strings.Builder
	said := call.text(ctx, "model.now", "model", Word(asked[0]), "since", decidedBy(ctx, call, d))
	if len(asked) > 1 {
		said = i18n.Sentences(said, call.text(ctx, "model.others", "models", codeWords(asked[1:])))
	}
	b.WriteString(said + "\n\n")
	for _, n := range call.Models.Names() {
		fmt.Fprintf(&b, "- `!model %s`: %s\n", n, call.Models.Limit(n))
	}
	return b.String() + "- " + call.text(ctx, "model.default"), nil
}

// changePersona is the command !persona: it sets or shows the persona of the room.
func changePersona(ctx context.Context, call *Call, args string) (string, error) {
	configured := cmp.Or(call.Voice.Persona, voice.None)
	names := append(call.Voice.PersonaNames(), voice.None)
	if args != "" {
		return choose(ctx, call, "persona.", args, names, func() (string, error) { return configured, nil })
	}
	set, err := call.Settings.Choices(ctx, call.In.Room)
	now := set[settings.PersonaName]
	said := call.text(ctx, "persona.now", "persona", Word(cmp.Or(now.Value, configured)), "since", decidedBy(ctx, call, now)) + "\n\n"
	for _, n := range names {
		key := "persona.what." + n // people's own have none
		said += "- `!persona " + n + "`" + strings.TrimSuffix(": "+call.text(ctx, key), ": "+key) + "\n"
	}
	return said + "- " + call.text(ctx, "persona.default", "persona", Word(configured)), err
}
