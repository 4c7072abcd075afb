package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Refused is the error for an address that no request may go to.
type Refused struct {
	Host string // as in the URL
	Why  string // a clause without a subject: "is in a private network"
	Key  string // configuration that would allow it; "" = nothing does
}

func (r *Refused) Error() string {
	text := r.Host + " " + r.Why
	if r.Key != "" {
		text += "; only the operator can allow it, with `" + r.Key + "` in the configuration"
	}
	return text
}

// guard decides which addresses requests may go to. It checks the address that is dialled, after
// the name was resolved: a name may resolve to another address each time.
type guard struct {
	hosts    map[string]bool // "host:port" that the operator allowed
	fakeIP   []netip.Prefix  // in these a DNS on the machine puts public names
	ports    []string        // of all other hosts
	resolver *net.Resolver   // nil = the system's
	// machine returns the networks that the machine's interfaces are in.
	machine func() []netip.Prefix
}

type forbiddenNet struct {
	net netip.Prefix
	why string
}

// forbidden are the IPv4 networks that are not public, and why. In IPv6 only 2000::/3 is public.
var forbidden = []forbiddenNet{
	{netip.MustParsePrefix("127.0.0.0/8"), loopback},
	{netip.MustParsePrefix("::1/128"), loopback},
	{netip.MustParsePrefix("0.0.0.0/8"), loopback}, // connects to this machine
	{netip.MustParsePrefix("::/128"), loopback},
	{netip.MustParsePrefix("10.0.0.0/8"), private},
	{netip.MustParsePrefix("172.16.0.0/12"), private},
	{netip.MustParsePrefix("192.168.0.0/16"), private},
	{netip.MustParsePrefix("100.64.0.0/10"), private}, // carriers' NAT, VPNs
	{netip.MustParsePrefix("169.254.0.0/16"), private},
	{netip.MustParsePrefix("fc00::/7"), private},
	{netip.MustParsePrefix("fe80::/10"), private},
	{netip.MustParsePrefix("198.18.0.0/15"), fake},
	{netip.MustParsePrefix("192.0.0.0/24"), special},
	{netip.MustParsePrefix("192.0.2.0/24"), special},    // documentation
	{netip.MustParsePrefix("198.51.100.0/24"), special}, // documentation
	{netip.MustParsePrefix("203.0.113.0/24"), special},  // documentation
	{netip.MustParsePrefix("192.88.99.0/24"), special},  // 6to4 relays
	{netip.MustParsePrefix("224.0.0.0/3"), special},     // multicast, reserved, broadcast
	{netip.MustParsePrefix("2001::/23"), special},       // Teredo, benchmarks and other protocols
	{netip.MustParsePrefix("2001:db8::/32"), special},   // documentation
	{netip.MustParsePrefix("2002::/16"), special},       // 6to4
	{netip.MustParsePrefix("3fff::/20"), special},       // documentation
}

const (
	loopback = "is the assistant's own machine"
	private  = "is in a private network"
	fake     = "is in a range for tests, which some proxies use for public names"
	special  = "is not a public address"
)

var public6 = netip.MustParsePrefix("2000::/3")

// notPublic returns why ip is not public; "" = it is.
func notPublic(ip netip.Addr) string {
	for _, f := range forbidden {
		if f.net.Contains(ip) {
			return f.why
		}
	}
	if ip.Is6() && !public6.Contains(ip) {
		return special // also addresses that contain an IPv4 address
	}
	return ""
}

// MayBeFake reports whether a range may be that of a fake DNS: no machine has its addresses.
func MayBeFake(p netip.Prefix) bool {
	return p.Bits() >= 8 && (fakeNet6.Contains(p.Addr()) || !slices.ContainsFunc(forbidden, func(f forbiddenNet) bool {
		return f.why != fake && f.net.Overlaps(p)
	}))
}

var fakeNet6 = netip.MustParsePrefix("fc00::/8") // the half of fc00::/7 that networks do not use

