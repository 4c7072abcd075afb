// Package web searches the web and reads its pages. No request reaches an address of the machine or
// its network unless the operator named it; a page is text of strangers, without what a reader does
// not see.
package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Config says what may be asked. The zero value fetches nothing and has no search engine.
type Config struct {
	Engines []Engine // in the order in which they are tried
	Fetch   bool     // pages may be read
	Hosts   []string // "host:port" of the operator, reachable whatever their address is
	// FakeIP are the ranges in which a DNS of the operator's proxy puts public names.
	FakeIP   []netip.Prefix
	Resolver *net.Resolver // nil = the system's
	// PDF returns the text of a PDF file; nil = they are not read.
	PDF func(ctx context.Context, data []byte) (string, error)
	Log *slog.Logger // nil = silent
}

// Client searches and fetches. It is safe for concurrent use.
type Client struct {
	cfg   Config
	guard *guard
}

// New returns a client. It makes no request.
func New(cfg Config) *Client {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	g := &guard{hosts: map[string]bool{}, fakeIP: cfg.FakeIP, ports: []string{"80", "443"}, resolver: cfg.Resolver,
		machine: machineNetworks}
	for _, host := range cfg.Hosts {
		g.hosts[strings.ToLower(host)] = true
	}
	return &Client{cfg, g}
}

// Searches reports whether there is a search engine. A nil Client has none.
func (c *Client) Searches() bool { return c != nil && len(c.cfg.Engines) > 0 }

// Fetches reports whether pages may be read. A nil Client reads none.
func (c *Client) Fetches() bool { return c != nil && c.cfg.Fetch }

// agent names the assistant to servers.
const agent = "Mozilla/5.0 (compatible; Reverie)"

// get sends a GET request. The caller closes the body.
func (c *Client) get(ctx context.Context, from *http.Client, address string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("User-Agent", agent)
	resp, err := from.Do(req)
	var outer *url.Error
	if errors.As(err, &outer) { // it has the whole address, which may hold what a person asked
		err = outer.Err
		c.cfg.Log.Info("web request failed", "host", req.URL.Host, "err", err)
	}
	return resp, err
}

// explain returns err without addresses of the machine's network, for the model.
func explain(err error) error {
	var refused *Refused
	var name *net.DNSError
	var cert *tls.CertificateVerificationError
	var dial *net.OpError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, errRedirects):
		return errRedirects
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &name) && name.IsTimeout:
		return errSlow
	case errors.As(err, &name):
		return fmt.Errorf("there is no host %s", name.Name)
	case errors.As(err, &cert):
		return errors.New("its certificate is not valid")
	case errors.As(err, &dial):
		return errors.New("its server does not answer")
	}
	return err
}

var errSlow = errors.New("it takes too long")

const (
	fetchTime  = 15 * time.Second
	searchTime = 8 * time.Second // of one engine: three fit into one call
)

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
