package command

import (
	"context"
	"fmt"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/text"
)

func unknownCommand(ctx context.Context, call *Call, name string) string {
	return i18n.Sentences(call.text(ctx, "command.unknown", "name", Word("!"+name)), nearestLine(ctx, call, name, Names(), "!"),
		call.text(ctx, "command.list"))
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

// nearestLine offers those of names that word may have been meant to be; "" = none is
// near. before is put before each.
func nearestLine(ctx context.Context, call *Call, word string, names []string, before string) string {
	near := text.Nearest(word, names)
	if len(near) == 0 {
		return ""
	}
	for i := range near {
		near[i] = before + near[i]
	}
	return call.text(ctx, "nearest", "names", words(near))
}
