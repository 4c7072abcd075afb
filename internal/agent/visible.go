package agent

import (
	"strings"

	"reverie/internal/goal"
	"reverie/internal/i18n"
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

// Visible is what people read of an answer: all but its markers, or in a few words
// what these say, if there is nothing else.
func Visible(say i18n.Say, text string) string {
	text = prompt.WithoutFences(text)
	markers, _ := Markers(text)
	body, isCut := strings.CutSuffix(text, CutOff)
	_, rest, _ := goal.ParseMarkers(body)
	if isCut {
		rest = goal.ShowDraft(body)
	}
	if len(markers) > 0 && strings.TrimSpace(rest) == "" {
		rest = brief(say, markers)
	}
	if isCut {
		rest += CutOff
	}
	return rest
}

// brief says in Markdown what markers say.
func brief(say i18n.Say, markers []goal.Marker) string {
	var lines []string
	for _, m := range markers {
		switch m.Kind {
		case "GOAL":
			line := say("goal.goal", "text", m.Text)
			if m.Ended != "" {
				line += " (" + say("state."+string(m.Ended)) + ")"
			}
			lines = append(lines, line)
		case "CHECKPOINT":
			lines = append(lines, m.Status.Sign()+" "+m.Text)
		case "DECISION":
			lines = append(lines, goal.Decision{Description: say("goal.decided", "text", m.Text), Locked: m.Locked}.LineIn(say))
		case "ARTIFACT":
			lines = append(lines, say("goal.file."+m.Action, "path", m.Text))
		case "NEXT":
			lines = append(lines, say("goal.next", "text", m.Text))
		}
	}
	return "- " + strings.Join(lines, "\n- ")
}
