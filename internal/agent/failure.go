package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
)

// ErrorText returns what a person reads when a message could not be answered. The full error is in the
// operator's log, under ref.
func ErrorText(say i18n.Say, err error, ref string) string {
	saved := say("error.kept")
	var model *llm.Error
	var large *prompt.TooLargeError
	switch {
	case errors.As(err, &model):
		return i18n.Sentences(model.ForPeople().In(say), saved)
	case errors.As(err, &large):
		return say("error.too_large", "needed", fmt.Sprint(large.Needed), "room", fmt.Sprint(max(large.Room, 0)))
	case errors.Is(err, ErrRounds):
		return i18n.Sentences(say("error.rounds"), saved)
	default:
		return i18n.Sentences(say("error.unknown", "reference", ref), saved)
	}
}

// ErrorReference returns a random code that links an error message to its log line.
func ErrorReference() string { return strings.ToLower(rand.Text()[:6]) }
