package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"sync"
	"time"

	"reverie/internal/tool"
)

const (
	linkTime    = 5 * time.Minute
	sessionTime = 12 * time.Hour
	maxGrants   = 50 // open links, and logins
	cookieName  = "reverie"
)

// hash is the SHA-256 of a code. The codes themselves are not stored.
type hash = [sha256.Size]byte

// grant is a person's right until a time.
type grant struct {
	person string
	until  time.Time
}

// logins holds the links that were not used yet, and the logins.
type logins struct {
	now func() time.Time

	mu       sync.Mutex
	links    map[hash]grant
	sessions map[hash]grant
}

// issue stores a new code in to, which is one of the maps, and returns it.
func (l *logins) issue(to map[hash]grant, person string, valid time.Duration) string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	code := hex.EncodeToString(secret)
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(to, func(_ hash, g grant) bool { return !l.now().Before(g.until) })
	for len(to) >= maxGrants { // the oldest makes room
		var oldest hash
		for h, g := range to {
			if first, found := to[oldest]; !found || g.until.Before(first.until) {
				oldest = h
			}
		}
		delete(to, oldest)
	}
	to[sha256.Sum256([]byte(code))] = grant{person, l.now().Add(valid)}
	return code
}

// find returns the person of a valid code, else "". With once, the code is deleted.
func (l *logins) find(in map[hash]grant, code string, once bool) (person string) {
	key := sha256.Sum256([]byte(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	g, found := in[key]
	if once || found && !l.now().Before(g.until) {
		delete(in, key)
	}
	if !found || !l.now().Before(g.until) {
		return ""
	}
	return g.person
}

// Link returns an address at which person can log in once, within five minutes. The caller has checked that it
// reaches that person alone.
func (s *Server) Link(person string) string {
	return s.base + "/login#" + s.issue(s.links, person, linkTime)
}

// person returns who sent r; "" = not logged in.
func (s *site) person(r *http.Request) string {
	for _, c := range r.CookiesNamed(cookieName) { // another server of this machine may have set one of that name
		if p := s.find(s.sessions, c.Value, false); p != "" && s.mayLogIn(p) {
			return p
		}
	}
	return ""
}

// mayLogIn reports whether a person may use the inspector, by the rule of the command !web.
func (s *site) mayLogIn(person string) bool { return tool.AllowsAct(s.cfg.Level(person), "!web") }

func (s *site) showLogin(w http.ResponseWriter, r *http.Request) {
	s.render(w, r, http.StatusOK, "", view{Title: "Log in", Blocks: []block{{Login: true}}})
}

func (s *site) logIn(w http.ResponseWriter, r *http.Request) {
	person := s.find(s.links, r.PostFormValue("code"), true)
	if person == "" || !s.mayLogIn(person) {
		s.cfg.Log.Warn("a login to the inspector was refused", "from", r.RemoteAddr)
		s.render(w, r, http.StatusForbidden, "", view{Title: "Log in", Lead: "This link was used already, or is older than five minutes.",
			Blocks: []block{{Login: true}}})
		return
	}
	s.cfg.Log.Info("logged in to the inspector", "person", person, "from", r.RemoteAddr)
	s.setCookie(w, r, s.issue(s.sessions, person, sessionTime), int(sessionTime.Seconds()))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *site) logOut(w http.ResponseWriter, r *http.Request) {
	for _, c := range r.CookiesNamed(cookieName) {
		s.find(s.sessions, c.Value, true)
	}
	s.setCookie(w, r, "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// setCookie sets the cookie of a login. On this machine there is no certificate, so it is not bound to https there.
func (s *site) setCookie(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: !isLocal(r.Host)})
}
