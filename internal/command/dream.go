package command

import (
	"context"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/tool"
)

// Dreams controls dreaming for !dream.
type Dreams struct {
	Wake   func()                                          // starts a dream soon
	Status func(context.Context, i18n.Say) (string, error) // describes the last one
	Undo   func(context.Context, i18n.Say) (string, error) // reverts the last one
	// Tidy asks for a dream of one part: memories or tasks. It dreams of each at most once a day,
	// and returns at once.
	Tidy func(part string)
}

// controlDream is the command !dream. Only owners may use it, as it changes all memory.
func controlDream(ctx context.Context, call *Call, args string) (string, error) {
	switch {
	case call.Dreams == nil:
		return call.text(ctx, "dream.off"), nil
	case !tool.AllowsAct(call.Access.Integrity, "!dream"):
		return call.text(ctx, "dream.owner"), nil
	}
	switch strings.ToLower(args) {
	case "":
		call.Dreams.Wake()
		return call.text(ctx, "dream.woken"), nil
	case "status":
		text, err := call.Dreams.Status(ctx, call.Messages.For(ctx, call.In.Room))
		if err != nil {
			return "", err
		}
		open, err := openQuestions(ctx, call)
		return strings.TrimSpace(text + "\n\n" + open), err
	case "undo":
		text, err := call.Dreams.Undo(ctx, call.Messages.For(ctx, call.In.Room))
		return capitalize(text) + ".", err
	}
	return call.text(ctx, "dream.usage"), nil
}
