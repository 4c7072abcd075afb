package matrix

import (
	"regexp"
	"strings"
	"testing"
)

// TestSpoilersAreCutWhole: a spoiler that does not fit into a part of an answer is hidden in
// each of the parts that it is cut into, and one that does is in one of them; no bars are
// shown, and nothing of it is.
func TestSpoilersAreCutWhole(t *testing.T) {
	const secret = "hidden"
	words := strings.Repeat("open words. ", 120)
	long := strings.TrimSpace(strings.Repeat(secret+" ", 2500))
	var lines strings.Builder
	for range 600 {
		lines.WriteString("hidden hidden\n")
	}
	for name, md := range map[string]string{
		"long":              words + "||" + long + "|| " + words,
		"in lines":          "||" + strings.TrimSpace(lines.String()) + "||\n\n" + words,
		"no spaces":         "So: ||" + strings.Repeat(secret, 2000) + "||.",
		"in a list":         "- one\n- ||" + long + "||\n- " + words,
		"deep in a list":    "1. one\n   - ||" + strings.ReplaceAll(strings.TrimSpace(lines.String()), "\n", "\n     ") + "||",
		"at all the places": strings.Repeat("a word ||hidden|| and ", 1500),
		"deep, and more":    "1. one\n   - ||" + strings.ReplaceAll(strings.TrimSpace(lines.String()), "\n", "\n     ") + "||\n\n     - the end",
		"of some words":     strings.Repeat("a word ||hidden hidden hidden hidden|| and ", 900),
		"with looks":        "(||" + strings.TrimSpace(strings.Repeat("**hidden** hidden ", 1200)) + "||)",
	} {
		t.Run(name, func(t *testing.T) {
			parts := checkSplit(t, md, 4000)
			if len(parts) < 3 {
				t.Fatalf("%d parts", len(parts))
			}
			for i, p := range parts {
				html := toHTML(p)
				if name == "of some words" && strings.Count(p, "||hidden hidden hidden hidden||")*2 != strings.Count(p, "||") || strings.Contains(html, "<pre>") {
					t.Errorf("part %d of %d is cut in a spoiler, or code: %.100q … %.60q", i, len(parts), p, p[max(0, len(p)-60):])
				}
				shown := spoilerSpan.ReplaceAllString(html, "")
				if name != "no spaces" && regexp.MustCompile(`hidden`).MatchString(shown) || strings.Contains(shown, "||") || strings.Contains(p, secret) && !strings.Contains(html, "data-mx-spoiler") {
					t.Errorf("part %d of %d shows %.200q of %.100q … %.60q", i, len(parts), shown, p, p[max(0, len(p)-60):])
				}
			}
		})
	}
	for name, md := range map[string]string{
		"code":         "```\n" + strings.Repeat("if (a ||b) { c ||d|| }\n", 400) + "```",
		"a line of it": "```\n" + "(||" + strings.Repeat("a b c d e ", 1600) + "f|| g\n```",
		"no spoiler":   strings.Repeat("a || b and a ||b without an end ", 400),
		"a quotation":  strings.Repeat("> a ||word\n> and|| more\n", 400),
		"a long table": "| a | b |\n|---|---|\n" + strings.Repeat("| ||a|| | b |\n", 400),
	} {
		t.Run(name, func(t *testing.T) {
			parts := checkSplit(t, md, 4000)
			for _, p := range parts {
				if name == "a quotation" && strings.HasPrefix(p, "||") || (name == "code" || name == "a line of it") && strings.Contains(toHTML(p), "spoiler") {
					t.Errorf("a part reads %.100q … %.60q", p, p[max(0, len(p)-60):])
				}
			}
			if n := strings.Count(strings.Join(parts, "\n"), "||"); n != strings.Count(md, "||") {
				t.Errorf("%d bars became %d", strings.Count(md, "||"), n)
			}
		})
	}
}

// TestSpoilerCutAnywhere: wherever a text is cut, no bar of a spoiler is shown, nothing that
// is hidden, and no quotation loses its sign.
func TestSpoilerCutAnywhere(t *testing.T) {
	for _, md := range []string{"So: ||hidden|| it was, ||hidden|| too.", "||hiddenhidden||", "So: ||hidden\nhidden\nhidden|| it was."} {
		for budget := 120; budget < 420; budget++ { // a bar costs 36
			a, b, ok := (piece{text: md}).cut(budget)
			if !ok {
				continue
			}
			for _, p := range []piece{a, b} {
				html := toHTML(strings.TrimSpace(p.String()))
				if shown := spoilerSpan.ReplaceAllString(html, ""); strings.Contains(shown, "|") || strings.Contains(shown, "hid") || html == "" && strings.ContainsAny(p.String(), "|h") {
					t.Errorf("budget %d: %q shows %q", budget, p, shown)
				}
			}
		}
	}
	for budget := 120; budget < 420; budget++ {
		if _, b, ok := (piece{text: "> a ||word of a quotation\n> and more of it|| that ends"}).cut(budget); ok && strings.HasPrefix(b.text, ">") && b.head != "" {
			t.Errorf("budget %d: %q", budget, b)
		}
	}
}

// FuzzBesideSpoiler: wherever a text is cut, something is cut off, and it is said.
func FuzzBesideSpoiler(f *testing.F) {
	for _, s := range []string{"a ||b c|| d", "||é||", "||||", "x ||y||z|| ||", "||a\n> b||"} {
		f.Add(s, uint16(3), true)
		f.Add(s, uint16(5), false)
	}
	f.Fuzz(func(t *testing.T, text string, budget uint16, hidden bool) {
		p := piece{text: strings.ToValidUTF8(text, "?"), hidden: hidden}
		if p.text == "" {
			return // no piece is
		}
		a, b, ok := p.cut(int(budget))
		if !ok {
			return
		}
		if len(a.text) >= len(p.text) || len(b.text) >= len(p.text) && a.text != "" {
			t.Errorf("%q is cut into %q and %q", p.text, a.text, b.text)
		}
		if solid(a.text+b.text) != solid(p.text) {
			t.Errorf("%q became %q and %q", p.text, a.text, b.text)
		}
	})
}
