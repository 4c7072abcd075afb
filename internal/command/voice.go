package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"reverie/internal/manner"
)

// showVoice is the command !voice: it lists how the person likes to be answered, or forgets a line.
func showVoice(ctx context.Context, call *Call, args string) (string, error) {
	if !call.In.Private {
		return call.text(ctx, "voice.where"), nil
	}
	lines, err := call.Manner.Lines(ctx, call.In.Sender, call.Now())
	if err != nil {
		return "", err
	}
	if verb, number, _ := strings.Cut(args, " "); strings.EqualFold(verb, "forget") {
		n, _ := strconv.Atoi(strings.TrimSpace(number))
		if n < 1 || n > len(lines) {
			return call.text(ctx, "voice.unknown"), nil
		}
		return call.text(ctx, "voice.forgotten"), call.Manner.Forget(ctx, call.In.Sender, lines[n-1])
	}
	if len(lines) == 0 {
		return call.text(ctx, "voice.none"), nil
	}
	var b strings.Builder
	b.WriteString(call.text(ctx, "voice.head") + "\n\n")
	for i, l := range lines {
		key, evidence := "voice."+l.Key, "voice.said"
		if l.Key != manner.Language && l.Key != manner.NotSay {
			key += "_" + l.Value
		}
		if l.Said == 0 {
			evidence = "voice.seen"
		}
		fmt.Fprintf(&b, "%d. %s %s\n", i+1, call.text(ctx, key, "value", code(l.Name)), call.text(ctx, evidence,
			"count", strconv.Itoa(l.Count), "at", l.Last.In(call.Zone).Format(time.DateOnly), "quote", code(l.Quote)))
	}
	return b.String() + "\n" + call.text(ctx, "voice.forget"), nil
}
