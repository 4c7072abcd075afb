package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/tool"
)

// CutOff is appended to an answer that reached the model's output limit.
const CutOff = "\n\n_(cut off: the model reached its output limit)_"

// GoalMarkers returns the markers to apply. The last line of a truncated answer is never one, because
// it may be incomplete.
func GoalMarkers(text string) []goal.Marker {
	if body, ok := strings.CutSuffix(text, CutOff); ok {
		text = body[:max(0, strings.LastIndexByte(body, '\n'))]
	}
	markers, _ := goal.ParseMarkers(text)
	return markers
}

// WithoutMarkers returns the part of an answer that people read: the text without markers, or the markers'
// texts if there is no other.
func WithoutMarkers(text string) string {
	text = prompt.WithoutFences(text)
	markers := GoalMarkers(text)
	body, isCut := strings.CutSuffix(text, CutOff)
	_, rest := goal.ParseMarkers(body)
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

// ErrorText returns what a person reads when a message could not be answered. The operator's log gets the
// full error, under a random code that the person may be told.
func ErrorText(log *slog.Logger, say i18n.Say, err error) string {
	ref := strings.ToLower(rand.Text()[:6])
	log.Error("message not answered", "err", err, "reference", ref)
	saved := say("error.kept")
	var model *llm.Error
	var large *prompt.TooLargeError
	var fence *prompt.FenceError
	switch {
	case errors.As(err, &model):
		return i18n.Sentences(model.ForPeople().In(say), saved)
	case errors.As(err, &large):
		return say("error.too_large", "needed", fmt.Sprint(large.Needed), "room", fmt.Sprint(max(large.Room, 0)))
	case errors.As(err, &fence):
		return say("error.fences", "reference", ref)
	case errors.Is(err, ErrRounds):
		return i18n.Sentences(say("error.rounds"), saved)
	default:
		return i18n.Sentences(say("error.unknown", "reference", ref), saved)
	}
}
