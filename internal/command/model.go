package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/agent"
	"reverie/internal/i18n"
	"reverie/internal/settings"
	"reverie/internal/tool"
)

// changeModel is the command !model: it sets or shows the model that the room asks first. Tier and prompt
// change with the next message.
func changeModel(ctx context.Context, call *Call, args string) (string, error) {
	switch {
	case args == "":
		return describeModel(ctx, call)
	case !tool.AllowsAct(call.Access.Integrity, "!model"):
		return call.text(ctx, "settings.owners"), nil
	case strings.EqualFold(args, settings.Default), strings.EqualFold(args, settings.Auto):
		if err := call.Settings.Clear(ctx, call.In.Room, settings.ModelName); err != nil {
			return "", err
		}
		now, err := modeNow(ctx, call)
		return call.text(ctx, "model.reset", "model", Word(agent.FirstModel(call.Models, now.Role))), err
	}
	names := call.Models.Names()
	i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, args) })
	if i < 0 {
		return i18n.Sentences(call.text(ctx, "model.unknown", "name", Word(args), "models", codeWords(names)),
			suggestion(ctx, call, args, names, "")), nil
	}
	call.Log.Info("model", "name", names[i], "who", call.In.Sender)
	return call.text(ctx, "model.set", "model", Word(names[i])),
		call.Settings.Put(ctx, call.In.Room, settings.ModelName, names[i], call.In.Sender, call.Now())
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
