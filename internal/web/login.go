package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
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

// grant is a person's right until a time. Of its code the SHA-256 is stored.
type grant struct {
	hash   [sha256.Size]byte
	person string
	until  time.Time
}

// logins holds the links that were not used yet, and the logins, each the oldest first.
type logins struct {
	now func() time.Time

	mu              sync.Mutex
	links, sessions []grant
	flows           []flow // logins that have begun elsewhere
}

// issue adds a new code to all, which is links or sessions, and returns it. If there are too many, the oldest ends.
func (l *logins) issue(all *[]grant, person string, valid time.Duration) string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	code := hex.EncodeToString(secret)
	l.mu.Lock()
	defer l.mu.Unlock()
	*all = append((*all)[max(0, len(*all)-maxGrants+1):], grant{sha256.Sum256([]byte(code)), person, l.now().Add(valid)})
	return code
}

// find returns the person of a valid code, else "". With once, the code is deleted.
func (l *logins) find(all *[]grant, code string, once bool) (person string) {
	hash := sha256.Sum256([]byte(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	*all = slices.DeleteFunc(*all, func(g grant) bool {
		if !l.now().Before(g.until) {
			return true
		}
		if g.hash == hash {
			person = g.person
		}
		return once && g.hash == hash
	})
	return person
}

// Link returns an address at which person can log in once, within five minutes. The caller has checked that it
// reaches that person alone.
func (s *Server) Link(person string) string {
	return s.base + "/login#" + s.issue(&s.links, person, linkTime)
}

// person returns who sent r; "" = not logged in.
func (s *site) person(r *http.Request) string {
	for _, c := range r.CookiesNamed(cookieName) { // another server of this machine may have set one of that name
		if p := s.find(&s.sessions, c.Value, false); p != "" && s.mayLogIn(p) {
			return p
		}
	}
	return ""
}

// mayLogIn reports whether a person may use the inspector, by the rule of the command !web.
func (s *site) mayLogIn(person string) bool { return tool.AllowsAct(s.cfg.Level(person), "!web") }

func (s *site) showLogin(w http.ResponseWriter, r *http.Request) {
	s.render(w, r, http.StatusOK, "", s.loginPage(""))
}

func (s *site) loginPage(lead string) view {
	v := view{Title: "Log in", Lead: lead, Blocks: []block{{Login: true}}}
	if s.cfg.OIDC.Issuer != "" {
		by := cell{Text: "log in with " + strings.TrimPrefix(s.cfg.OIDC.Issuer, "https://"), Link: "/login/begin"}
		v.Blocks[0].Facts = [][]cell{{{Text: "Or"}, by}}
	}
	return v
}

// refuse answers a login that failed. The reason is for the log.
func (s *site) refuse(w http.ResponseWriter, r *http.Request, lead string, why error) {
	s.cfg.Log.Warn("a login to the inspector was refused", "from", r.RemoteAddr, "err", why)
	s.render(w, r, http.StatusForbidden, "", s.loginPage(lead))
}

func (s *site) logIn(w http.ResponseWriter, r *http.Request) {
	person := s.find(&s.links, r.PostFormValue("code"), true)
	if person == "" || !s.mayLogIn(person) {
		s.refuse(w, r, "This link was used already, or is older than five minutes.", errors.New("no such link"))
		return
	}
	s.cfg.Log.Info("logged in to the inspector", "person", person, "from", r.RemoteAddr)
	s.setCookie(w, r, s.issue(&s.sessions, person, sessionTime), int(sessionTime.Seconds()))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *site) logOut(w http.ResponseWriter, r *http.Request) {
	for _, c := range r.CookiesNamed(cookieName) {
		s.find(&s.sessions, c.Value, true)
	}
	s.setCookie(w, r, "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// setCookie sets the cookie of a login. On this machine there is no certificate, so it is not bound to https there.
func (s *site) setCookie(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: !isLocal(r.Host)})
}
