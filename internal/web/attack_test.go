package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"reverie/internal/store"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// hostile is a text that would run a script, break an attribute or end a tag.
const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`

// attack is a request that must get nothing and change nothing.
type attack struct {
	name, method, path string
	form               url.Values
	header             map[string]string
	as                 *browser // "nil" = nobody is logged in
	raw                string   // the bytes of the request, in place of all that; HOST and COOKIE are filled in
}

// attacks lists them. in is a browser in which ada is logged in.
func attacks(f *fixture, s seeded, in *browser) (all []attack) {
	add := func(a attack) { all = append(all, a) }
	get := func(name, path string, header ...string) {
		add(attack{name: name, method: http.MethodGet, path: path, header: pairs(header), as: in})
	}
	post := func(name, path string, form url.Values, header ...string) {
		add(attack{name: name, method: http.MethodPost, path: path, form: form, header: pairs(header), as: in})
	}
	batch, once, keep := url.Values{"batch": {s.batch}}, url.Values{"answer": {"once"}}, url.Values{"keep": {"a"}}
	port := f.server.socket.Addr().String()[len("127.0.0.1"):]

	// DNS rebinding: a page of another site under a name that now leads here.
	for _, host := range []string{"evil.example", "evil.example" + port, "127.0.0.1.evil.example" + port, "localhost.evil.example" + port, "127.0.0.1@evil.example",
		"127.0.0.2" + port, "localhost." + port, "0.0.0.0" + port, "2130706433" + port, "[::ffff:127.0.0.1]" + port, "localhost" + port + ".evil.example"} {
		get("rebinding "+host, "/memories", "Host", host)
	}
	get("rebinding behind a proxy", "/memories", "Host", "evil.example", "X-Forwarded-Host", "127.0.0.1"+port, "Forwarded", "host=127.0.0.1"+port)
	for name, raw := range map[string]string{
		"absolute address":         "GET http://evil.example/memories HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\nConnection: close\r\n\r\n",
		"no host":                  "GET /memories HTTP/1.0\r\nCookie: COOKIE\r\n\r\n",
		"two hosts":                "GET /memories HTTP/1.1\r\nHost: HOST\r\nHost: evil.example\r\nCookie: COOKIE\r\nConnection: close\r\n\r\n",
		"length and chunks":        "POST /undo HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\nGET /memories HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\n\r\n",
		"two lengths":              "POST /undo HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\nContent-Length: 4\r\nContent-Length: 8\r\nConnection: close\r\n\r\nbatch=12",
		"a folded header":          "GET /memories HTTP/1.1\r\nHost: HOST\r\nX: a\r\nCookie : COOKIE\r\nConnection: close\r\n\r\n",
		"a line break in the path": "GET /memories\r\nX: y HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\n\r\n",
		"connect":                  "CONNECT evil.example:443 HTTP/1.1\r\nHost: HOST\r\nCookie: COOKIE\r\nConnection: close\r\n\r\n",
		"no HTTP":                  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	} {
		add(attack{name: name, raw: raw})
	}

	// Requests that another site makes the browser send.
	for name, header := range map[string][]string{
		"another site": {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, "another port of this machine": {"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"},
		"an old browser": {"Origin", "https://evil.example"}, "no origin": {"Origin", "null"}, "another scheme": {"Sec-Fetch-Site", "cross-site", "Origin", "https://127.0.0.1" + port},
		"a lookalike": {"Origin", "http://127.0.0.1" + port + ".evil.example"}, "a claimed origin": {"Sec-Fetch-Site", "cross-site", "Origin", "http://127.0.0.1" + port},
	} {
		post("undo from "+name, "/undo", batch, header...)
		post("approve from "+name, "/approvals/"+s.code, once, header...)
	}
	post("question from another site", "/questions/"+s.question, keep, "Sec-Fetch-Site", "cross-site")
	post("logout from another site", "/logout", url.Values{}, "Sec-Fetch-Site", "cross-site")
	post("login from another site", "/login", url.Values{"code": {codeOf(f.server.Link(bob))}}, "Sec-Fetch-Site", "cross-site")
	post("doctor from another site", "/doctor", url.Values{}, "Origin", "https://evil.example")
	get("undo by a picture", "/undo?batch="+s.batch)
	get("approve by a picture", "/approvals/"+s.code+"?answer=once")
	get("question by a picture", "/questions/"+s.question+"?keep=a", "X-HTTP-Method-Override", "POST")
	post("undo in the address", "/undo?batch="+s.batch, url.Values{}, "Sec-Fetch-Site", "same-origin")
	post("approve in the address", "/approvals/"+s.code+"?answer=once", url.Values{}, "Sec-Fetch-Site", "same-origin")
	post("undo as text", "/undo", batch, "Content-Type", "text/plain", "Sec-Fetch-Site", "same-origin")
	post("undo of nothing", "/undo", url.Values{}, "Sec-Fetch-Site", "same-origin")
	post("an unknown answer", "/approvals/"+s.code, url.Values{"answer": {"always"}}, "Sec-Fetch-Site", "same-origin")
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, http.MethodTrace, "PROPFIND"} {
		add(attack{name: method, method: method, path: "/undo", form: batch, as: in, header: pairs([]string{"Sec-Fetch-Site", "same-origin"})})
	}

	// Logging in without the link, or with an old one.
	used, late, guest := f.server.Link(ada), "", codeOf(f.server.Link(carl))
	f.browser().post("/login", url.Values{"code": {codeOf(used)}})
	late = f.server.Link(ada)
	f.advance(linkTime)
	fresh := codeOf(f.server.Link(ada))
	sum := sha256.Sum256([]byte(fresh))
	for name, code := range map[string]string{"a guess": strings.Repeat("0", 64), "nothing": "", "a used code": codeOf(used), "an old code": codeOf(late), "the hash of a code": hex.EncodeToString(sum[:]),
		"upper case": strings.ToUpper(fresh), "blanks": " " + fresh, "a part": fresh[:63], "more": fresh + "0", "a zero": fresh + "\x00", "a guest's code": guest, "the cookie": in.cookie()} {
		add(attack{name: "login by " + name, method: http.MethodPost, path: "/login", form: url.Values{"code": {code}}})
	}
	add(attack{name: "login by the address", method: http.MethodPost, path: "/login?code=" + fresh, form: url.Values{}})
	add(attack{name: "login by GET", method: http.MethodGet, path: "/login?code=" + fresh})
	out := f.logIn(ada)
	ended := out.cookie()
	out.post("/logout", url.Values{})
	for name, cookie := range map[string]string{"none": "", "guessed": cookieName + "=" + strings.Repeat("0", 64), "empty": cookieName + "=", "of a logout": cookieName + "=" + ended,
		"a link's code": cookieName + "=" + fresh, "another name": "session=" + in.cookie(), "upper case": cookieName + "=" + strings.ToUpper(in.cookie()), "a part": cookieName + "=" + in.cookie()[:32],
		"the hash": cookieName + "=" + fmt.Sprintf("%x", sha256.Sum256([]byte(in.cookie()))), "many": strings.Repeat(cookieName+"=x; ", 200)} {
		for _, path := range []string{"/memories", "/turns/" + s.turn} {
			add(attack{name: "cookie " + name, method: http.MethodGet, path: path, header: map[string]string{"Cookie": cookie}})
		}
		add(attack{name: "undo with cookie " + name, method: http.MethodPost, path: "/undo", form: batch, header: map[string]string{"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}})
	}
	get("cookie in the address", "/memories?"+cookieName+"="+in.cookie(), "Cookie", "")
	get("authorization", "/memories", "Cookie", "", "Authorization", "Bearer "+in.cookie())

	// What belongs to other people, by its id.
	others := url.PathEscape("!carl:example.org")
	for _, path := range []string{"/memories/" + s.othersEntry, "/rooms/" + others, "/rooms/" + others + "/next", "/rooms/" + url.PathEscape(secret), "/rooms/" + url.PathEscape(secret) + "/next",
		"/rooms/" + url.PathEscape("!bob:example.org"), "/turns/" + s.othersTurn, "/subsessions/" + s.othersSub, "/rooms/" + url.PathEscape("sub:"+s.othersSub), "/rooms/" + url.PathEscape("job !carl:example.org"),
		"/memories/" + s.othersBatch, "/rooms/" + url.PathEscape("thread:$x !carl:example.org"), "/rooms/" + url.PathEscape("!nowhere:example.org") + "/next"} {
		get("of others "+path, path)
	}
	same := []string{"Sec-Fetch-Site", "same-origin"}
	post("undo of others", "/undo", url.Values{"batch": {s.othersBatch}}, same...)
	post("question of others", "/questions/"+s.othersQuest, keep, same...)
	post("approval of others", "/approvals/"+s.othersCode, once, same...)
	post("denial of others", "/approvals/"+s.othersCode, url.Values{"answer": {"no"}}, same...)

	// Paths that lead elsewhere, and values that are none.
	for _, path := range []string{"/docs/..%2f..%2fconfig.yaml", "/docs/..%2fbot.db.md", "/docs/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/docs/manual.md%00", "/docs//etc/passwd.md", "/docs/%2fetc%2fpasswd.md", "/docs/..%5c..%5cx.md",
		"/static/", "/static/..%2ftemplates%2fpage.html", "/static/%2e%2e/templates/page.html", "/templates/page.html", "/rooms/..%2f..%2fetc", "/rooms/%00", "/memories/..%2f" + s.othersEntry, "/memories/%27%20OR%201%3D1--",
		"/turns/-1", "/turns/99999999999999999999", "/turns/1%20OR%201%3D1", "/turns/0x1", "/subsessions/%27%20OR%20%27%27%3D%27", "/subsessions/sub_%25", "/approvals/" + s.code, "/undo", "/.git/config", "/bot.db", "/debug/pprof/", "/metrics"} {
		get("path "+path, path)
	}
	post("number of a question", "/questions/1%20OR%201", keep, same...)

	// Reflected texts, line breaks in headers, addresses of other sites.
	for _, path := range []string{"/memories/" + url.PathEscape(hostile), "/rooms/" + url.PathEscape(hostile), "/turns/" + url.PathEscape(hostile), "/subsessions/" + url.PathEscape(hostile), "/docs/" + url.PathEscape(hostile) + ".md",
		"/%0d%0aSet-Cookie:%20evil=1", "//evil.example/", "//evil.example/%2e%2e", "/%5cevil.example", "/https://evil.example/", "/login/../..//evil.example", "/rooms//evil.example"} {
		get("reflected "+path, path)
	}
	get("a large header", "/memories", "X", strings.Repeat("x", 64<<10))
	post("a large body", "/undo", url.Values{"batch": {strings.Repeat("x", 1<<20)}}, same...)
	many := url.Values{}
	for i := range 5000 {
		many.Set(fmt.Sprint(i), "x")
	}
	post("many fields", "/undo", many, same...)
	add(attack{name: "a large code", method: http.MethodPost, path: "/login", form: url.Values{"code": {strings.Repeat("x", 1<<20)}}})
	add(attack{name: "a code in a large body", method: http.MethodPost, path: "/login", form: url.Values{"code": {fresh}, "x": {strings.Repeat("x", 1<<20)}}})
	return all
}

func pairs(all []string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(all); i += 2 {
		m[all[i]] = all[i+1]
	}
	return m
}

// cookie returns the code in the cookie of a login.
func (b *browser) cookie() string {
	at, _ := url.Parse(b.f.address())
	return b.Jar.Cookies(at)[0].Value
}

// state describes all that a request could change.
func (f *fixture) state() string {
	var all []string
	for _, query := range []string{`SELECT id || state || rev FROM memory ORDER BY n`, `SELECT code || state || answered_by FROM approval ORDER BY code`,
		`SELECT count(*) FROM memory_op`, `SELECT id || both_hold FROM memory_question ORDER BY id`, `SELECT id || status FROM task ORDER BY id`, `SELECT count(*) FROM message`} {
		all = append(all, expect.Must(store.Column[string](f.t.Context(), f.DB, query))(f.t)...)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(all, "\n") + fmt.Sprint("\nvotes: ", len(f.votes))
}

// got returns what an attack got; "" = nothing.
func (f *fixture) got(a attack, cookie string) string {
	var r response
	if a.raw != "" {
		text := f.raw(strings.NewReplacer("HOST", f.server.socket.Addr().String(), "COOKIE", cookieName+"="+cookie).Replace(a.raw))
		var status int
		_, _ = fmt.Sscanf(text, "HTTP/1.%d %d", new(int), &status)
		r = response{status: status, body: text}
	} else {
		b := a.as
		if b == nil || a.header["Cookie"] != "" {
			b = f.browser()
		}
		if cookie, given := a.header["Cookie"]; given && cookie == "" {
			b = f.browser()
		}
		r = b.send(a.method, a.path, a.form, a.header)
	}
	location := r.header.Get("Location")
	switch {
	case strings.Contains(r.body, canary):
		return "it shows what belongs to others"
	case strings.Contains(r.body, "The bike is") || strings.Contains(r.body, "Here it is."):
		return "it shows what belongs to the owner"
	case active(r.body) != "":
		return active(r.body)
	case strings.HasPrefix(location, "//") || strings.Contains(location, "evil.example") && !strings.HasPrefix(location, "/"), strings.Contains(location, `\`):
		return "it leads to " + location
	case r.header.Get("Set-Cookie") != "" && !strings.Contains(r.header.Get("Set-Cookie"), cookieName+"=;"):
		return "it sets the cookie " + r.header.Get("Set-Cookie")
	case r.status == http.StatusOK && !strings.Contains(r.body, "<title>Log in"):
		return "it is answered with 200: " + r.body[:min(len(r.body), 200)]
	}
	return ""
}

// TestAttacks: no attack gets or changes anything, and the owner's login outlives all of them.
func TestAttacks(t *testing.T) {
	f := newFixture(t)
	s := f.seed()
	in := f.logIn(ada)
	all := attacks(f, s, in)
	before := f.state()
	for _, a := range all {
		if got := f.got(a, in.cookie()); got != "" {
			t.Errorf("%s: %s %s: %s", a.name, a.method, a.path, got)
		}
		if now := f.state(); now != before {
			t.Errorf("%s: %s %s changed:\n%s\nto:\n%s", a.name, a.method, a.path, before, now)
			before = now
		}
	}
	t.Logf("%d attacks", len(all))
	expect.Has(t, in.get("/memories").body, "The bike is red.")
	expect.Equal(t, in.post("/undo", url.Values{"batch": {s.batch}}).status, http.StatusOK) // the forms are right but for what is attacked
	for _, secret := range []string{in.cookie()} {
		expect.Lacks(t, f.log.String(), secret)
	}
}

// TestFormerOwner: who is no owner any more is logged out.
func TestFormerOwner(t *testing.T) {
	f := newFixture(t)
	levels := map[string]trust.Integrity{ada: trust.Owner}
	f.Level = func(person string) trust.Integrity { f.mu.Lock(); defer f.mu.Unlock(); return levels[person] }
	pages := &site{Server: f.server, cfg: f.Config}
	r := expect.Must(http.NewRequest(http.MethodGet, "/", nil))(t)
	r.AddCookie(&http.Cookie{Name: cookieName, Value: f.server.issue(&f.server.sessions, ada, sessionTime)})
	expect.Equal(t, pages.person(r), ada)
	f.mu.Lock()
	maps.DeleteFunc(levels, func(string, trust.Integrity) bool { return true })
	f.mu.Unlock()
	expect.Equal(t, pages.person(r), "")
}
