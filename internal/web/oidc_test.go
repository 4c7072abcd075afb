package web

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"reverie/internal/test/expect"
)

// issuer is an OpenID Connect service that names whoever its test wants.
type issuer struct {
	*httptest.Server
	key       *rsa.PrivateKey
	challenge string         // of the last code
	claims    map[string]any // of the next token; nil = an error
	info      map[string]any // at the userinfo endpoint; nil = an error
	signer    *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	key := expect.Must(rsa.GenerateKey(rand.Reader, 2048))(t)
	i := &issuer{key: key, signer: key}
	mux := http.NewServeMux()
	answer := func(path string, f func(r *http.Request) any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			got := f(r)
			if got == nil {
				w.WriteHeader(http.StatusBadRequest)
			}
			_ = json.NewEncoder(w).Encode(got)
		})
	}
	answer("/.well-known/openid-configuration", func(*http.Request) any {
		return map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/auth", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"userinfo_endpoint":                     i.URL + "/userinfo",
			"id_token_signing_alg_values_supported": []string{"RS256"}}
	})
	answer("/keys", func(*http.Request) any {
		return map[string]any{"keys": []any{map[string]any{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes())}}}
	})
	answer("/token", func(r *http.Request) any {
		proof := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		id, secret, _ := r.BasicAuth()
		if i.claims == nil || r.PostFormValue("code") != "good" || encode(proof[:]) != i.challenge || id != "reverie" || secret != "s3cret" {
			return nil
		}
		return map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": i.sign(t)}
	})
	answer("/userinfo", func(r *http.Request) any {
		if i.info == nil || r.Header.Get("Authorization") != "Bearer a" {
			return nil
		}
		return i.info
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (i *issuer) sign(t *testing.T) string {
	text := encode([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + encode(expect.Must(json.Marshal(i.claims))(t))
	hash := sha256.Sum256([]byte(text))
	return text + "." + encode(expect.Must(rsa.SignPKCS1v15(rand.Reader, i.signer, crypto.SHA256, hash[:]))(t))
}

// TestOIDC: whom the service names as a listed owner is logged in; anything else that comes back logs nobody in.
func TestOIDC(t *testing.T) {
	service := newIssuer(t)
	f := newFixtureWith(t, func(c *Config) {
		c.OIDC = OIDC{Issuer: service.URL, ClientID: "reverie", ClientSecret: "s3cret",
			Users: map[string]string{"sub-ada": ada, "bob@example.org": bob, "sub-carl": carl}}
	})
	other := expect.Must(rsa.GenerateKey(rand.Reader, 2048))(t)
	// begin starts a login and makes the service name sub.
	begin := func(b *browser) url.Values {
		r := b.get("/login/begin")
		expect.Equal(t, r.status, http.StatusSeeOther)
		q := expect.Must(url.Parse(r.header.Get("Location")))(t).Query()
		expect.Equal(t, q.Get("redirect_uri"), f.address()+callbackPath)
		expect.Equal(t, q.Get("code_challenge_method"), "S256")
		service.challenge, service.signer, service.info = q.Get("code_challenge"), service.key, nil
		service.claims = map[string]any{"iss": service.URL, "aud": "reverie", "sub": "sub-ada", "nonce": q.Get("nonce"), "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
		return url.Values{"state": {q.Get("state")}, "code": {"good"}}
	}
	end := func(b *browser, back url.Values) response { return b.get(callbackPath + "?" + back.Encode()) }

	expect.Has(t, f.browser().get("/login").body, `<a href="/login/begin">`)
	b := f.browser()
	back := begin(b)
	r := end(b, back)
	expect.Equal(t, r.status, http.StatusOK)
	expect.Equal(t, r.header.Get("Refresh"), "0; url=/")
	expect.Has(t, b.get("/").body, "Logged in as "+ada)
	b.Jar.SetCookies(expect.Must(url.Parse(f.address()+callbackPath))(t), []*http.Cookie{{Name: flowCookie, Value: back.Get("state"), Path: callbackPath}})
	expect.Equal(t, end(b, back).status, http.StatusForbidden, "the same answer again")

	claim := func(name string, value any) func(url.Values) {
		return func(url.Values) { service.claims[name] = value }
	}
	// elsewhere makes the token name the subject x without an address, and the userinfo endpoint an address of sub.
	elsewhere := func(sub string, verified bool) func(url.Values) {
		return func(url.Values) {
			service.claims["sub"] = "x"
			service.info = map[string]any{"sub": sub, "email": "bob@example.org", "email_verified": verified}
		}
	}
	for name, tt := range map[string]struct {
		change func(back url.Values)
		good   bool
	}{
		"nothing": {func(url.Values) {}, true},
		"a verified address": {func(url.Values) {
			service.claims["sub"], service.claims["email"], service.claims["email_verified"] = "x", "bob@example.org", true
		}, true},
		"an unverified address": {func(url.Values) { service.claims["sub"], service.claims["email"] = "x", "bob@example.org" }, false},
		"a subject as address": {func(url.Values) {
			service.claims["sub"], service.claims["email"], service.claims["email_verified"] = "x", "sub-ada", true
		}, false},
		"an address as subject":  {claim("sub", "bob@example.org"), false},
		"an unknown subject":     {claim("sub", "nobody"), false},
		"no subject":             {claim("sub", ""), false},
		"one who is no owner":    {claim("sub", "sub-carl"), false},
		"another nonce":          {claim("nonce", "x"), false},
		"no nonce":               {claim("nonce", ""), false},
		"another client":         {claim("aud", "other"), false},
		"another issuer":         {claim("iss", "https://evil.example"), false},
		"an expired token":       {claim("exp", time.Now().Add(-time.Hour).Unix()), false},
		"another key":            {func(url.Values) { service.signer = other }, false},
		"a refusing service":     {func(url.Values) { service.claims = nil }, false},
		"an address elsewhere":   {elsewhere("x", true), true},
		"unverified elsewhere":   {elsewhere("x", false), false},
		"another's address":      {elsewhere("y", true), false},
		"a refusal and a code":   {func(back url.Values) { back.Set("error", "access_denied") }, false},
		"another code":           {func(back url.Values) { back.Set("code", "bad") }, false},
		"another state":          {func(back url.Values) { back.Set("state", "x") }, false},
		"no state":               {func(back url.Values) { back.Del("state") }, false},
		"another code challenge": {func(url.Values) { service.challenge = "x" }, false},
		"too late":               {func(url.Values) { f.advance(linkTime) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := f.browser()
			back := begin(b)
			tt.change(back)
			got := end(b, back)
			in := strings.Contains(b.get("/").body, "Logged in as")
			if in != tt.good || (got.status == http.StatusOK) != tt.good {
				t.Errorf("status %d, logged in: %t", got.status, in)
			}
		})
	}
	t.Run("another browser", func(t *testing.T) {
		thief := f.browser()
		_ = begin(thief) // it has a cookie of its own
		back := begin(f.browser())
		expect.Equal(t, end(thief, back).status, http.StatusForbidden)
		expect.Equal(t, thief.get("/").status, http.StatusSeeOther)
	})
	service.Close()
	expect.Equal(t, f.browser().get("/login/begin").status, http.StatusForbidden, "a service that is down")
}
