package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/prompt"
)

// promptWords is !prompt: what the next request is made of, in numbers, in the language of the room.
// The rest, and what stands in files, is for the operator: `bot prompt`.
func (s *Session) promptWords(ctx context.Context, r prompt.Report) string {
	window := s.text(ctx, "prompt.window_unknown")
	if r.Window > 0 {
		window = s.text(ctx, "prompt.window", "window", fmt.Sprint(r.Window), "answer", fmt.Sprint(r.MaxOutput))
	}
	total := s.text(ctx, "prompt.total", "total", fmt.Sprint(r.Total))
	if n := r.Counted(); n != r.Total {
		total = s.text(ctx, "prompt.total_counted", "total", fmt.Sprint(r.Total), "counted", fmt.Sprint(n))
	}
	lines := []string{total, window,
		s.text(ctx, "prompt.prefix", "layout", string(r.Layout), "prefix", r.PrefixHash, "percent", fmt.Sprintf("%.0f", 100*r.Reused))}
	if i := r.Instructions; i != nil {
		lines = append(lines, s.text(ctx, "prompt.instructions", "tokens", fmt.Sprint(i.Tokens), "budget", fmt.Sprint(i.Budget), "tier", fmt.Sprint(i.Tier)))
	}
	if r.Epoch.New {
		lines = append(lines, s.text(ctx, "prompt.epoch_new"))
	} else {
		lines = append(lines, s.text(ctx, "prompt.epoch", "at", r.Epoch.Started.Format(minute)))
	}
	words := s.text(ctx, "prompt.words")
	var files []string
	for _, p := range r.Problems {
		switch at := asWord(p.File); {
		case p.File == "":
		case p.Line > 0:
			files = append(files, fmt.Sprintf("%s:%d", at, p.Line))
		default:
			files = append(files, at)
		}
	}
	if n := len(files); n > 0 {
		words = sentences(s.text(ctx, "prompt.problems", "files", strings.Join(slices.Compact(files), ", ")), words)
	}
	return "- " + strings.Join(append(lines, words), "\n- ")
}
