package session

import (
	"fmt"
	"strings"
	"time"

	"reverie/internal/history"
	"reverie/internal/i18n"
)

// line is a sub-session in one line, in the words of say.
func (h *helpers) line(n helper, say i18n.Say) string {
	at := func(t time.Time) string { return t.In(h.cfg.Location).Format(minute) }
	parts := []string{say("helpers.since", "at", at(n.created))}
	switch {
	case !n.open():
		parts = append(parts, say("helpers.ended", "at", at(n.ended)))
	case n.status == helperPending && n.due.After(h.cfg.Now()):
		parts = append(parts, say("helpers.not_before", "at", at(n.due)))
	}
	if n.rounds > 0 {
		parts = append(parts, say("helpers.spent", "rounds", fmt.Sprint(n.rounds), "tokens", fmt.Sprint(n.tokens)))
	}
	if n.continued > 0 {
		parts = append(parts, say("helpers.continued", "count", fmt.Sprint(n.continued)))
	}
	objective, reason := n.objective, n.reason
	if objective == unasked {
		objective = say("why.unasked")
	}
	if reason != "" && !reason.Known() {
		reason = i18n.New("why.trouble")
	}
	line := fmt.Sprintf("%s %s: %s (%s)", n.id, say("state."+n.status), history.OneLine(objective, 120), strings.Join(parts, ", "))
	if n.reason != "" && n.reason != unasked {
		line += ": " + history.OneLine(reason.In(say), 200)
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
