// Package retry says whether a failed request is tried again and when, and waits for that.
package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"go.mau.fi/util/retryafter"
	"maunium.net/go/mautrix"

	"reverie/internal/i18n"
)

// Class is what a failed request means for trying it again.
type Class int

// The classes.
const (
	Fine   Class = iota // no error
	Again               // later, it may work
	logout              // the access token is not valid any more
	Never               // the server said no, and will say no again
)

const (
	// FirstWait is the longest pause before the second try.
	FirstWait = time.Second
	maxWait   = 5 * time.Minute
	// LongestWait is what a server may ask for.
	LongestWait = time.Hour
)

// Classify says whether trying again makes sense and how long to wait first.
// attempt counts the failures before this one. A server that says how long to
// wait is obeyed, wherever it says it: the longer one counts.
func Classify(err error, attempt int) (Class, time.Duration) {
	if err == nil {
		return Fine, 0
	}
	if errors.Is(err, context.Canceled) {
		return Never, 0
	}
	var refused *RefusedError
	if errors.As(err, &refused) {
		return Never, 0
	}
	wait := Backoff(attempt)
	var h mautrix.HTTPError
	if !errors.As(err, &h) || h.Response == nil {
		return Again, wait // the network, or something of ours that may pass: a busy database, keys not fetched
	}
	switch code := h.Response.StatusCode; {
	case errors.Is(err, mautrix.MUnknownToken), errors.Is(err, mautrix.MMissingToken):
		return logout, wait
	case code == http.StatusTooManyRequests, errors.Is(err, mautrix.MLimitExceeded):
		return Again, max(wait, retryAfter(h))
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code < 400:
		return Again, max(wait, retryAfter(h)) // < 400: a good status with a body that is none
	}
	return Never, 0
}

// RefusedError is our own refusal to send; trying again is pointless.
type RefusedError struct{ Reason i18n.Text }

// Refuse returns our own refusal to send.
func Refuse(reason i18n.Text) error { return &RefusedError{reason} }

func (e *RefusedError) Error() string { return e.Reason.String() }

// Backoff doubles from a second to five minutes, with jitter, so that many
// clients of a server that comes back do not all ask at once.
func Backoff(attempt int) time.Duration {
	d := maxWait
	if attempt < 9 {
		d = min(FirstWait<<attempt, maxWait)
	}
	return d/2 + rand.N(d/2+1)
}

func retryAfter(h mautrix.HTTPError) time.Duration {
	wait := retryafter.Parse(h.Response.Header.Get("Retry-After"), 0)
	if h.RespError != nil {
		if ms, ok := h.RespError.ExtraData["retry_after_ms"].(float64); ok && ms > 0 {
			wait = max(wait, time.Duration(min(ms, float64(LongestWait/time.Millisecond)))*time.Millisecond)
		}
	}
	return min(max(wait, 0), LongestWait)
}
