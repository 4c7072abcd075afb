package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"reverie/internal/chat"
	"reverie/internal/trust"
	"reverie/internal/usage"
)

// showUsage is the command !usage. Owners see everybody's tokens, in a direct chat; others their own.
func showUsage(ctx context.Context, call *Call, _ string) (string, error) {
	if call.Usage == nil {
		return call.text(ctx, "usage.none"), nil
	}
	owner := call.Access.Integrity == trust.Owner && call.In.Private
	whose := call.In.Sender
	if owner {
		whose = usage.Everybody
	}
	rows, err := call.Usage.LastWeek(ctx, whose)
	if err != nil {
		return "", err
	}
	limits, err := call.Usage.Limits(ctx, call.In.Sender, "")
	if err != nil {
		return "", err
	}
	var lines []string
	for _, r := range rows {
		about := ""
		if r.Estimated {
			about = "~"
		}
		who := cmp.Or(r.Person, call.text(ctx, "usage.background"))
		lines = append(lines, call.text(ctx, "usage.line", "model", Word(r.Model), "person", who,
			"today", about+fmt.Sprint(r.Today), "week", about+fmt.Sprint(r.Week)))
	}
	if len(rows) == 0 {
		lines = append(lines, call.text(ctx, "usage.none"))
	}
	for _, l := range limits {
		if owner || l.Model == "" {
			lines = append(lines, limitSentence(ctx, call, l))
		}
	}
	return call.text(ctx, "usage.head") + "\n\n- " + strings.Join(lines, "\n- "), nil
}

// limitSentence tells how much of a daily limit is used.
func limitSentence(ctx context.Context, call *Call, l usage.Limit) string {
	percent, most := fmt.Sprint(l.Percent()), fmt.Sprint(l.Most)
	if l.Model == "" {
		return call.text(ctx, "usage.limit_own", "percent", percent, "most", most)
	}
	return call.text(ctx, "usage.limit", "model", Word(l.Model), "percent", percent, "most", most)
}

// WarnOfLimits tells the person of call which daily limits are nearly reached, each once a day.
func WarnOfLimits(ctx context.Context, call *Call, to chat.Transport) {
	if call.Usage == nil {
		return
	}
	limits, err := call.Usage.TakeWarnings(ctx, call.In.Sender, call.Access.Integrity == trust.Owner)
	for _, l := range limits {
		if err == nil {
			err = to.Send(ctx, call.In.Room, chat.Outgoing{ID: "limit:" + call.In.ID + ":" + l.Model,
				Thread: call.Talk.Thread(), Notice: true, Text: limitSentence(ctx, call, l)})
		}
	}
	if err != nil {
		call.Log.Error("nobody was told of a limit", "err", err)
	}
}
