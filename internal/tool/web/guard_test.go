package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"reverie/internal/test/expect"
)

// names is a DNS server on loopback. A name gets its addresses in turn, a group for each lookup.
type names struct {
	mu    sync.Mutex
	zone  map[string][][]netip.Addr
	asked map[string]int
}

func (n *names) answer(packet []byte) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(packet)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	groups := n.zone[name]
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: head.ID, Response: true, RecursionAvailable: true, RecursionDesired: true}, Questions: []dnsmessage.Question{q}}
	if groups == nil {
		m.RCode = dnsmessage.RCodeNameError
	} else {
		turn := n.asked[name+q.Type.String()]
		n.asked[name+q.Type.String()]++
		for _, ip := range groups[min(turn, len(groups)-1)] {
			h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: dnsmessage.ClassINET}
			switch {
			case ip.Is4() && q.Type == dnsmessage.TypeA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: ip.As4()}})
			case ip.Is6() && q.Type == dnsmessage.TypeAAAA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
			}
		}
	}
	out, _ := m.Pack()
	return out
}

// resolver starts the server and returns a resolver that asks it only.
func (n *names) resolver(t *testing.T) *net.Resolver {
	conn := expect.Must(net.ListenPacket("udp4", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 4096)
		for {
			size, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(n.answer(buffer[:size]), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
}

// counted counts the connections that a listener accepts.
type counted struct {
	net.Listener
	n *atomic.Int32
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

// net127 is a web in which 127.50.0.0/16 stands for public addresses: a DNS gives them, and the rest
// of loopback has listeners that must not be reached.
type net127 struct {
	client            *Client
	port, allowed     string
	public, forbidden atomic.Int32
	dns               *names
	fill              *strings.Replacer // {P}, the port of the web; {A}, an allowed one; {C}, one beside it
}

// serve listens on an address of loopback and returns the port. It skips a test where there is no such address.
func serve(t *testing.T, host, port string, n *atomic.Int32, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		if strings.Contains(host, ":") {
			t.Log("no IPv6 here:", err)
			return port
		}
		t.Skip("this machine does not have all of 127.0.0.0/8:", err)
	}
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(counted{l, n}) }()
	t.Cleanup(func() { _ = s.Close() })
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

func newNet127(t *testing.T, fake ...netip.Prefix) *net127 {
	w := &net127{dns: &names{asked: map[string]int{}, zone: map[string][][]netip.Addr{}}}
	inside := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the secret of the house") })
	w.port = serve(t, "127.50.0.1", "0", &w.public, http.HandlerFunc(w.site))
	serve(t, "127.50.0.2", w.port, &w.public, http.HandlerFunc(w.site))
	for _, host := range []string{"127.0.0.1", "127.0.0.2", "127.1.2.3", "::1"} {
		serve(t, host, w.port, &w.forbidden, inside)
	}
	w.allowed = serve(t, "127.0.0.1", "0", new(atomic.Int32), http.HandlerFunc(w.site))
	closed := serve(t, "127.0.0.1", "0", &w.forbidden, inside) // beside the port that is allowed
	w.client = New(Config{Fetch: true, Hosts: []string{"127.0.0.1:" + w.allowed, "Named.test:" + w.allowed}, FakeIP: fake, Resolver: w.dns.resolver(t)})
	w.client.guard.ports = []string{w.port}
	w.client.guard.machine = func() []netip.Prefix {
		return []netip.Prefix{netip.MustParsePrefix("93.184.0.0/16"), netip.MustParsePrefix("2a01:4f8::/64")}
	}
	w.fill = strings.NewReplacer("{P}", w.port, "{A}", w.allowed, "{C}", closed)
	w.zones(t)
	return w
}

// zones reads testdata/zone.txt: name, then groups of addresses.
func (w *net127) zones(t *testing.T) {
	data := string(expect.Must(os.ReadFile("testdata/zone.txt"))(t))
	for line := range strings.Lines(data) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		groups := [][]netip.Addr{nil}
		for _, f := range fields[1:] {
			if f == "|" {
				groups = append(groups, nil)
				continue
			}
			groups[len(groups)-1] = append(groups[len(groups)-1], netip.MustParseAddr(f))
		}
		w.dns.zone[fields[0]] = groups
	}
}

// addresses are those of testdata/urls.txt: what becomes of a request, and its URL.
func (w *net127) addresses(t *testing.T) (all [][2]string) {
	data := string(expect.Must(os.ReadFile("testdata/urls.txt"))(t))
	for line := range strings.Lines(data) {
		if want, address, ok := strings.Cut(strings.TrimSpace(line), " "); ok && want != "#" {
			all = append(all, [2]string{want, w.fill.Replace(strings.TrimSpace(address))})
		}
	}
	return all
}

// TestNoForbiddenAddressIsReached: over all of testdata/urls.txt no connection reaches a listener that is
// not public, and the others answer.
func TestNoForbiddenAddressIsReached(t *testing.T) {
	w := newNet127(t, netip.MustParsePrefix("127.50.0.0/16"))
	all, reached := w.addresses(t), 0
	for _, x := range all {
		p, err := w.client.Fetch(t.Context(), x[1])
		var refused *Refused
		got := "ok"
		switch {
		case errors.As(err, &refused):
			got = "refused"
		case err != nil:
			got = "error"
		default:
			reached++
		}
		expect.False(t, got != x[0], "%s: %s, want %s: %v %q", x[1], got, x[0], err, p.Text)
		expect.False(t, err == nil && !strings.HasPrefix(p.Text, "public page"), "%s reads %q", x[1], p.Text)
		expect.False(t, err != nil && strings.Contains(x[1], ".test") && strings.Contains(err.Error(), "127.0.0.1") && !strings.Contains(x[1], "127.0.0.1"), "%s: the error tells what a name resolves to: %v", x[1], err)
		if n := w.forbidden.Load(); n > 0 {
			t.Fatalf("%s: %d connections to what must not be reached", x[1], n)
		}
	}
	expect.False(t, len(all) < 120, "%d addresses", len(all))
	t.Logf("%d addresses, %d read, %d connections to public listeners, %d to forbidden ones", len(all), reached, w.public.Load(), w.forbidden.Load())
}

// TestForbiddenListenersAreThere: with names allowed to lie anywhere, the same addresses do reach them.
func TestForbiddenListenersAreThere(t *testing.T) {
	w := newNet127(t, netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"))
	for _, x := range w.addresses(t) {
		if strings.Contains(x[1], "loop.test") {
			_, _ = w.client.Fetch(t.Context(), x[1])
		}
	}
	expect.False(t, w.forbidden.Load() < 5, "only %d connections", w.forbidden.Load())
}

// TestRefusalsNameTheKey: the operator reads which key allows an address.
func TestRefusalsNameTheKey(t *testing.T) {
	w := newNet127(t)
	for address, key := range map[string]string{
		"http://loop.test:{P}/":     `tools.web.hosts: ["loop.test:{P}"]`,
		"http://127.0.0.1:{C}/":     `tools.web.hosts: ["127.0.0.1:{C}"]`,
		"http://fakeip.test:{P}/":   "tools.web.fake_ip_ranges: [198.18.0.0/15]",
		"http://own.test:{P}/":      `tools.web.hosts: ["own.test:{P}"]`,
		"http://[fe80::1%25lo]:{P}": "tools.web.hosts:",
	} {
		_, err := w.client.Fetch(t.Context(), w.fill.Replace(address))
		expect.False(t, err == nil || !strings.Contains(err.Error(), w.fill.Replace(key)), "%s: %v", address, err)
	}
}

// TestRequestsSayLittle: no cookies, and no trace of the page that redirected.
func TestRequestsSayLittle(t *testing.T) {
	w := newNet127(t, netip.MustParsePrefix("127.50.0.0/16"))
	p := expect.Must(w.client.Fetch(t.Context(), w.fill.Replace("http://public.test:{P}/to?http://two.test:{P}/end")))(t)
	expect.Equal(t, p.Text, `public page /end referer="" cookie=""`)
	expect.Equal(t, p.URL, w.fill.Replace("http://two.test:{P}/end"))
}

// site is a public site. /to?URL redirects, /hops/N redirects N times.
func (w *net127) site(rw http.ResponseWriter, r *http.Request) {
	var hops int
	if _, err := fmt.Sscanf(r.URL.Path, "/hops/%d", &hops); err == nil && hops > 0 {
		http.Redirect(rw, r, fmt.Sprintf("/hops/%d", hops-1), http.StatusFound)
		return
	}
	if r.URL.Path == "/to" {
		rw.Header().Set("Location", r.URL.RawQuery)
		rw.WriteHeader(http.StatusFound)
		return
	}
	fmt.Fprintf(rw, "public page %s referer=%q cookie=%q", r.URL.Path, r.Referer(), r.Header.Get("Cookie"))
}

// TestTransport: the server that is named is reached on loopback, no other one is.
func TestTransport(t *testing.T) {
	reached := 0
	serve := func() *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
		t.Cleanup(s.Close)
		return s
	}
	named, other := serve(), serve()
	client := http.Client{Transport: Transport(named.URL + "/mcp")}
	resp, err := client.Get(named.URL + "/mcp")
	expect.OK(t, err)
	expect.OK(t, resp.Body.Close())
	_, err = client.Get(other.URL) //nolint:bodyclose // there is none
	var refused *Refused
	expect.False(t, !errors.As(err, &refused) || reached != 1, "%d reached: %v", reached, err)
}
