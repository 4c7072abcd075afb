package account

import (
	"net/http"
	"strings"
	"time"
)

// transport carries the requests of an Account.
type transport struct{ a *Account }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	// mautrix keeps its access token in a field that cannot be changed while others read it.
	if token := t.a.token.Load(); token != nil && r.Header.Get("Authorization") != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+*token)
	}
	if err := t.a.Store.CheckRequest(r); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper does so
		}
		return nil, err
	}
	resp, err := t.a.cfg.HTTP.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		t.a.skew.Store(int64(at.Sub(t.a.cfg.Now())))
	}
	// A web page with a good status comes from a proxy, or from a network that wants somebody
	// to log in. Of many requests only the status is looked at.
	if resp.StatusCode < 300 && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") &&
		!strings.Contains(r.URL.Path, "/download/") {
		resp.StatusCode = http.StatusBadGateway
		resp.Status = "502 a web page instead of an answer"
	}
	// The homeserver refuses a one-time key whose name it knows with other contents. That happens
	// when bot.db was put back from an older copy: it makes the keys anew that this device has used
	// since. mautrix only logs the refusal, and tries again at every sync.
	if resp.StatusCode == http.StatusBadRequest && strings.HasSuffix(r.URL.Path, "/keys/upload") {
		t.a.refused.Add(1)
	}
	return resp, nil
}

// Skew is how far the homeserver's clock is ahead of ours.
func (a *Account) Skew() time.Duration { return time.Duration(a.skew.Load()) }
