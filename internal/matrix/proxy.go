package matrix

import (
	"net/http"
	"strings"
)

// webPages turns a web page with a good status into a bad gateway: it comes from
// a proxy, or from a network that wants somebody to log in, and not from the
// homeserver. Of many requests only the status is looked at.
type webPages struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p webPages) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.next.RoundTrip(r)
	if err == nil && resp.StatusCode < 300 && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") && !strings.Contains(r.URL.Path, "/download/") {
		resp.StatusCode = http.StatusBadGateway
		resp.Status = "502 a web page instead of an answer"
	}
	return resp, err
}

// CloseIdleConnections implements what http.Client looks for.
func (p webPages) CloseIdleConnections() {
	if t, ok := p.next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}
