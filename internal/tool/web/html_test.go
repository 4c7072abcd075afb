package web

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"reverie/internal/test/expect"
	"reverie/internal/text"
)

var markdownLink = regexp.MustCompile(`\]\([^)]*\)`)

// bag counts the words of a text; in scripts without spaces, its characters.
func bag(text string) map[string]int {
	words := map[string]int{}
	text = markdownLink.ReplaceAllString(strings.ReplaceAll(text, `\`, ""), "")
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }) {
			for _, r := range w {
				words[string(r)]++
			}
			continue
		}
		words[w]++
	}
	return words
}

// f1 compares two texts by their words: 1 = the same.
func f1(got, want string) float64 {
	a, b := bag(got), bag(want)
	both, all := 0, 0
	for w, n := range a {
		both += min(n, b[w])
		all += n
	}
	for _, n := range b {
		all += n
	}
	return 2 * float64(both) / float64(max(all, 1))
}

var anywhere = &url.URL{Scheme: "https", Host: "example.org", Path: "/a/page"}

// TestMainText: of 30 pages the main text is read, and nothing that a reader does not see.
func TestMainText(t *testing.T) {
	files := expect.Must(filepath.Glob("testdata/pages/*.html"))(t)
	sum := 0.0
	for _, file := range files {
		source, want := expect.Must(os.ReadFile(file))(t), expect.Must(os.ReadFile(strings.TrimSuffix(file, "html")+"txt"))(t)
		title, got, err := readHTML(string(source), anywhere)
		got = text.Clean(got)
		score := f1(got, string(want))
		sum += score
		if err != nil || score < 0.75 || title == "" {
			t.Errorf("%s (%q, %v): F1 %.3f\n%s", file, title, err, score, got)
		}
		expect.Lacks(t, got, "CANARY", "evil", "IGNORE", "\u200b", "\U000E0041")
	}
	mean := sum / float64(max(len(files), 1))
	t.Logf("%d pages, mean F1 of words %.3f", len(files), mean)
	expect.False(t, len(files) < 30 || mean < 0.90, "%d pages, mean F1 of words %.3f", len(files), mean)
}

// TestWhatAStyleHides: what a browser does not show is dropped, and what it shows is kept.
func TestWhatAStyleHides(t *testing.T) {
	for _, style := range []string{
		"display:none", "DISPLAY : None !important", "visibility:hidden", "visibility:collapse", "opacity:0", "opacity:0.0", "opacity:.05", "opacity:0%",
		"font-size:0", "font-size:0px", "font-size:1px", "font-size:0.1em", "font:0/0 a", "font-size:2%", "text-indent:-9999px", "margin-left:-100em",
		"position:absolute;left:-9999px", "position:fixed;top:-200vh", "overflow:hidden;height:0", "overflow:hidden;max-width:1px",
		"clip:rect(0,0,0,0)", "clip: rect(1px, 1px, 1px, 1px)", "clip-path:inset(50%)", "clip-path:circle(0)", "transform:scale(0)",
		"transform:translateX(-9999px)", "transform:translate(0, -5000px)", "filter:opacity(0)", "content-visibility:hidden",
		"color:white", "color:#fff", "color:#FEFEFE", "color:rgb(255, 255, 255)", "color:rgba(250,250,250,1)", "color:transparent", "color:rgba(0,0,0,0)", "color:#0000",
		"background:#123456;color:#123457", "color:black;background-color:rgb(0,0,0)",
	} {
		_, got, err := readHTML(`<p>Shown.</p><div style="`+style+`">CANARY</div>`, anywhere)
		expect.False(t, err != nil || strings.TrimSpace(got) != "Shown.", "%s: %q %v", style, got, err)
	}
	for _, style := range []string{
		"display:block", "visibility:visible", "opacity:0.9", "opacity:1", "opacity:10%", "font-size:12px", "font-size:0.9em", "font-size:100%", "font-size:1rem", "font-size:20%",
		"text-indent:-2em", "margin-left:-10px", "position:absolute;left:0", "left:-9999px", "overflow:hidden;height:100px", "height:0", "clip-path:inset(0)", "transform:scale(0.9)",
		"color:#333", "color:white;background:#000", "color:#fff;background:url(dark.png)", "color:rgba(0,0,0,0.8)", "color:red", "background:black;color:#eee", "",
	} {
		_, got, err := readHTML(`<p>Before.</p><div style="`+style+`">Shown</div>`, anywhere)
		expect.False(t, err != nil || !strings.Contains(got, "Shown"), "%s is dropped: %q %v", style, got, err)
	}
	for page, want := range map[string]string{
		`<style>.a{display:flex;color:#fff}.b{background:#000}</style><div class=b><div class=a>Shown`:            "Shown",
		`<style>.b{background:#000}</style><div class=b><p style="color:#fff">Shown`:                              "Shown",
		`<div style="visibility:hidden">CANARY<p style="visibility:visible">Shown`:                                "Shown",
		`<div style="font-size:0">CANARY<p style="font-size:1em">CANARY<p style="font-size:14px">Shown`:           "Shown",
		`<style>.a{display:none}.a.on{display:block}</style><p class="a on">Shown<p class=a>CANARY`:               "Shown",
		`<style>@media screen{.a{display:none}}@media print{p{display:none}}</style><p>Shown<p class=a>CANARY`:    "Shown",
		`<div style="color:#fff"><p>CANARY</p><p style="color:#000">Shown</p></div>`:                              "Shown",
		`<body style="opacity:0"><main aria-hidden=true>Shown</main><p aria-hidden=true>CANARY`:                   "Shown",
		`<body bgcolor=black text=white><font color=white>Shown</font><font color="#000000">CANARY</font></body>`: "Shown",
	} {
		_, got, err := readHTML(page, anywhere)
		expect.False(t, err != nil || strings.TrimSpace(got) != want, "%s: %q %v", page, got, err)
	}
}

// TestHostilePages: pages made to take long are read within a bound of work. A test that takes minutes has failed.
func TestHostilePages(t *testing.T) {
	deep := strings.Repeat("<div class=a>", 480)
	for name, page := range map[string]string{
		"nested selectors": "<style>" + strings.Repeat(".a .a .a .a .a .a .b{display:none}", 300) + "</style>" + deep + "<p>Shown",
		"selectors":        "<style>" + strings.Repeat(".a:has(:has(:has(b))),.a:contains(x),.a{opacity:0.5;display:block}", 20_000) + "</style>" + deep + "<p>Shown",
		"paragraphs":       deep + strings.Repeat("<p>Shown, and more, of it.", 40_000),
		"rules":            "<style>" + strings.Repeat("p{display:block}", 100_000) + "</style>" + strings.Repeat("<p>Shown", 20_000),
		"open braces":      "<style>" + strings.Repeat("@media print{", 50_000) + "</style><p>Shown",
		"links":            strings.Repeat("<a href=x>Shown ", 400),
		"attributes":       "<p " + strings.Repeat("style='display:block' x", 50_000) + ">Shown",
	} {
		_, got, err := readHTML(page[:min(len(page), maxBody)], anywhere)
		expect.False(t, err != nil || !strings.Contains(got, "Shown"), "%s: %.80q %v", name, got, err)
	}
	_, _, err := readHTML(strings.Repeat("<div>", 2000), anywhere)
	expect.False(t, err == nil, "a page that is too deep is read")
}

// TestLinks: links are absolute, and only such that can be followed; nothing hides in their attributes.
func TestLinks(t *testing.T) {
	_, got, err := readHTML(`<p>See <a href="b?c=1" title="CANARY">one</a>, <a href="/d">two</a>, <a href="#e">three</a>, <a href="javascript:f()">four</a>,
		<a href=" data:text/html,x">five</a>, <a href="//h.example/i">six</a>, <a href="mailto:k@l">seven</a>, <a href="/`+strings.Repeat("m", 400)+`">eight</a>.`, anywhere)
	expect.OK(t, err)
	expect.Has(t, got, "[one](https://example.org/a/b?c=1), [two](https://example.org/d), ", "[six](https://h.example/i)")
	expect.Equal(t, strings.Count(got, "]("), 3, got)
	expect.Lacks(t, got, "CANARY")
}

// FuzzReadHTML: no page makes the reader panic, and hidden characters never come through.
func FuzzReadHTML(f *testing.F) {
	for _, file := range expect.Must(filepath.Glob("testdata/pages/*.html"))(f) {
		f.Add(string(expect.Must(os.ReadFile(file))(f)))
	}
	f.Add(`<style>a{display:none}@media x{b{c:d}}}}{{</style><table><td><div style="color:#;font-size:-1e9px;transform:scale(">`)
	f.Add(strings.Repeat("<div><a href=x>", 600))
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) > 1<<16 {
			return
		}
		title, got, err := readHTML(source, anywhere)
		if err == nil && strings.ContainsAny(text.Clean(title+got), "\u200b\u2060\U000E0041") {
			t.Errorf("hidden characters in %q", got)
		}
	})
}
