package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"reverie/internal/store"
	"reverie/internal/text"
)

// Engine is a search engine with a JSON interface.
type Engine struct {
	Kind   string `yaml:"kind"` // SearXNG, Brave or JSON
	URL    string `yaml:"url"`  // for SearXNG its address, for JSON a template with {query}; Brave's is known
	Key    string // sent in Header; "" = none
	Header string `yaml:"header"` // "" = Authorization: Bearer
	// The rest is for JSON: the path to the list, such as web.results, and fields of its entries.
	Results string `yaml:"results"`
	Title   string `yaml:"title"`
	Link    string `yaml:"link"`
	Snippet string `yaml:"snippet"`
}

// The kinds of engines.
const (
	SearXNG = "searxng"
	Brave   = "brave"
	JSON    = "json"
)

// Result is one search result.
type Result struct{ Title, URL, Snippet string }

const (
	maxResults  = 8
	maxQuery    = 300 // characters
	maxTitle    = 150
	maxSnippet  = 300
	maxResponse = 2 << 20 // bytes
	braveURL    = "https://api.search.brave.com/res/v1/web/search?count=10&q={query}"
)

// preset fills in what is known of the engine's kind.
func (e Engine) preset() Engine {
	switch e.Kind {
	case SearXNG:
		e.URL = strings.TrimRight(e.URL, "/") + "/search?format=json&q={query}"
		e.Results, e.Title, e.Link, e.Snippet = "results", "title", "url", "content"
	case Brave:
		e.URL, e.Header = cmp.Or(e.URL, braveURL), "X-Subscription-Token"
		e.Results, e.Title, e.Link, e.Snippet = "web.results", "title", "url", "description"
	}
	return e
}

// Name describes the engine for the operator, without its key.
func (e Engine) Name() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return e.Kind
	}
	return e.Kind + " at " + cmp.Or(u.Host, "api.search.brave.com")
}

// Engines returns the configured engines.
func (c *Client) Engines() []Engine {
	if c == nil {
		return nil
	}
	return c.cfg.Engines
}

// Search returns at most eight results of the first engine that has any. Titles and snippets are one
// line each. Without results and errors both are nil.
func (c *Client) Search(ctx context.Context, query string) ([]Result, error) {
	query = cut(strings.Join(strings.Fields(text.Clean(query)), " "), maxQuery)
	var failed error
	for _, e := range c.cfg.Engines {
		found, err := c.Ask(ctx, e, query)
		if len(found) > 0 {
			return found, nil
		}
		if err != nil {
			c.cfg.Log.Warn("search engine failed", "engine", e.Name(), "err", err)
			failed = errors.Join(failed, err)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, failed
}

// Ask asks one engine. Its error says what the operator can do. The engine's own host may be
// anywhere; redirects are not followed, because they would carry the key.
func (c *Client) Ask(ctx context.Context, e Engine, query string) ([]Result, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	e = e.preset()
	u, err := url.Parse(strings.ReplaceAll(e.URL, "{query}", url.QueryEscape(query)))
	if err != nil {
		return nil, fmt.Errorf("the address of %s is not valid", e.Kind)
	}
	header := http.Header{"Accept": {"application/json"}}
	switch {
	case e.Key != "" && e.Header != "":
		header.Set(e.Header, e.Key)
	case e.Key != "":
		header.Set("Authorization", "Bearer "+e.Key)
	}
	resp, err := c.get(ctx, c.guard.also(u).client(false), u.String(), header)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name(), explain(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s%s", e.Name(), resp.Status, e.hint(resp.StatusCode))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name(), explain(err))
	}
	found, err := e.read(data)
	return found, store.Wrap(err, "%s", e.Name())
}

// hint says what a status mostly means.
func (e Engine) hint(status int) string {
	switch {
	case status == http.StatusForbidden && e.Kind == SearXNG:
		return ": add json to search.formats in its settings.yml"
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusUnprocessableEntity && e.Kind == Brave:
		return ": check its api_key"
	case status == http.StatusTooManyRequests:
		return ": its limit is reached"
	case status >= 300 && status < 400:
		return ": write the address that it redirects to"
	}
	return ""
}

func (e Engine) read(data []byte) (found []Result, err error) {
	var at any
	if json.Unmarshal(data, &at) != nil {
		return nil, errors.New("its answer is not JSON")
	}
	for name := range strings.SplitSeq(e.Results, ".") {
		object, ok := at.(map[string]any)
		if at = object[name]; !ok {
			return nil, fmt.Errorf("its answer has no %s", e.Results)
		}
	}
	if at == nil && e.Kind == Brave { // it leaves out an empty list
		return nil, nil
	}
	list, ok := at.([]any)
	if !ok {
		return nil, fmt.Errorf("its answer has no list %s", e.Results)
	}
	for _, entry := range list {
		object, _ := entry.(map[string]any)
		field := func(name string) string { s, _ := object[name].(string); return s }
		u, err := url.Parse(field(e.Link))
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || len(u.String()) > maxURL {
			continue
		}
		if len(found) < maxResults {
			title, snippet := cut(line(field(e.Title)), maxTitle), cut(line(field(e.Snippet)), maxSnippet)
			found = append(found, Result{title, u.String(), snippet})
		}
	}
	if len(list) > 0 && found == nil {
		return nil, fmt.Errorf("none of its results has an address in %s", e.Link)
	}
	return found, nil
}

// line returns text as one line, without markup and invisible characters.
func line(s string) string {
	if strings.ContainsAny(s, "<&") {
		var b strings.Builder
		for z := html.NewTokenizer(strings.NewReader(s)); z.Next() != html.ErrorToken; {
			if t := z.Token(); t.Type == html.TextToken {
				b.WriteString(t.Data)
			}
		}
		s = b.String()
	}
	return strings.Join(strings.Fields(text.Clean(s)), " ")
}
