package web

import (
	"context"
	"errors"
	"fmt"

	"reverie/internal/dream"
	"reverie/internal/i18n"
	"reverie/internal/memory"
)

// dreams shows the last nights, with what each changed in memories that the person may read.
func dreams(ctx context.Context, v *visit) (view, error) {
	nights, err := dream.Nights(ctx, v.cfg.DB, 20)
	out := view{Title: "Dreams", Lead: "What was tidied up in memories that you may read, the newest night first."}
	if len(nights) == 0 {
		out.Lead = "There was no dream yet."
	}
	for _, n := range nights {
		b := block{Title: v.stamp(n.At), Note: fmt.Sprintf("%s: %s; %d requests, %s tokens", n.Run, n.State, n.Calls, spaced(n.Tokens))}
		if n.Reason != "" {
			b.Note += "; " + n.Reason.In(i18n.English)
		}
		for _, s := range n.Steps {
			e, err := v.cfg.Memory.Get(ctx, v.access(), s.Entry)
			if errors.Is(err, memory.ErrNotFound) {
				continue
			}
			if err != nil {
				return view{}, err
			}
			w := words{Title: string(s.Kind), Note: s.Why, Text: e.Text, Old: s.Kind != memory.GroupStep}
			if s.Undone {
				w.Title, w.Old = w.Title+" (undone)", false
			}
			if by, err := v.cfg.Memory.Get(ctx, v.access(), s.By); s.By != "" && err == nil {
				w.Added = by.Text
			}
			b.Texts = append(b.Texts, w)
		}
		out.Blocks = append(out.Blocks, b)
	}
	return out, err
}
