package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reverie/internal/history"
	"reverie/internal/i18n"
)

// helperLine is a sub-session in one line, for people.
func (s *Session) helperLine(ctx context.Context, n helper) string {
	at := func(t time.Time) string { return t.In(s.cfg.Location).Format(minute) }
	parts := []string{s.text(ctx, "helpers.since", "at", at(n.created))}
	switch {
	case !n.open():
		parts = append(parts, s.text(ctx, "helpers.ended", "at", at(n.ended)))
	case n.status == helperPending && n.due.After(s.cfg.Now()):
		parts = append(parts, s.text(ctx, "helpers.not_before", "at", at(n.due)))
	}
	if n.rounds > 0 {
		parts = append(parts, s.text(ctx, "helpers.spent", "rounds", fmt.Sprint(n.rounds), "tokens", fmt.Sprint(n.tokens)))
	}
	if n.continued > 0 {
		parts = append(parts, s.text(ctx, "helpers.continued", "count", fmt.Sprint(n.continued)))
	}
	objective := n.objective
	if objective == unasked {
		objective = s.text(ctx, "why.unasked")
	}
	line := fmt.Sprintf("%s %s: %s (%s)", n.id, s.text(ctx, "state."+n.status), history.OneLine(objective, 120), strings.Join(parts, ", "))
	if n.reason != "" && n.reason != unasked {
		line += ": " + history.OneLine(s.why(ctx, n.reason), 200)
	}
	return line
}

// toldIn is told for people, when no model passes it on.
func (n helper) toldIn(say i18n.Say, most int) string {
	head := fmt.Sprintf("%s (%s)", n.id, history.OneLine(n.objective, 200))
	if n.status != helperCompleted {
		return fmt.Sprintf("%s %s: %s", head, say("state."+n.status), history.OneLine(n.reason.In(say), 600))
	}
	text := strings.TrimSpace(n.result)
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "\n" + say("helpers.cut", "count", fmt.Sprint(len(r)))
	}
	return head + ":\n> " + strings.ReplaceAll(strings.ReplaceAll(text, "\r", ""), "\n", "\n> ")
}
