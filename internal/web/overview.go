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
	facts := []fact{
		{"Model", cell{Text: strings.Join(v.cfg.Models.Role("chat"), ", ")}},
		{"Window", cell{Text: fmt.Sprintf("%s tokens, %s of it for the answer", number(float64(window)), number(float64(answer)))}},
		{"Tokens today", cell{Text: number(float64(today))}},
		{"Waiting messages", cell{Text: fmt.Sprintf("%d in, %d out", queues.Inbox, queues.Outbox)}},
		{"Not decrypted yet", cell{Text: fmt.Sprint(queues.Undecryptable)}},
		{"Given up", cell{Text: fmt.Sprintf("%d in, %d out", queues.Lost, queues.Dead)}},
	}
	out := view{Title: v.cfg.Name, Fresh: true, Blocks: []block{{Facts: facts}}}
	if lines := v.cfg.Status(ctx); len(lines) > 0 {
		state := block{Title: "State"}
		for _, line := range lines {
			state.Rows = append(state.Rows, []cell{{Text: line}})
		}
		out.Blocks = append(out.Blocks, state)
	}
	return out, nil
}
