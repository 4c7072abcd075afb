package agent

import (
	"strings"

	"reverie/internal/goal"
	"reverie/internal/prompt"
)

// CutOff stands behind an answer that reached the model's output limit.
const CutOff = "\n\n_(cut off: the model reached its output limit)_"

// Markers returns the markers to be applied. The last line of an answer that was
// cut off is none: nobody knows how it would have gone on.
func Markers(text string) ([]goal.Marker, int) {
	if body, ok := strings.CutSuffix(text, CutOff); ok {
		text = body[:max(0, strings.LastIndexByte(body, '\n'))]
	}
	markers, _, dropped := goal.ParseMarkers(text)
	return markers, dropped
}

// Visible is what people read of an answer: all but its markers, or the texts of these if there is nothing else.
func Visible(text string) string {
	text = prompt.WithoutFences(text)
	markers, _ := Markers(text)
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
