package matrix

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"maunium.net/go/mautrix"
)

// discoverTime bounds each request that finds out about a homeserver.
const discoverTime = 5 * time.Second

// What an address has instead of a homeserver. The text continues a sentence that begins with the address.
var (
	ErrNotMatrix = errors.New("answers, but not as a Matrix homeserver")
	ErrWellKnown = errors.New("names no homeserver's address in /.well-known/matrix/client")
)

// Homeserver is what a homeserver tells everybody about itself.
type Homeserver struct {
	URL     string   // base address of its client API
	Name    string   // the server name that was typed; empty = an address was
	Version string   // the newest version of Matrix that it speaks; empty = it does not answer
	Flows   []string // the ways to log in

	carrier http.RoundTripper
}

// FindHomeserver asks the homeserver at an address, or the one of a server name. A server
// name is looked up in /.well-known/matrix/client, as Matrix clients do. The requests go
// through carrier; nil = http.DefaultTransport. With an error, URL is where it was looked for.
func FindHomeserver(ctx context.Context, typed string, carrier http.RoundTripper) (h Homeserver, err error) {
	h = Homeserver{URL: strings.TrimRight(typed, "/"), carrier: carrier}
	if !strings.Contains(typed, "://") {
		h.Name = typed
		if h.URL, err = wellKnown(ctx, typed, carrier); err != nil {
			return h, err
		}
	}
	cli, err := h.client()
	if err != nil {
		return h, err
	}
	ask, cancel := context.WithTimeout(ctx, discoverTime)
	defer cancel()
	version, err := newestVersion(ask, cli)
	if err != nil {
		return h, err
	}
	flows, err := cli.GetLoginFlows(ask)
	if err != nil {
		return h, err
	}
	if flows == nil { // null
		return h, ErrNotMatrix
	}
	h.Version = version
	for _, f := range flows.Flows {
		h.Flows = append(h.Flows, string(f.Type))
	}
	return h, nil
}

// wellKnown returns the address of the homeserver of a server name.
func wellKnown(ctx context.Context, name string, carrier http.RoundTripper) (string, error) {
	found, err := mautrix.DiscoverClientAPIWithClient(ctx, &http.Client{Transport: carrier, Timeout: discoverTime}, name)
	if err != nil || found == nil || found.Homeserver.BaseURL == "" { // no file, or another one
		return "https://" + name, nil
	}
	base := strings.TrimRight(found.Homeserver.BaseURL, "/")
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil {
		return "https://" + name, ErrWellKnown
	}
	return base, nil
}

func (h Homeserver) client() (*mautrix.Client, error) {
	cli, err := newMautrix(Config{Homeserver: h.URL, HTTP: h.carrier, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		cli.ResponseSizeLimit = 1 << 20
	}
	return cli, err
}

// Passwords reports whether accounts log in with a password.
func (h Homeserver) Passwords() bool {
	return slices.Contains(h.Flows, string(mautrix.AuthTypePassword))
}

// CheckAccount says why user may be no account of the homeserver.
func (h Homeserver) CheckAccount(ctx context.Context, user string) error {
	name := server(user)
	home, err := url.Parse(h.URL)
	if err != nil {
		return err
	}
	if name == h.Name || home.Hostname() == "localhost" || net.ParseIP(home.Hostname()).IsLoopback() { // a server on this machine may have any name
		return nil
	}
	at, err := wellKnown(ctx, name, h.carrier)
	host := home.Hostname()
	switch {
	case err == nil && at == h.URL:
		return nil
	case err == nil && at != "https://"+name:
		return fmt.Errorf("the accounts of %s are at %s, not at %s", name, at, h.URL)
	case name == host, name == home.Host, strings.HasSuffix(host, "."+name):
		return nil
	}
	return fmt.Errorf("nothing says that %s has accounts of %s", h.URL, name)
}

// TryPassword logs in with a password and out again, so that no device is left.
func (h Homeserver) TryPassword(ctx context.Context, user, password string) error {
	cli, err := h.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*discoverTime)
	defer cancel()
	resp, err := cli.Login(ctx, &mautrix.ReqLogin{
		Type:       mautrix.AuthTypePassword,
		Identifier: mautrix.UserIdentifier{Type: mautrix.IdentifierTypeUser, User: user},
		Password:   password, InitialDeviceDisplayName: "Reverie",
	})
	switch {
	case errors.Is(err, mautrix.MForbidden):
		return fmt.Errorf("%s does not accept %s with this password", h.URL, user)
	case errors.Is(err, mautrix.MUserDeactivated):
		return fmt.Errorf("the account %s is deactivated on %s", user, h.URL)
	case err != nil:
		return fmt.Errorf("%s does not let %s log in: %w", h.URL, user, err)
	}
	if resp == nil || resp.AccessToken == "" {
		return fmt.Errorf("%s answers the login with something else", h.URL)
	}
	cli.AccessToken = resp.AccessToken
	if _, err := cli.Logout(ctx); err != nil {
		return fmt.Errorf("the password is right, but device %s could not be logged out again; remove it in another client: %w",
			resp.DeviceID, err)
	}
	if resp.UserID.String() != user {
		return fmt.Errorf("this password logs %s in, not %s", resp.UserID, user)
	}
	return nil
}
