package agent

import (
	"slices"
	"strings"

	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/tool"
)

// CutOff is appended to an answer that reached the model's output limit.
const CutOff = "\n\n_(cut off: the model reached its output limit)_"

// GoalMarkers returns the markers to apply. The last line of a truncated answer is never one, because
// it may be incomplete.
func GoalMarkers(text string) ([]goal.Marker, int) {
	if body, ok := strings.CutSuffix(text, CutOff); ok {
		text = body[:max(0, strings.LastIndexByte(body, '\n'))]
	}
	markers, _, dropped := goal.ParseMarkers(text)
	return markers, dropped
}

// WithoutMarkers returns the part of an answer that people read: the text without markers, or the markers'
// texts if there is no other.
func WithoutMarkers(text string) string {
	text = prompt.WithoutFences(text)
	markers, _ := GoalMarkers(text)
	body, isCut := strings.CutSuffix(text, CutOff)
	_, rest, _ := goal.ParseMarkers(body)
	if isCut {
		rest = goal.VisibleDraft(body)
	}
	if len(markers) > 0 && strings.TrimSpace(rest) == "" {
		rest = ""
		for _, m := range markers {
			rest += "- " + m.Text + "\n"
		}
		rest = strings.TrimSpace(rest)
	}
	if isCut {
		rest += CutOff
	}
	return rest
}

// ChoseSilence reports whether the model called tool.StaySilent, without failure, for the last event of past.
func ChoseSilence(past []history.Message) bool {
	refused := map[string]bool{}
	for _, m := range slices.Backward(past) {
		switch {
		case m.Role == llm.User:
			return false
		case m.Role == llm.Tool && m.Failed:
			refused[m.CallID] = true
		case slices.ContainsFunc(m.Calls, func(c llm.ToolCall) bool { return c.Name == tool.StaySilent && !refused[c.ID] }):
			return true
		}
	}
	return false
}
