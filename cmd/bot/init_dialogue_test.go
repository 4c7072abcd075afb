package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
)

// hosts answers requests by the name of the host, without a network.
type hosts map[string]http.Handler

func (h hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	handler := h[r.URL.Host]
	if handler == nil {
		return nil, &net.DNSError{Err: "no such host", Name: r.URL.Host, IsNotFound: true}
	}
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// pages answers with texts by path, and with 404 elsewhere.
type pages map[string]string

func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, ok := p[r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = w.Write([]byte(text))
}

const (
	versionsPath  = "/_matrix/client/versions"
	flowsPath     = "/_matrix/client/v3/login"
	wellKnownPath = "/.well-known/matrix/client"
)

var aHomeserver = pages{versionsPath: `{"versions":["r0.6.1","v1.11"]}`, flowsPath: `{"flows":[{"type":"m.login.password"}]}`}

// modelServer answers like a model server with these models.
func modelServer(t *testing.T, models ...string) string {
	t.Helper()
	list := ""
	for _, m := range models {
		list += `,{"id":"` + m + `"}`
	}
	s := httptest.NewServer(pages{"/v1/models": `{"data":[` + strings.TrimPrefix(list, ",") + `]}`})
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// asked has questions answered, one line each.
func asked(web hosts, lines ...string) (answers, string, error) {
	var out bytes.Buffer
	n, err := ask(context.Background(), strings.NewReader(strings.Join(lines, "\n")+"\n"), &out, defaultAnswers(), "writes config.yaml", web)
	return n.answers, out.String(), err
}

// cutOff is the screen where the answers end before the questions.
func cutOff(t *testing.T, web hosts, lines ...string) (screen string) {
	t.Helper()
	_, screen, err := asked(web, lines...)
	if err == nil || !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("%v", err)
	}
	return screen
}

func wants(t *testing.T, screen string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(screen, text) {
			t.Errorf("no %q in:\n%s", text, screen)
		}
	}
}

// TestInitFindsHomeserver: a server name is looked up as Matrix clients do.
func TestInitFindsHomeserver(t *testing.T) {
	for _, c := range []struct {
		name, typed, want string
		web               hosts
	}{
		{"well-known", "example.org", "https://matrix.example.org", hosts{
			"example.org":        pages{wellKnownPath: `{"m.homeserver":{"base_url":"https://matrix.example.org/"}}`},
			"matrix.example.org": aHomeserver}},
		{"no well-known", "example.org", "https://example.org", hosts{"example.org": aHomeserver}},
		{"a name with a port", "example.org:8448", "https://example.org:8448", hosts{"example.org:8448": aHomeserver}},
		{"a full address", "http://10.0.0.7:8008/", "http://10.0.0.7:8008", hosts{"10.0.0.7:8008": aHomeserver}},
	} {
		screen := cutOff(t, c.web, c.typed, "<", "")
		wants(t, screen, c.want+" answers (Matrix v1.11)", "["+c.want)
		if t.Failed() {
			t.Fatal(c.name)
		}
	}
}

// TestInitDoubtsHomeserver: what is no homeserver is said, and kept only if the person says so.
func TestInitDoubtsHomeserver(t *testing.T) {
	down := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	for _, c := range []struct {
		name, want string
		web        hosts
	}{
		{"nobody", "https://example.org does not answer: lookup", nil},
		{"a web page", "https://example.org answers, but not as a Matrix homeserver", hosts{"example.org": pages{versionsPath: "<html>"}}},
		{"nothing there", "https://example.org answers, but not as a Matrix homeserver", hosts{"example.org": pages{}}},
		{"other JSON", "https://example.org answers, but not as a Matrix homeserver", hosts{"example.org": pages{versionsPath: `{"versions":["1.0"]}`}}},
		{"a proxy", "https://example.org does not answer", hosts{"example.org": down}},
		{"a bad well-known", "https://example.org names no homeserver's address", hosts{"example.org": pages{wellKnownPath: `{"m.homeserver":{"base_url":"ftp://x"}}`}}},
		{"a well-known of nothing", "https://gone.example.org does not answer: lookup", hosts{
			"example.org": pages{wellKnownPath: `{"m.homeserver":{"base_url":"https://gone.example.org"}}`}}},
	} {
		screen := cutOff(t, c.web, "example.org")
		wants(t, screen, c.want, "Enter keeps")
		if strings.Contains(screen, "Bot's account") {
			t.Errorf("%s: asked on:\n%s", c.name, screen)
		}
		screen = cutOff(t, c.web, "example.org", "")
		wants(t, screen, "Bot's account")
	}
	screen := cutOff(t, nil, "ftp://example.org", "https://me:secret@example.org")
	if strings.Contains(screen, "Enter keeps") || strings.Count(screen, "a server name such as example.org") != 2 {
		t.Error(screen)
	}
}

