package retry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"maunium.net/go/mautrix"
)

// Holds F4.
func TestClassify(t *testing.T) {
	failed := func(code int, header string, body map[string]any, kind string) error {
		h := http.Header{}
		if header != "" {
			h.Set("Retry-After", header)
		}
		var re *mautrix.RespError
		if kind != "" {
			re = &mautrix.RespError{ErrCode: kind, StatusCode: code, ExtraData: body}
		}
		return fmt.Errorf("send: %w", mautrix.HTTPError{Response: &http.Response{StatusCode: code, Header: h}, RespError: re})
	}
	for _, c := range []struct {
		name  string
		err   error
		want  Class
		least time.Duration
	}{
		{"fine", nil, Fine, 0},
		{"no network", mautrix.HTTPError{WrappedError: errors.New("connection refused")}, Again, 0},
		{"time ran out", context.DeadlineExceeded, Again, 0},
		{"stopped", context.Canceled, Never, 0},
		{"database busy", errors.New("database is locked"), Again, 0},
		{"our own refusal", fmt.Errorf("send: %w", &RefusedError{"no"}), Never, 0},
		{"429 with a header", failed(429, "7", nil, ""), Again, 7 * time.Second},
		{"429 with a body", failed(429, "", map[string]any{"retry_after_ms": 9000.0}, "M_LIMIT_EXCEEDED"), Again, 9 * time.Second},
		{"429 with both, the header is longer", failed(429, "11", map[string]any{"retry_after_ms": 9000.0}, "M_LIMIT_EXCEEDED"), Again, 11 * time.Second},
		{"429 with both, the body is longer", failed(429, "3", map[string]any{"retry_after_ms": 9000.0}, "M_LIMIT_EXCEEDED"), Again, 9 * time.Second},
		{"429 with nonsense", failed(429, "soon", map[string]any{"retry_after_ms": "x"}, "M_LIMIT_EXCEEDED"), Again, 0},
		{"500", failed(500, "", nil, "M_UNKNOWN"), Again, 0},
		{"502 without a body", failed(502, "", nil, ""), Again, 0},
		{"200 with HTML", failed(200, "", nil, ""), Again, 0},
		{"forbidden", failed(403, "", nil, "M_FORBIDDEN"), Never, 0},
		{"too large", failed(413, "", nil, "M_TOO_LARGE"), Never, 0},
		{"token gone", failed(401, "", nil, "M_UNKNOWN_TOKEN"), logout, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, wait := Classify(c.err, 0)
			if got != c.want || wait < c.least || wait > c.least+FirstWait {
				t.Errorf("verdict %d after %s, want %d after %s or a little more", got, wait, c.want, c.least)
			}
		})
	}
	for attempt := range 100 { // it grows, and is not the same for everybody
		seen, longest := map[time.Duration]bool{}, min(time.Second<<min(attempt, 20), maxWait)
		for range 20 {
			d := Backoff(attempt)
			seen[d] = d >= longest/2 && d <= longest
		}
		if len(seen) < 5 || slices.Contains(slices.Collect(maps.Values(seen)), false) {
			t.Errorf("backoff(%d) is %v, want up to %s", attempt, seen, longest)
		}
	}
}
