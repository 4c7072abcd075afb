package matrix

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"reverie/internal/i18n"

	"go.mau.fi/util/retryafter"
	"maunium.net/go/mautrix"
)

// verdict is what a failed request means for trying it again.
type verdict int

const (
	fine   verdict = iota // no error
	again                 // later, it may work
	logout                // the access token is not valid any more
	never                 // the server said no, and will say no again
)

const (
	firstWait = time.Second
	maxWait   = 5 * time.Minute
	// longestWait is what a server may ask for.
	longestWait = time.Hour
)

// judge says whether trying again makes sense and how long to wait first.
// attempt counts the failures before this one. A server that says how long to
// wait is obeyed, wherever it says it: the longer one counts.
func judge(err error, attempt int) (verdict, time.Duration) {
	if err == nil {
		return fine, 0
	}
	if errors.Is(err, context.Canceled) {
		return never, 0
	}
	var refused *refusedError
	if errors.As(err, &refused) {
		return never, 0
	}
	wait := backoff(attempt)
	var h mautrix.HTTPError
	if !errors.As(err, &h) || h.Response == nil {
		return again, wait // the network, or something of ours that may pass: a busy database, keys not fetched
	}
	switch code := h.Response.StatusCode; {
	case errors.Is(err, mautrix.MUnknownToken), errors.Is(err, mautrix.MMissingToken):
		return logout, wait
	case code == http.StatusTooManyRequests, errors.Is(err, mautrix.MLimitExceeded):
		return again, max(wait, retryAfter(h))
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code < 400:
		return again, max(wait, retryAfter(h)) // < 400: a good status with a body that is none
	}
	return never, 0
}

// refusedError is our own refusal to send.
type refusedError struct{ reason i18n.Text }

func (e *refusedError) Error() string { return e.reason.String() }

// backoff doubles from a second to five minutes, with jitter, so that many
// clients of a server that comes back do not all ask at once.
func backoff(attempt int) time.Duration {
	d := maxWait
	if attempt < 9 {
		d = min(firstWait<<attempt, maxWait)
	}
	return d/2 + rand.N(d/2+1)
}

func retryAfter(h mautrix.HTTPError) time.Duration {
	wait := retryafter.Parse(h.Response.Header.Get("Retry-After"), 0)
	if h.RespError != nil {
		if ms, ok := h.RespError.ExtraData["retry_after_ms"].(float64); ok && ms > 0 {
			wait = max(wait, time.Duration(min(ms, float64(longestWait/time.Millisecond)))*time.Millisecond)
		}
	}
	return min(max(wait, 0), longestWait)
}

// doing adds to an error what was being done; no error stays none.
func doing(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