// TestInitAccount: the account must be one of the homeserver, and the owner another one.
func TestInitAccount(t *testing.T) {
	web := hosts{
		"example.org": pages{wellKnownPath: `{"m.homeserver":{"base_url":"https://matrix.example.org"}}`}, "matrix.example.org": aHomeserver,
		"elsewhere.org": pages{wellKnownPath: `{"m.homeserver":{"base_url":"https://hs.elsewhere.org"}}`},
	}
	for _, home := range []string{"example.org", "https://matrix.example.org"} {
		screen := cutOff(t, web, home, "reverie", "@reverie:elsewhere.org", "@reverie:exmaple.org", "@reverie:example.org")
		wants(t, screen, "a full id is needed", "accounts of elsewhere.org are at https://hs.elsewhere.org, not at https://matrix.example.org",
			"nothing says that https://matrix.example.org has accounts of exmaple.org", "The password of")
	}
	screen := cutOff(t, web, "example.org", "@reverie:exmaple.org", "", "")
	wants(t, screen, "Your own Matrix id")
	screen = cutOff(t, web, "example.org", "@reverie:example.org", "", "@reverie:example.org", "@me:elsewhere.org")
	wants(t, screen, "not the bot's", "The address of the language model server")
}

// TestInitWithoutPasswords: where no password logs in, the file asks for an access token.
func TestInitWithoutPasswords(t *testing.T) {
	web := hosts{"example.org": pages{versionsPath: `{"versions":["v1.11"]}`, flowsPath: `{"flows":[{"type":"m.login.sso"}]}`}}
	a, screen, err := asked(web, "example.org", "@reverie:example.org", "@me:example.org", modelServer(t, "m"), "", "UTC", "")
	if err != nil {
		t.Fatalf("%v\n%s", err, screen)
	}
	wants(t, screen, "no login with a password", "access token")
	text := renderConfig(a)
	wants(t, string(text), "\n  # password: ${MATRIX_PASSWORD}\n", "\n  access_token: ${MATRIX_TOKEN}\n")
	if strings.Contains(screen, "The password of") {
		t.Error(screen)
	}
}

// TestInitTriesThePassword: it logs in and out again, and the password stands nowhere.
func TestInitTriesThePassword(t *testing.T) {
	s := matrixtest.Start(t)
	s.Account("reverie", "a long password")
	s.Account("other", "its password")
	a, screen, err := asked(hosts{strings.TrimPrefix(s.URL, "http://"): s}, s.URL, "@reverie:matrix.test", "a wrong password", "a long password",
		"@me:matrix.test", modelServer(t, "m"), "", "UTC", "")
	if err != nil {
		t.Fatalf("%v\n%s", err, screen)
	}
	wants(t, screen, s.URL+" does not accept @reverie:matrix.test with this password", "The password is right")
	if s.Count("login") != 3 /* with the question how to log in */ || s.Count("logout") != 1 {
		t.Errorf("%d logins, %d logouts", s.Count("login"), s.Count("logout"))
	}
	if strings.Contains(string(renderConfig(a))+screen, "a long password") {
		t.Errorf("the password is shown:\n%s", screen)
	}
	wants(t, screen, "3  Password       tried")
	// The password of one account is not tried with another one.
	a, screen, err = asked(hosts{strings.TrimPrefix(s.URL, "http://"): s}, s.URL, "@reverie:matrix.test", "a long password", "@me:matrix.test",
		modelServer(t, "m"), "", "UTC", "2", "@other:matrix.test", "<", "", "")
	if err != nil || a.User != "@other:matrix.test" {
		t.Errorf("%+v, %v", a, err)
	}
	wants(t, screen, "3  Password       none")
}

// TestInitModels: the model is chosen from what the server has.
func TestInitModels(t *testing.T) {
	url := modelServer(t, "nomic-embed-text", "llama3", "qwen3:8b", "2")
	for _, c := range []struct{ typed, want string }{
		{"", "qwen3:8b"}, {"1", "nomic-embed-text"}, {"llama3", "llama3"}, {"2", "2"}, {"3", "qwen3:8b"}, {"9\nllama3", "llama3"}, {"mine\n", "mine"},
	} {
		a, screen, err := asked(nil, "", url, c.typed, "UTC", "")
		if err != nil || a.Model != c.want || a.ModelURL != url || a.KeyVariable != "" {
			t.Fatalf("%q: %+v, %v\n%s", c.typed, a, err, screen)
		}
		wants(t, screen, "2  llama3")
		if c.typed == "mine\n" {
			wants(t, screen, url+" has no model mine", "Enter keeps")
		}
	}
	// Without /v1, it is found; a default that the server lacks gives way.
	url = modelServer(t, "embedding-small", "llama3")
	a, screen, err := asked(nil, "", strings.TrimSuffix(url, "/v1")+"/", "", "UTC", "")
	if err != nil || a.ModelURL != url || a.Model != "llama3" {
		t.Errorf("%+v, %v\n%s", a, err, screen)
	}
	// A server without models is said to have none.
	screen = cutOff(t, nil, "", modelServer(t))
	wants(t, screen, "has no model yet")
	// The stand-in is not asked over any network.
	a, screen, err = asked(nil, "", rehearsalURL, "", "UTC", "")
	if err != nil || a.ModelURL != rehearsalURL || a.Model != "rehearsal" {
		t.Errorf("%+v, %v\n%s", a, err, screen)
	}
}

