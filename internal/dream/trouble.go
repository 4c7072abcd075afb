package dream

import (
	"context"
	"errors"

	"reverie/internal/i18n"
	"reverie/internal/store"
)

var (
	errNoCopy    = errors.New("no copy could be kept")
	errForgotten = i18n.New("why.dream_forgotten")
)

// reason is what people are told of an error that ended a dream: calm, and known in every
// language. exact is whether that is all that there is to say of it; what happened in
// detail is for the log and the report.
func reason(err error) (why i18n.Text, exact bool) {
	if errors.Is(err, context.Canceled) {
		return errYielded, true
	}
	if store.Full(err) {
		return i18n.New("why.dream_no_room"), false
	}
	if errors.Is(err, errForgotten) {
		return errForgotten, true
	}
	if errors.Is(err, errNoCopy) {
		return i18n.New("why.dream_no_copy"), false
	}
	return i18n.New("why.trouble"), false
}
