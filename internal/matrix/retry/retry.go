// Package retry classifies failed requests and waits before the next try.
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

// Class says whether a failed request is worth another try.
type Class int

// The classes.
const (
	Fine   Class = iota // no error
	Again               // a later try may succeed
	logout              // the access token is invalid
	Never               // the server refuses, and will refuse again
)

const (
	// FirstWait is the maximum delay of the second try.
	FirstWait = time.Second
	maxWait   = 5 * time.Minute
	// LongestWait limits the delay that a server may ask for.
	LongestWait = time.Hour
)

// Classify returns the class of an error and the delay before the next try. attempt is the number of
// earlier failures. The delay that a server asks for is respected; the longest one counts.
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
		return Again, wait // the network, or a local fault that may pass: a busy database, keys not fetched
	}
	switch code := h.Response.StatusCode; {
	case errors.Is(err, mautrix.MUnknownToken), errors.Is(err, mautrix.MMissingToken):
		return logout, wait
	case code == http.StatusTooManyRequests, errors.Is(err, mautrix.MLimitExceeded):
		return Again, max(wait, retryAfter(h))
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code < 400:
		return Again, max(wait, retryAfter(h)) // < 400: a good status with an invalid body
	}
	return Never, 0
}

// RefusedError is a local refusal to send; another try is pointless.
type RefusedError struct{ Reason i18n.Text }

// Refuse returns a RefusedError.
func Refuse(reason i18n.Text) error { return &RefusedError{reason} }

func (e *RefusedError) Error() string { return e.Reason.String() }

// Backoff returns a delay that doubles from one second to five minutes, with jitter. So the clients
// of a restarted server do not all retry at once.
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
