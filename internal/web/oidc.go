package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// OIDC lets people log in by an OpenID Connect service, beside the links. A link is still enough.
type OIDC struct {
	Issuer       string // its address, as in the service's own description; empty = off
	ClientID     string
	ClientSecret string
	Users        map[string]string // the subject, or if it has an @, a verified e-mail address → the person
}

// flow is a login that has begun at the service. State and nonce come back from it.
type flow struct {
	state, nonce, verifier string
	until                  time.Time
}

const (
	flowCookie   = "reverie_oidc" // holds the state, so that only the browser that began can end a login
	callbackPath = "/login/callback"
)

// client returns what speaks with the service, whose description is read each time: logins are few.
func (s *site) client(ctx context.Context) (*oidc.Provider, *oauth2.Config, error) {
	provider, err := oidc.NewProvider(ctx, s.cfg.OIDC.Issuer)
	if err != nil {
		return nil, nil, err
	}
	return provider, &oauth2.Config{ClientID: s.cfg.OIDC.ClientID, ClientSecret: s.cfg.OIDC.ClientSecret, Endpoint: provider.Endpoint(),
		RedirectURL: s.base + callbackPath, Scopes: []string{oidc.ScopeOpenID, "email"}}, nil
}

// beginOIDC sends the browser to the service.
func (s *site) beginOIDC(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	_, client, err := s.client(ctx)
	if err != nil {
		s.refuse(w, r, "The service to log in with cannot be used; the log says why. Use a link of !web.", err)
		return
	}
	f := flow{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), s.now().Add(linkTime)}
	s.mu.Lock()
	s.flows = append(s.flows[max(0, len(s.flows)-maxGrants+1):], f)
	s.mu.Unlock()
	s.setFlowCookie(w, r, f.state, int(linkTime.Seconds()))
	http.Redirect(w, r, client.AuthCodeURL(f.state, oidc.Nonce(f.nonce), oauth2.S256ChallengeOption(f.verifier)), http.StatusSeeOther)
}

// setFlowCookie sets a cookie that the browser sends when the service sends it back, unlike that of a login.
func (s *site) setFlowCookie(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: flowCookie, Value: value, Path: callbackPath, MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: !isLocal(r.Host)})
}

// endOIDC logs in the person whom the service names.
func (s *site) endOIDC(w http.ResponseWriter, r *http.Request) {
	s.setFlowCookie(w, r, "", -1)
	person, err := s.personOfOIDC(r)
	if err != nil {
		s.refuse(w, r, "The service did not name a person who may see these pages. Use a link of !web.", err)
		return
	}
	s.cfg.Log.Info("logged in to the inspector", "person", person, "from", r.RemoteAddr, "by", s.cfg.OIDC.Issuer)
	s.setCookie(w, r, s.issue(&s.sessions, person, sessionTime), int(sessionTime.Seconds()))
	// Not a redirect: the browser would still count it as coming from the service, and keep the cookie back.
	w.Header().Set("Refresh", "0; url=/")
	s.render(w, r, http.StatusOK, "", view{Title: "Logged in", Back: cell{Text: "Go on", Link: "/"}})
}

// personOfOIDC checks what the service sent back by the browser, once for each login.
func (s *site) personOfOIDC(r *http.Request) (string, error) {
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	f, err := s.takeFlow(r)
	if err != nil {
		return "", err
	}
	if refusal := r.FormValue("error"); refusal != "" { // access_denied: the person cancelled it there
		return "", fmt.Errorf("the service answers %q", refusal)
	}
	provider, client, err := s.client(ctx)
	if err != nil {
		return "", err
	}
	token, err := client.Exchange(ctx, r.FormValue("code"), oauth2.VerifierOption(f.verifier))
	if err != nil {
		return "", err
	}
	raw, _ := token.Extra("id_token").(string)
	proof, err := provider.Verifier(&oidc.Config{ClientID: client.ClientID, Now: s.now}).Verify(ctx, raw)
	if err != nil {
		return "", err
	}
	if subtle.ConstantTimeCompare([]byte(proof.Nonce), []byte(f.nonce)) == 0 {
		return "", errors.New("the answer belongs to another login")
	}
	person := ""
	if !strings.Contains(proof.Subject, "@") { // at some services anybody may choose another's address as the subject
		person = s.cfg.OIDC.Users[proof.Subject]
	}
	if person == "" {
		email, err := verifiedEmail(ctx, provider, proof, token)
		if err != nil {
			return "", err
		}
		if strings.Contains(email, "@") {
			person = s.cfg.OIDC.Users[email]
		}
	}
	if person == "" || !s.mayLogIn(person) {
		return "", fmt.Errorf("the subject %q is nobody who may log in", proof.Subject)
	}
	return person, nil
}

// verifiedEmail returns the e-mail address in the ID token. Some services leave it out there, and give it at the userinfo
// endpoint only. It returns "" if the service knows no address, or has not verified it.
func verifiedEmail(ctx context.Context, provider *oidc.Provider, proof *oidc.IDToken, token *oauth2.Token) (string, error) {
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	if err := proof.Claims(&claims); err != nil {
		return "", err
	}
	if claims.Email == "" && provider.UserInfoEndpoint() != "" {
		info, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return "", fmt.Errorf("the userinfo endpoint: %w", err)
		}
		if info.Subject != proof.Subject {
			return "", fmt.Errorf("the userinfo endpoint names %q instead of the subject %q", info.Subject, proof.Subject)
		}
		claims.Email, claims.Verified = info.Email, info.EmailVerified
	}
	if !claims.Verified {
		return "", nil
	}
	return claims.Email, nil
}

// takeFlow returns the login that r ends, if the same browser began it, and forgets it.
func (s *site) takeFlow(r *http.Request) (found flow, err error) {
	state := r.FormValue("state")
	began, err := r.Cookie(flowCookie)
	if err != nil || subtle.ConstantTimeCompare([]byte(began.Value), []byte(state)) == 0 {
		return flow{}, errors.New("this browser did not begin the login")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.flows[:0]
	for _, f := range s.flows {
		if f.state == state && s.now().Before(f.until) {
			found = f
		} else {
			left = append(left, f)
		}
	}
	if s.flows = left; found.state == "" {
		return flow{}, errors.New("the login is unknown, was used already, or is older than five minutes")
	}
	return found, nil
}
