package account

import (
	"net/http"
	"strings"
	"time"
)

// transport sends the requests of an Account.
type transport struct{ a *Account }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	// mautrix keeps its access token in a field. The field cannot be changed while others read it.
	if token := t.a.token.Load(); token != nil && r.Header.Get("Authorization") != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+*token)
	}
	if err := t.a.Store.CheckRequest(r); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // required of a RoundTripper
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
	// A web page with status 200 comes from a proxy or a captive portal. Callers of many requests
	// check the status only.
	if resp.StatusCode < 300 && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") &&
		!strings.Contains(r.URL.Path, "/download/") {
		resp.StatusCode = http.StatusBadGateway
		resp.Status = "502 a web page instead of an answer"
	}
	// The homeserver refuses a known one-time key ID with other contents. This happens after bot.db
	// was restored from an older copy: it generates key IDs again that this device has used since.
	// mautrix only logs the refusal and tries again at every sync.
	if resp.StatusCode == http.StatusBadRequest && strings.HasSuffix(r.URL.Path, "/keys/upload") {
		t.a.refusedUploads.Add(1)
	}
	return resp, nil
}

// HomeserverClockSkew returns by how much the homeserver's clock is ahead of ours.
func (a *Account) HomeserverClockSkew() time.Duration { return time.Duration(a.skew.Load()) }
