package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"reverie/internal/approval"
	"reverie/internal/memory"
	"reverie/internal/test/expect"
)

// paths lists all pages with what seed has stored for ada.
func (s seeded) paths() []string {
	ada := url.PathEscape("!ada:example.org")
	return []string{"/", "/rooms", "/rooms/" + ada, "/rooms/" + url.PathEscape(shared), "/rooms/" + ada + "?before=3", "/rooms/" + ada + "/next", "/turns/" + s.turn,
		"/memories", "/memories?q=bike", "/memories?q=" + url.QueryEscape(hostile), "/memories?from=2020-01-01&to=2999-01-01", "/memories/" + s.entry,
		"/questions", "/dreams", "/tasks", "/subsessions", "/subsessions/" + s.sub, "/approvals", "/usage", "/doctor", "/docs", "/docs/manual.md"}
}

// TestPages: each page shows what it is for, escapes all of it, and shows nothing that ada may not read.
func TestPages(t *testing.T) {
	f := newFixture(t)
	s := f.seed()
	b := f.logIn(ada)
	for _, path := range s.paths() {
		r := b.get(path)
		expect.Equal(t, r.status, http.StatusOK, path)
		expect.Equal(t, r.header.Get("Content-Type"), "text/html; charset=utf-8", path)
		expect.Lacks(t, r.body, canary)
		expect.Equal(t, active(r.body), "", path)
	}
	for path, parts := range map[string][]string{
		"/rooms": {"!ada:example.org", shared}, "/rooms/" + url.PathEscape(shared): {"Please look.", "80 %", "900"},
		"/turns/" + s.turn: {"Here it is.", "→ search", "shrunk", "3 lines left out", "recalled", "not stored: a new epoch"},
		"/memories":        {"The bike is red.", "The bike is blue.", "Memories by day", "shared"}, "/memories?q=red": {"The bike is red."},
		"/memories/" + s.entry: {"said &lt;script&gt;", "user_explicit", s.batch}, "/dreams": {"dream_1: applied; 3 requests", "supersede", "The bike is red"},
		"/tasks": {"Water the plants", "done"}, "/subsessions": {"Read it.", "<line class=\"need\""}, "/subsessions/" + s.sub: {"I read."},
		"/approvals": {"remember", "&lt;script&gt;alert(3)", "Until ", `value="once"`}, "/usage": {"Tokens by day", "1\u202f200", "80 %", "6.0 s"},
		"/docs/manual.md": {"<table>", `href="faults.md"`}, "/questions": {"they differ", `value="both"`},
	} {
		expect.Has(t, b.get(path).body, parts...)
	}
	for _, room := range []string{"!ada:example.org", "thread:$x !ada:example.org"} {
		page := b.get("/rooms/" + url.PathEscape(room))
		expect.Equal(t, strings.Contains(page.body, "of ada"), page.status == http.StatusOK, room)
		expect.Equal(t, strings.Contains(page.body, "a=1"), page.status == http.StatusOK, room)
		expect.Lacks(t, page.body, "no room")
	}
	expect.Has(t, f.logIn(bob).get("/rooms/"+url.PathEscape(secret)).body, "of the secret room "+canary)
	expect.Has(t, b.post("/doctor", url.Values{}).body, "mend it")
	expect.Has(t, f.logIn(bob).get("/memories").body, canary) // the seed does hold it
}

// TestNewestMemories: the newest 100 memories are listed, those of a column of the plot if one is chosen. The plot counts
// all, also if prompts show a few only.
func TestNewestMemories(t *testing.T) {
	for _, backend := range []string{"flat_file", "fts5"} {
		f := newFixtureWith(t, func(c *Config) {
			c.Memory = expect.Must(memory.Open(t.Context(), memory.Config{DB: c.DB, Dir: t.TempDir(), Owner: ada, Backend: backend}))(t)
		})
		var all []memory.Entry
		for i := range 120 {
			said := time.Date(2026, 3, 1+i%30, i/30, 0, 0, 0, time.UTC) // 4 each day
			all = append(all, memory.Entry{Scope: memory.Shared, Text: fmt.Sprintf("Number %d on day %d.", i, 1+i%30), Source: "import", ObservedAt: said})
		}
		said := time.Date(2026, 3, 30, 9, 0, 0, 0, time.UTC)
		all = append(all, memory.Entry{Scope: memory.Private(bob), Text: canary, Source: "import", ObservedAt: said},
			memory.Entry{Scope: memory.Shared, Text: "Number 0 of a conversation.", Source: "import", Conversation: "c", ObservedAt: said})
		_, _, err := f.Memory.Import(t.Context(), all)
		expect.OK(t, err)
		f.advance(time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC).Sub(f.clock))
		b := f.logIn(ada)
		page := b.get("/memories").body
		expect.Equal(t, strings.Count(page, "Number "), 100, backend)
		expect.Has(t, page, "120 that you may read", "2026-03-01: 4", "2026-03-30: 4", "The newest 100 of 120", "Number 25 on day 26.", "Number 5 on day 6.")
		expect.Lacks(t, page, canary, "on day 5.")
		expect.False(t, strings.Index(page, "Number 119 ") > strings.Index(page, "Number 89 "), "%s: not the newest first", backend)
		page = b.get("/memories?from=2026-03-02&to=2026-03-03").body
		expect.Equal(t, strings.Count(page, "Number "), 8, backend)
		expect.Has(t, page, "120 that you may read", "on day 2.", "on day 3.")
		expect.Lacks(t, page, "The newest")
		page = b.get("/memories?from=2026-01-02&to=2026-01-03").body
		expect.Has(t, page, "120 that you may read", "There are none.")
		expect.Lacks(t, page, "Number ")
	}
}

