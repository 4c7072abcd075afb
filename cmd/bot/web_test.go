package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"reverie/internal/test/expect"
)

// island is a search engine like SearXNG with a page, both on loopback.
func island(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/search", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") != "json" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"results": []any{map[string]string{"title": "Ferry times", "url": server.URL + "/times", "content": "Winter"}}})
	})
	mux.HandleFunc("/times", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
		fmt.Fprint(w, "<title>Ferry times</title><article><p>Die F\xe4hre leaves at 07:10.</p><p style='display:none'>CANARY</p></article>")
	})
	return server
}

// TestAnswerWithSources: asked about today, `bot chat` searches, reads the page and answers with a link to it. The server
// is on loopback: without `tools.web.hosts` the page is refused.
func TestAnswerWithSources(t *testing.T) {
	for allowed, want := range map[bool]string{true: "07:10", false: "I could not read it: is asked on port"} {
		site := island(t)
		var requests []string
		model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body struct {
				Messages []struct{ Role, Content string }
				Tools    []struct{ Function struct{ Name string } }
			}
			_ = json.NewDecoder(r.Body).Decode(&body)
			if len(body.Tools) == 0 {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			last := body.Messages[len(body.Messages)-1].Content
			requests = append(requests, last)
			delta := map[string]any{}
			call := func(name, arguments string) {
				delta["tool_calls"] = []any{map[string]any{"index": 0, "id": fmt.Sprint("c", len(requests)), "type": "function", "function": map[string]string{"name": name, "arguments": arguments}}}
			}
			switch {
			case len(requests) == 1:
				call("web_search", `{"query":"ferry times today"}`)
			case len(requests) == 2 && strings.Contains(last, site.URL+"/times"):
				call("web_fetch", `{"url":"`+site.URL+`/times"}`)
			case strings.Contains(last, "07:10"):
				delta["content"] = "It leaves at 07:10.\n\nSource: [Ferry times](" + site.URL + "/times)"
			default:
				_, why, _ := strings.Cut(last, "was not read: ")
				delta["content"] = "I could not read it: " + strings.TrimPrefix(why, "127.0.0.1 ")
			}
			data, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta}}})
			fmt.Fprintf(w, "data: %s\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", data)
		}))
		t.Cleanup(model.Close)
		hosts := "[]"
		if allowed {
			hosts = `["` + strings.TrimPrefix(site.URL, "http://") + `"]`
		}
		code, printed := runBot(t, "When does the ferry leave today?\n", "chat", "--config", configFile(t, `data: ./data
harvest: {enabled: false}
dreaming: {schedule: ""}
llm: {models: [{name: m, base_url: "`+model.URL+`/v1", model: m, window: 32000}]}
tools: {web: {search: [{kind: searxng, url: "`+site.URL+`/"}], hosts: `+hosts+`}}
log: {level: error}
`))
		expect.Equal(t, code, 0)
		expect.Has(t, printed, want)
		expect.Lacks(t, strings.Join(requests, "\n"), "CANARY")
		expect.Equal(t, strings.Contains(printed, "(http://127.0.0.1"), allowed, printed)
	}
}

// TestDoctorAsksSearchEngines: `bot doctor` asks each with one query, and says what is wrong.
func TestDoctorAsksSearchEngines(t *testing.T) {
	site := island(t)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") == "hunter9" {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer refusing.Close()
	_, report := runBot(t, "", "doctor", "--config", configFile(t, rehearsing+`tools:
  web:
    search:
      - {kind: searxng, url: "`+site.URL+`"}
      - {kind: searxng, url: "`+refusing.URL+`"}
      - {kind: json, url: "`+refusing.URL+`/api?q={query}", results: items, api_key: hunter9, header: X-Key}
      - {kind: json, url: "`+site.URL+`/search?format=json&q={query}", results: data.items}
`))
	expect.Has(t, report, "✓ web      searxng at "+strings.TrimPrefix(site.URL, "http://"), " with 1 results", "answers 403 Forbidden: add json to search.formats in its settings.yml",
		"answers 429 Too Many Requests: its limit is reached", "its answer has no data.items", "tools.web.search in the configuration")
	expect.Lacks(t, report, "hunter9")
}
