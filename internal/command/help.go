package command

import (
	"context"
	"fmt"
	"strings"

	"reverie/internal/i18n"
)

func unknownCommand(ctx context.Context, call *Call, name string) string {
	return i18n.Sentences(call.text(ctx, "command.unknown", "name", Word("!"+name)), call.text(ctx, "command.list"))
}

// help is !help: all commands, or the one that args names.
func help(ctx context.Context, call *Call, args string) (string, error) {
	if name := strings.ToLower(strings.TrimLeft(args, "!/")); name != "" {
		if _, known := named(name); !known {
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
