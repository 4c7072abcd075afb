package command

import (
	"context"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/tool"
)

// Dreams is what !dream can have done; dreaming itself is not the session's.
type Dreams struct {
	Wake   func()                                          // dream soon
	Status func(context.Context, i18n.Say) (string, error) // how the last one went
	Undo   func(context.Context, i18n.Say) (string, error) // take the last one back
	// Tidy asks for a dream of one part of the prompt (memories, tasks or skills), once a
	// day at most. It returns at once.
	Tidy func(part string)
}

// controlDream is !dream, for owners: it concerns everybody's memory.
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
		if err != nil {
			return "", err
		}
		return capital(text) + ".", nil
	}
	return call.text(ctx, "dream.usage"), nil
}