// TestInitModelServerAway: a server that does not answer, or not as one, may be kept.
func TestInitModelServerAway(t *testing.T) {
	s := httptest.NewServer(pages{"/v1/models": "<html>"})
	page := s.URL + "/v1"
	gone := httptest.NewServer(nil)
	gone.Close()
	t.Cleanup(s.Close)
	for url, want := range map[string]string{page: "something else than a list of models", gone.URL + "/v1": "connection refused"} {
		a, screen, err := asked(nil, "", url, "", "", "llama3", "UTC", "")
		if err != nil || a.ModelURL != url || a.Model != "llama3" {
			t.Fatalf("%+v, %v\n%s", a, err, screen)
		}
		wants(t, screen, url, want, "Enter keeps")
	}
}

// TestInitKey: a server that wants a key is asked with the one of the variable.
func TestInitKey(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		pages{"/v1/models": `{"data":[{"id":"big"}]}`}.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	t.Setenv("RIGHT_KEY", "sk-right")
	t.Setenv("WRONG_KEY", "sk-wrong")
	a, screen, err := asked(nil, "", s.URL, "sk-right", "", "WRONG_KEY", "RIGHT_KEY", "", "UTC", "")
	if err != nil || a.KeyVariable != "RIGHT_KEY" || a.Model != "big" || a.ModelURL != s.URL+"/v1" {
		t.Fatalf("%+v, %v\n%s", a, err, screen)
	}
	wants(t, screen, "wants a key", "not the key", "does not accept the key in WRONG_KEY", "1  big")
	a, screen, err = asked(nil, "", s.URL, "UNSET_KEY", "big", "UTC", "")
	if err != nil || a.KeyVariable != "UNSET_KEY" || a.Model != "big" {
		t.Errorf("%+v, %v\n%s", a, err, screen)
	}
	wants(t, screen, "UNSET_KEY is not set here")
}

// TestInitZone: an unknown time zone is asked for again.
func TestInitZone(t *testing.T) {
	a, screen, err := asked(nil, "", rehearsalURL, "", "Europe/Berlln", "../etc/passwd", "Asia/Tokyo", "")
	if err != nil || a.Timezone != "Asia/Tokyo" {
		t.Fatalf("%+v, %v\n%s", a, err, screen)
	}
	if strings.Count(screen, "no such time zone") != 2 {
		t.Error(screen)
	}
}

// TestInitSummary: what was answered is shown, can be changed, and need not be written.
func TestInitSummary(t *testing.T) {
	url := modelServer(t, "llama3", "qwen3:8b")
	a, screen, err := asked(nil, "", url, "", "UTC", "")
	if err != nil || a.Timezone != "UTC" {
		t.Fatalf("%+v, %v\n%s", a, err, screen)
	}
	wants(t, screen, "1  Homeserver", "2  Model server", "3  Model", "4  Time zone", "UTC", "config.yaml")
	// A number goes back to one answer, and < to the one before.
	a, screen, err = asked(nil, "", url, "", "UTC", "4", "Asia/Tokyo", "3", "<", "", "3", "llama3", "1", "<", "", "<", "Europe/Paris", "7", "x", "")
	if err != nil || a.Model != "llama3" || a.Timezone != "Europe/Paris" {
		t.Errorf("%+v, %v\n%s", a, err, screen)
	}
	wants(t, screen, "a number from 1 to 4")
	// What depends on a changed answer is asked again.
	web := hosts{"example.org": aHomeserver}
	a, screen, err = asked(web, "", rehearsalURL, "", "UTC", "1", "example.org", "@reverie:example.org", "", "@me:example.org", "1", "-", "")
	if err != nil || a.Homeserver != "" {
		t.Errorf("%+v, %v\n%s", a, err, screen)
	}
	if _, screen, err = asked(nil, "", url, "", "UTC", "q"); !errors.Is(err, errSaid) {
		t.Errorf("%v\n%s", err, screen)
	}
	wants(t, screen, "Nothing was written.")
}

// TestSystemZone: the zone of the machine is known by its name where the system says it.
func TestSystemZone(t *testing.T) {
	root := t.TempDir()
	zone := func(tz string) string { return systemZone(tz, root) }
	if got := zone(""); got != "Local" {
		t.Error(got)
	}
	must(t, os.Mkdir(filepath.Join(root, "etc"), 0o700))
	must(t, os.WriteFile(filepath.Join(root, "etc/timezone"), []byte("Europe/Paris\n"), 0o600))
	if got := zone(""); got != "Europe/Paris" {
		t.Error(got)
	}
	must(t, os.Symlink("/usr/share/zoneinfo/America/New_York", filepath.Join(root, "etc/localtime")))
	for tz, want := range map[string]string{"": "America/New_York", "Asia/Tokyo": "Asia/Tokyo", ":Asia/Tokyo": "Asia/Tokyo",
		"/usr/share/zoneinfo/Asia/Tokyo": "Asia/Tokyo", "EST5EDT4,M3.2.0": "Local"} {
		if got := zone(tz); got != want {
			t.Errorf("%q: %q, want %q", tz, got, want)
		}
	}
}
