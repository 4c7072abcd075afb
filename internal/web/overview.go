package web

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reverie/internal/delivery"
	"reverie/internal/usage"
)

// overview shows how the assistant is.
func overview(ctx context.Context, v *visit) (view, error) {
	queues, err := delivery.CountRows(ctx, v.cfg.DB, v.now.UnixMilli())
	used, err2 := v.cfg.Usage.LastWeek(ctx, usage.Everybody)
	today := 0
	for _, r := range used {
		today += r.Today
	}
	state := block{Title: "State"}
	for _, line := range v.cfg.Status(ctx) {
		state.Rows = append(state.Rows, v.row(line))
	}
	window, answer := v.cfg.Models.Window("chat")
	return view{Title: v.cfg.Name, Fresh: true, Blocks: []block{{Facts: v.facts(
		"Model", strings.Join(v.cfg.Models.Role("chat"), ", "),
		"Window", fmt.Sprintf("%s tokens, %s of it for the answer", spaced(window), spaced(answer)),
		"Tokens today", today,
		"Waiting messages", fmt.Sprintf("%d in, %d out", queues.Inbox, queues.Outbox),
		"Not decrypted yet", queues.Undecryptable,
		"Given up", fmt.Sprintf("%d in, %d out", queues.Lost, queues.Dead),
	)}, state}}, errors.Join(err, err2)
}
