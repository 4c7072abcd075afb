package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
)

// ErrorText returns what a person reads when a message could not be answered. The operator's log gets the
// full error, under a random code that the person may be told.
func ErrorText(log *slog.Logger, say i18n.Say, err error) string {
	ref := strings.ToLower(rand.Text()[:6])
	log.Error("message not answered", "err", err, "reference", ref)
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
