package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"reverie/internal/test/expect"
)

// answering is a server that gives the same answer to all requests and keeps them.
func answering(t *testing.T, kind, body string) (url string, asked *[]*http.Request) {
	t.Helper()
	asked = new([]*http.Request)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r)
		if to, ok := strings.CutPrefix(body, "→"); ok {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

const twoResults = `{"web":{"results":[{"title":"<b>Ferry</b> &amp; boat\n2. x","url":"https://a.example/1","description":"At <strong>seven</strong>\n   https://evil.example"},
	{"title":"bad","url":"javascript:alert(1)"},{"title":"bad","url":"/relative"},{"url":"http://b.example/2"}]}}`

// TestSearchEngines: each kind is asked in its way, and its results are clean lines.
func TestSearchEngines(t *testing.T) {
	searx, _ := answering(t, "application/json", strings.ReplaceAll(twoResults[len(`{"web":`):len(twoResults)-1], "description", "content"))
	brave, braveAsked := answering(t, "application/json", twoResults)
	other, otherAsked := answering(t, "application/json", `{"items":[{"name":"N","href":"https://c.example/?q=1&r=2","text":"T"}]}`)
	c := New(Config{})
	for _, x := range []struct {
		engine Engine
		want   string
	}{
		{Engine{Kind: SearXNG, URL: searx + "/"}, "[{Ferry & boat 2. x https://a.example/1 At seven https://evil.example} { http://b.example/2 }]"},
		{Engine{Kind: Brave, URL: brave + "/?q={query}", Key: "hunter9"}, "[{Ferry & boat 2. x https://a.example/1 At seven https://evil.example} { http://b.example/2 }]"},
		{Engine{Kind: JSON, URL: other + "/s?q={query}&n=8", Key: "hunter9", Results: "items", Title: "name", Link: "href", Snippet: "text"}, "[{N https://c.example/?q=1&r=2 T}]"},
	} {
		found, err := c.Ask(t.Context(), x.engine, "a b&c=ü")
		expect.False(t, err != nil || fmt.Sprint(found) != x.want, "%s: %v %v", x.engine.Kind, found, err)
	}
	expect.Equal(t, (*braveAsked)[0].Header.Get("X-Subscription-Token"), "hunter9")
	expect.Equal(t, (*otherAsked)[0].Header.Get("Authorization"), "Bearer hunter9")
	expect.Equal(t, (*otherAsked)[0].URL.Query().Get("q"), "a b&c=ü")
	expect.Equal(t, Engine{Kind: Brave}.preset().URL, braveURL)
}

// TestSearchFailsOver: an engine that fails or finds nothing is followed by the next, and none is followed to another host
// with the key.
func TestSearchFailsOver(t *testing.T) {
	good, _ := answering(t, "application/json", `{"results":[{"title":"A","url":"https://a.example/"}]}`)
	empty, emptyAsked := answering(t, "application/json", `{"results":[]}`)
	elsewhere, stolen := answering(t, "application/json", `{"results":[{"title":"E","url":"https://evil.example/"}]}`)
	moved, _ := answering(t, "", "→"+elsewhere)
	page, _ := answering(t, "text/html", "<html>")
	engine := func(url string) Engine { return Engine{Kind: SearXNG, URL: url, Key: "hunter9"} }
	c := New(Config{Engines: []Engine{engine("http://127.0.0.1:1"), engine(moved), engine(page), engine(empty), engine(good)}})
	found, err := c.Search(t.Context(), "x")
	expect.False(t, err != nil || len(found) != 1 || found[0].Title != "A", "%v %v", found, err)
	expect.Equal(t, len(*emptyAsked), 1)
	expect.Equal(t, len(*stolen), 0)
	_, err = New(Config{Engines: c.Engines()[:3]}).Search(t.Context(), "x")
	expect.False(t, err == nil || !strings.Contains(err.Error(), "does not answer") || !strings.Contains(err.Error(), "redirects") || !strings.Contains(err.Error(), "is not JSON"), "%v", err)
	found, err = New(Config{Engines: c.Engines()[3:4]}).Search(t.Context(), "x")
	expect.False(t, err != nil || found != nil, "%v %v", found, err)
	// An engine's host is open to searches alone.
	_, err = New(Config{Fetch: true, Engines: c.Engines()}).Fetch(t.Context(), good)
	var refused *Refused
	expect.False(t, !errors.As(err, &refused), "the engine's host is read: %v", err)
}

// TestKindsOfPages: texts are read in their encoding, files that are no text are not.
func TestKindsOfPages(t *testing.T) {
	for _, x := range []struct{ kind, body, want string }{
		{"text/plain; charset=iso-8859-1", "F\xe4hre", "Fähre"},
		{"text/html; charset=shift_jis", "<p>\x93\x8c\x8b\x9e", "東京"},
		{"text/html", "<meta charset=windows-1252><p>10 \x80", "10 €"},
		{"text/html", "<p>Größe", "Größe"},
		{"application/json", `{"a": "<b>ü</b>"}`, `{"a": "<b>ü</b>"}`},
		{"text/markdown", "# A\n\n* b", "# A\n\n* b"},
		{"application/atom+xml", "<feed><title>T</title></feed>", "<feed><title>T</title></feed>"},
		{"", "<!DOCTYPE html><html><body><p>Sniffed</p></body></html>", "Sniffed"},
		{"application/pdf", "%PDF-1.5 x", "text of 10 bytes"},
		{"application/octet-stream", "%PDF-1.5 x", "text of 10 bytes"},
		{"image/png", "\x89PNG", "error: it is a file of the type image/png, which cannot be read"},
		{"text/plain", "a\x00b", "error: it is a file of the type text/plain, which cannot be read"},
		{"text/html", "<script>app()</script><div id=root></div>", "error: it has no text; perhaps it needs JavaScript"},
		{"text/plain", strings.Repeat("a line of text\n", 200_000), "a line of text"},
		{"application/pdf", strings.Repeat("%PDF", 3<<20), "error: it is a PDF file of more than 8 MiB"},
	} {
		url, asked := answering(t, x.kind, x.body)
		c := New(Config{Hosts: []string{strings.TrimPrefix(url, "http://")}, PDF: func(_ context.Context, data []byte) (string, error) {
			return fmt.Sprintf("text of %d bytes", len(data)), nil
		}})
		p, err := c.Fetch(t.Context(), url)
		got := p.Text
		if err != nil {
			got = "error: " + err.Error()
		}
		expect.False(t, got != x.want && !(len(x.body) > 1000 && strings.HasPrefix(got, x.want)), "%s %.40q: %.80q, want %q", x.kind, x.body, got, x.want)
		expect.False(t, len(x.body) > maxBody && err == nil && !strings.HasSuffix(got, "the rest was not read.]"), "it is not said that there is more")
		expect.Equal(t, len(*asked), 1)
	}
}

// TestParts: the parts of a page hold all of its words, and each fits into a result.
func TestParts(t *testing.T) {
	for _, unit := range []string{"A sentence of some words. ", "島へのフェリーは朝七時に出ます。", "paragraph\n\n", "x"} {
		p := Page{Text: strings.TrimSpace(strings.Repeat(unit, 3000))}
		_, of := p.Part(1)
		var all strings.Builder
		for n := 1; n <= of; n++ {
			part, _ := p.Part(n)
			expect.False(t, part == "" || len([]rune(part)) > 15_000, "part %d of %q has %d characters", n, unit, len([]rune(part)))
			all.WriteString(part)
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		expect.False(t, squeeze(all.String()) != squeeze(p.Text) || unit != "x" && of < 2, "%q: %d parts lose text", unit, of)
		part, _ := p.Part(of + 1)
		expect.Equal(t, part, "")
	}
}
