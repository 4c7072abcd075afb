package dream

import (
	"context"
	"errors"

	"reverie/internal/store"
)

var (
	errNoCopy    = errors.New("no copy could be kept")
	errForgotten = errors.New("something was forgotten meanwhile; the next dream tries again")
)

// reason is what people are told of an error that ended a dream: calm, and known in every
// language. exact is whether that is all that there is to say of it; what happened in
// detail is for the log and the report.
func reason(err error) (text string, exact bool) {
	if errors.Is(err, context.Canceled) {
		return errYielded.Error(), true
	}
	if store.Full(err) {
		return "the disk is full; the next dream tries again when there is room", false
	}
	if errors.Is(err, errForgotten) {
		return errForgotten.Error(), true
	}
	if errors.Is(err, errNoCopy) {
		return "no copy of what I know could be kept; the reason is in my log", false
	}
	return "something went wrong on my side; the reason is in my log", false
}