// active returns the first thing of a page that a browser would run or style although the policy forbids it; "" = none.
func active(page string) string {
	for z, inScript := html.NewTokenizer(strings.NewReader(page)), false; ; {
		kind := z.Next()
		tag := z.Token()
		switch {
		case kind == html.ErrorToken:
			return ""
		case kind == html.TextToken && inScript && strings.TrimSpace(tag.Data) != "":
			return "a script: " + tag.Data
		case kind == html.TextToken:
			continue
		case tag.Data == "style" || tag.Data == "base" || tag.Data == "iframe" || tag.Data == "object" || tag.Data == "img":
			return tag.String()
		}
		inScript = tag.Data == "script" && kind == html.StartTagToken
		for _, a := range tag.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" && a.Val != "/static/app.js" ||
				strings.HasPrefix(strings.ToLower(strings.TrimSpace(a.Val)), "javascript:") {
				return tag.String()
			}
		}
	}
}

// TestChanges: an owner undoes a change, answers a question and an approval, and cannot do it twice.
func TestChanges(t *testing.T) {
	f := newFixture(t)
	s := f.seed()
	b := f.logIn(ada)
	expect.Has(t, b.post("/questions/"+s.question, url.Values{"keep": {"b"}}).body, "Answered", "The bike is blue.")
	expect.Equal(t, b.post("/questions/"+s.question, url.Values{"keep": {"a"}}).status, http.StatusConflict)
	e := expect.Must(f.Memory.Get(t.Context(), memory.Access{All: true}, s.entry))(t)
	expect.Equal(t, e.State, memory.Superseded)
	ops := expect.Must(f.Memory.History(t.Context(), memory.Access{All: true}, s.entry))(t)
	batch := url.Values{"batch": {ops[len(ops)-1].Batch}}
	expect.Has(t, b.post("/undo", batch).body, "Undone", "remembered again: The bike is red.")
	expect.Has(t, b.post("/undo", batch).body, "Not done", "it was changed since.")
	expect.Has(t, b.post("/approvals/"+s.code, url.Values{"answer": {approval.Once}}).body, "It is approved.")
	expect.Has(t, b.post("/approvals/"+s.code, url.Values{"answer": {approval.No}}).body, "It is approved.")
	a := expect.Must(f.Approvals.Find(t.Context(), f.DB, s.code))(t)
	expect.Equal(t, a.Answer.Sender, ada)
	expect.Equal(t, f.votes[0].Room, "!ada:example.org")
	expect.False(t, strings.Contains(b.get("/approvals").body, `"/approvals/`+s.code+`"`), "it is still open")
}

// TestLogBound: of many log lines the newest are kept, each cut, and a page shows the newest of them first.
func TestLogBound(t *testing.T) {
	f := newFixture(t)
	f.seed()
	log := f.Log.With("room", shared)
	for i := range keptLines + 10 {
		log.Info(fmt.Sprintf("line %d.", i), "x", strings.Repeat("x", 2*maxLine))
	}
	kept := f.Log.Handler().(remembering).kept.all
	expect.Equal(t, len(kept), keptLines)
	expect.False(t, len(kept[0].text) > maxLine+10, "a line is long")
	f.Log.With("room", shared).Info("another") // a child's lines are kept, too
	page := f.logIn(ada).get("/rooms/" + url.PathEscape(shared)).body
	expect.Has(t, page, fmt.Sprintf("line %d.", keptLines+9))
	expect.Lacks(t, page, "line 10.", "level=")
	expect.False(t, strings.Index(page, fmt.Sprintf("line %d.", keptLines+9)) > strings.Index(page, fmt.Sprintf("line %d.", keptLines)), "the order")
}

// TestPlotLabels: the labels of a plot say what its first and last columns are, also if the columns do not fill the width.
func TestPlotLabels(t *testing.T) {
	columns := func(n int) (all []value) {
		for i := range n {
			all = append(all, value{Label: fmt.Sprintf("day %d", i+1), Parts: []float64{float64(i + 1)}})
		}
		return all
	}
	for n, want := range map[int][3]string{1: {"1", "day 1", ""}, 3: {"3", "day 1 – day 3", ""}, 30: {"30", "day 1", "day 30"}} {
		b := plot("By day", nil, columns(n), spaced)
		expect.Equal(t, [3]string{b.Most, b.First, b.Last}, want)
	}
}
