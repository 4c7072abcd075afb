package command

import (
	"context"
	"fmt"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/text"
)

func unknownCommand(ctx context.Context, call *Call, name string) string {
	return i18n.Sentences(call.text(ctx, "command.unknown", "name", Word("!"+name)), suggestion(ctx, call, name, Names(), "!"),
		call.text(ctx, "command.list"))
}

// help is the command !help: it lists all commands, or describes the one in args.
func help(ctx context.Context, call *Call, args string) (string, error) {
	if name := strings.ToLower(strings.TrimLeft(args, "!/")); name != "" {
		if _, known := lookup(name); !known {
			return unknownCommand(ctx, call, name), nil
		}
		return fmt.Sprintf("`!%s`: %s", name, call.text(ctx, "help."+name)), nil
	}
	var b strings.Builder
	b.WriteString(call.text(ctx, "help") + "\n\n")
	for _, e := range catalog() {
		fmt.Fprintf(&b, "- `!%s`: %s\n", e.name, call.text(ctx, "help."+e.name))
	}
	return strings.TrimSpace(b.String()), nil
}

// suggestion offers the names that are similar to word, each with prefix; "" if none is.
func suggestion(ctx context.Context, call *Call, word string, names []string, prefix string) string {
	near := text.Nearest(word, names)
	if len(near) == 0 {
		return ""
	}
	for i := range near {
		near[i] = prefix + near[i]
	}
	return call.text(ctx, "nearest", "names", codeWords(near))
}
