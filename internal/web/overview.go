package web

import (
	"context"
	"fmt"
	"strings"

	"reverie/internal/delivery"
)

// overview shows how the assistant is.
func overview(ctx context.Context, v *visit) (view, error) {
	queues, err := delivery.CountRows(ctx, v.cfg.DB, v.now.UnixMilli())
	if err != nil {
		return view{}, err
	}
	rows, err := v.cfg.Usage.LastWeek(ctx, "*")
	if err != nil {
		return view{}, err
	}
	today := 0
	for _, r := range rows {
		today += r.Today
	}
	window, answer := v.cfg.Models.Window("chat")
	out := view{Title: v.cfg.Name, Fresh: true, Blocks: []block{{Facts: facts(
		"Model", strings.Join(v.cfg.Models.Role("chat"), ", "),
		"Window", fmt.Sprintf("%s tokens, %s of it for the answer", spaced(window), spaced(answer)),
		"Tokens today", spaced(today),
		"Waiting messages", fmt.Sprintf("%d in, %d out", queues.Inbox, queues.Outbox),
		"Not decrypted yet", fmt.Sprint(queues.Undecryptable),
		"Given up", fmt.Sprintf("%d in, %d out", queues.Lost, queues.Dead),
	)}}}
	if lines := v.cfg.Status(ctx); len(lines) > 0 {
		state := block{Title: "State"}
		for _, line := range lines {
			state.Rows = append(state.Rows, []cell{{Text: line}})
		}
		out.Blocks = append(out.Blocks, state)
	}
	return out, nil
}
