package matrix

import (
	"net/http"
	"sync/atomic"
	"time"
)

// serverClock notes how far the homeserver's clock is from ours, from the Date
// of its answers.
type serverClock struct {
	skew atomic.Int64 // nanoseconds that the homeserver is ahead
	now  func() time.Time
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (s *serverClock) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(r)
	if err == nil {
		if t, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			s.skew.Store(int64(t.Sub(s.now())))
		}
	}
	return resp, err
}

// CloseIdleConnections implements what http.Client looks for.
func (s *serverClock) CloseIdleConnections() {
	if t, ok := s.next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// serverNow is the time by the homeserver's clock, to the second.
func (c *Client) serverNow() time.Time { return c.now().Add(time.Duration(c.clock.skew.Load())) }