// checkIP checks an address that host:port resolved to.
func (g *guard) checkIP(ip netip.Addr, host, port string) error {
	ip = ip.Unmap().WithZone("")
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil && slices.ContainsFunc(g.fakeIP, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	why := notPublic(ip)
	if why == "" && slices.ContainsFunc(g.machine(), func(p netip.Prefix) bool { return p.Contains(ip) }) {
		why = "is an address of the assistant's machine or its network"
	}
	switch {
	case why == "":
		return nil
	case why == fake && err != nil:
		return &Refused{host, why, "tools.web.fake_ip_ranges: [198.18.0.0/15]"}
	}
	return &Refused{host, why, g.allowKey(host, port)}
}

func (g *guard) allowKey(host, port string) string {
	return fmt.Sprintf("tools.web.hosts: [%q]", net.JoinHostPort(host, port))
}

// checkURL checks all that can be known before a name is resolved.
func (g *guard) checkURL(u *url.URL) error {
	host, port := u.Hostname(), portOf(u)
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || host == "":
		return &Refused{strconv.Quote(cut(u.String(), 80)), "is no http or https address", ""}
	case u.User != nil:
		return &Refused{host, "is written with a user name before it", ""}
	case len(u.String()) > maxURL:
		return &Refused{host, fmt.Sprintf("is in an address of more than %d characters", maxURL), ""}
	case g.hosts[hostPort(u)]:
		return nil
	case !slices.Contains(g.ports, port):
		return &Refused{host, "is asked on port " + port + ", and only 80 and 443 are open to the web", g.allowKey(host, port)}
	case oddNumber(host):
		return &Refused{host, "is an IP address in an unusual form", ""}
	}
	return nil
}

// maxURL limits addresses, in bytes.
const maxURL = 2000

func hostPort(u *url.URL) string { return net.JoinHostPort(u.Hostname(), portOf(u)) }

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// oddNumber reports whether host ends in a number but is no IP address in its usual form. Some
// resolvers read 0x7f.1, 017700000001 and 2130706433 as 127.0.0.1.
func oddNumber(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	labels := strings.Split(strings.TrimRight(host, "."), ".")
	last := strings.ToLower(labels[len(labels)-1])
	_, err := strconv.ParseUint(strings.TrimPrefix(last, "0x"), 16, 64)
	return last == "0x" || err == nil && last[0] >= '0' && last[0] <= '9'
}

// dial connects to addr, the host:port of a URL, if its address may be reached.
func (g *guard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTime, Resolver: g.resolver}
	d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		switch {
		case err != nil:
			return err
		case g.hosts[addr]:
			return nil
		case !slices.Contains(g.ports, strconv.Itoa(int(to.Port()))):
			return &Refused{host, "is asked on a port that is not open to the web", g.allowKey(host, port)}
		}
		return g.checkIP(to.Addr(), host, port)
	}
	return d.DialContext(ctx, network, addr)
}

const dialTime = 10 * time.Second

// also returns a guard that allows the host of u, too.
func (g *guard) also(u *url.URL) *guard {
	wider := *g
	wider.hosts = maps.Clone(g.hosts)
	wider.hosts[hostPort(u)] = true
	return &wider
}

// Transport reaches the server of the operator at address, a valid URL, whatever IP address it has.
// Elsewhere it reaches what the web tools do.
func Transport(address string) http.RoundTripper {
	u, err := url.Parse(strings.ToLower(address))
	if err != nil {
		u = &url.URL{} // nothing more is reached
	}
	return New(Config{}).guard.also(u).client(false).Transport
}

// client returns an HTTP client behind the guard. It has no cookies, no proxy and no connection that
// outlives its request. Without follow it stops at redirects.
func (g *guard) client(follow bool) *http.Client {
	return &http.Client{
		Transport: &http.Transport{DialContext: g.dial, DisableKeepAlives: true, TLSHandshakeTimeout: dialTime,
			MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			switch {
			case !follow:
				return http.ErrUseLastResponse
			case len(via) > maxRedirects:
				return errRedirects
			}
			to := hostPort(req.URL)
			if g.hosts[to] && to != hostPort(via[len(via)-1].URL) { // only the model itself asks the operator's servers
				return &Refused{req.URL.Hostname(), "is the operator's, and another server redirects to it", ""}
			}
			req.Header.Del("Referer") // it would tell the first address
			return g.checkURL(req.URL)
		},
	}
}

const maxRedirects = 5

var errRedirects = errors.New("it redirects more than 5 times")

// machineNetworks returns the networks of the machine's interfaces. On a very wide one, as of some
// VPNs, it returns only the machine's own address.
func machineNetworks() []netip.Prefix {
	addrs, _ := net.InterfaceAddrs() // without a list, the fixed networks are still refused
	var all []netip.Prefix
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if own := p.Addr(); own.Is4() && p.Bits() < 16 || own.Is6() && p.Bits() < 48 {
			p = netip.PrefixFrom(own, own.BitLen())
		}
		all = append(all, p)
	}
	return all
}
