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
