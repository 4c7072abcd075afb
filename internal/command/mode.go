package command

import (
	"context"
	"fmt"
	"strings"

	"reverie/internal/chat"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/settings"
)

const minute = "2006-01-02 15:04"

// changeMode is the command !mode: it sets or shows the mode of the room.
func changeMode(ctx context.Context, call *Call, args string) (string, error) {
	now, err := modeNow(ctx, call)
	if err != nil {
		return "", err
	}
	next, known := settings.FindMode(args)
	switch {
	case args == "":
		var b strings.Builder
		b.WriteString(modeSentence(ctx, call, now) + "\n\n")
		for _, m := range settings.Modes() {
			fmt.Fprintf(&b, "- `!mode %s`: %s\n", m.Name, call.text(ctx, "mode.what."+m.Name))
		}
		return strings.TrimSpace(b.String()), nil
	case !known:
		return i18n.Sentences(call.text(ctx, "mode.unknown", "modes", codeWords(settings.ModeNames())),
			suggestion(ctx, call, args, settings.ModeNames(), "")), nil
	case next.Name == now.Name:
		return call.text(ctx, "mode.already", "mode", now.Name), nil
	}
	call.Log.Info("mode", "from", now.Name, "to", next.Name, "who", call.In.Sender)
	return modeSet(ctx, call, next),
		call.Settings.Put(ctx, call.In.Room, settings.ModeName, next.Name, call.In.Sender, call.Now())
}

// modeSentence describes the mode in one sentence, for !mode and !status.
func modeSentence(ctx context.Context, call *Call, now settings.RoomMode) string {
	since := call.text(ctx, "mode.first")
	if !now.Chosen.At.IsZero() {
		since = call.text(ctx, "mode.since", "at", now.Chosen.At.In(call.Zone).Format(minute),
			"why", call.text(ctx, "mode.by", "person", now.Chosen.Person))
	}
	return call.text(ctx, "mode.now", "mode", now.Name, "since", since)
}

// changeThink is the command !think: it sets or shows the room's level of thinking.
func changeThink(ctx context.Context, call *Call, args string) (string, error) {
	if args == "" {
		now, err := modeNow(ctx, call)
		if err != nil || now.Think == "" {
			return call.text(ctx, "think.free"), err
		}
		return call.text(ctx, "think.now", "level", string(now.Think)), nil
	}
	level, err := llm.ParseThink(args)
	if err != nil {
		return call.text(ctx, "think.unknown"), nil
	}
	err = call.Settings.Put(ctx, call.In.Room, settings.ThinkLevel, string(level), call.In.Sender, call.Now())
	if level == "" {
		return call.text(ctx, "think.freed"), err
	}
	return call.text(ctx, "think.set", "level", string(level)), err
}

func showSummary(ctx context.Context, call *Call, _ string) (string, error) {
	c, err := call.History.LatestCompaction(ctx, call.Talk)
	if err != nil || c.Text() == "" {
		return call.text(ctx, "summary.none"), err
	}
	return call.text(ctx, "summary.head", "at", c.At.In(call.Zone).Format(minute)) + "\n\n" + c.Text(), nil
}

// Setter returns the function with which a tool call sets the room's mode or model. It always tells the room.
func Setter(call *Call, to chat.Transport) func(ctx context.Context, name, value string) error {
	return func(ctx context.Context, name, value string) error {
		now, err := modeNow(ctx, call)
		if err != nil {
			return err
		}
		before, said := now.Model, call.text(ctx, "model.set", "model", Word(value))
		if name == settings.ModeName {
			next, _ := settings.FindMode(value)
			before, value, said = now.Name, next.Name, modeSet(ctx, call, next)
		}
		// The notice goes first: sending it twice shows it once.
		if err := to.Send(ctx, call.In.Room, chat.Outgoing{ID: name + ":" + call.In.ID + ":" + value,
			Thread: call.Talk.Thread(), Notice: true, Text: said}); err != nil || value == before {
			return err
		}
		call.Log.Info(name, "from", before, "to", value, "who", call.In.Sender)
		return call.Settings.Put(ctx, call.In.Room, name, value, call.In.Sender, call.Now())
	}
}

// modeSet returns the notice that the room's mode is m now.
func modeSet(ctx context.Context, call *Call, m settings.Mode) string {
	return call.text(ctx, "mode.set", "mode", m.Name, "what", call.text(ctx, "mode.what."+m.Name))
}

func modeNow(ctx context.Context, call *Call) (settings.RoomMode, error) {
	return call.Settings.RoomMode(ctx, call.In.Room, call.Models.Names())
}
