package web

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"reverie/internal/lazyregexp"
)

// A page can hide text from people that a model would obey. dropHidden removes what a browser would
// not show, as far as the page's own HTML and CSS tell; files of styles are not fetched.

// unseen are elements without text for a reader.
var unseen = []string{
	"script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas", "audio", "video", "img",
	"picture", "input", "button", "select", "textarea", "datalist", "link", "meta", "area", "map",
}

// dropHidden removes hidden elements, hidden text, comments and attributes with text from doc.
func dropHidden(doc *html.Node) {
	styles := pageStyles(doc)
	drop(doc, func(n *html.Node) bool {
		if n.Data == "html" || n.Data == "body" || n.Data == "main" { // scripts hide and show these at start
			return false
		}
		return slices.Contains(unseen, n.Data) || hasAttr(n, "hidden") || n.Data == "dialog" && !hasAttr(n, "open") ||
			strings.EqualFold(attr(n, "aria-hidden"), "true") || styleOf(n, styles).hidesElement()
	})
	look{background: white}.apply(doc, styles)
	for n := range doc.Descendants() {
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool {
			return a.Key == "title" || a.Key == "alt" || a.Key == "style" || strings.HasPrefix(a.Key, "data-")
		})
	}
}

// css holds declarations: property → value, in lower case.
type css map[string]string

// declarations parses the text between the braces of a rule, or a style attribute.
func declarations(source string) css {
	out := css{}
	for part := range strings.SplitSeq(strings.ToLower(cssComment().ReplaceAllString(source, "")), ";") {
		name, value, ok := strings.Cut(part, ":")
		if value = strings.TrimSpace(strings.ReplaceAll(value, "!important", "")); ok && value != "" {
			out[strings.TrimSpace(name)] = value
		}
	}
	if out["background"] != "" {
		out["background-color"] = out["background"]
	}
	if strings.HasPrefix(out["font"], "0") {
		out["font-size"] = "0"
	}
	return out
}

var (
	cssComment = lazyregexp.New(`(?s)/\*.*?\*/`)
	cssRule    = lazyregexp.New(`([^{}]+)\{([^{}]*)\}`)
	cssPrint   = lazyregexp.New(`@media\s+print\b[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}`)
)

const (
	maxCSS   = 256 << 10 // bytes
	maxRules = 400
	maxSteps = 10_000_000 // of all rules, see effort
)

// pageStyles returns the declarations of the page's style elements that decide what is seen.
func pageStyles(doc *html.Node) map[*html.Node]css {
	styles, steps, rules := map[*html.Node]css{}, effort(doc, 0), 0
	var source strings.Builder
	for n := range doc.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data == "style" {
			source.WriteString(n.Data + "\n")
		}
	}
	plain := source.String()[:min(source.Len(), maxCSS)]
	plain = cssPrint().ReplaceAllString(cssComment().ReplaceAllString(plain, ""), "")
	for _, m := range cssRule().FindAllStringSubmatch(plain, -1) {
		found := declarations(m[2])
		if found["background-color"] == "" {
			delete(found, "color") // on which background is not known
		}
		if found["display"]+found["visibility"]+found["background-color"] == "" && !found.hidesElement() && !found.hidesText() {
			continue
		}
		if rules += 1 + strings.Count(m[1], ","); rules > maxRules || rules*steps > maxSteps {
			break
		}
		selector, err := cascadia.ParseGroup(strings.TrimSpace(m[1]))
		if err != nil || !isSimple(m[1]) {
			continue
		}
		for _, n := range cascadia.QueryAll(doc, selector) {
			if styles[n] == nil {
				styles[n] = css{}
			}
			maps.Copy(styles[n], found) // later rules win, as in most style sheets
		}
	}
	return styles
}

// isSimple reports whether selectors have at most one element around another, and nothing that takes long.
func isSimple(group string) bool {
	for selector := range strings.SplitSeq(group, ",") {
		if strings.ContainsAny(selector, ":~+") || len(strings.Fields(strings.ReplaceAll(selector, ">", " "))) > 2 {
			return false
		}
	}
	return true
}

// styleOf returns the declarations of an element; its own go before those of the page.
func styleOf(n *html.Node, styles map[*html.Node]css) css {
	out := css{}
	maps.Copy(out, styles[n])
	maps.Copy(out, declarations(attr(n, "style")))
	for from, to := range map[string]string{"color": "color", "bgcolor": "background-color"} {
		if value := attr(n, from); value != "" && out[to] == "" {
			out[to] = strings.ToLower(value)
		}
	}
	return out
}

// away is a length that moves an element out of the page.
const away = `-(\d{3,}|\d{2,}(\.\d+)?(em|rem|ch|vw|vh|cm|in))`

// Declarations that hide an element, alone or together with another.
var (
	hides = lazyregexp.New(`^(display:none|content-visibility:hidden|opacity:(0?\.0|0%?$|0\.0|\d%)|filter:opacity\(0|` +
		`(text-indent|margin-left|margin-top):` + away + `|clip:rect\(\s*[01](px)?\b|clip-path:(inset\(\s*(50|100)%|circle\(\s*0)|` +
		`transform:.*(translate\w*\([^)]*-\d{3,}|scale\w*\(0(\.0*)?[,)]|rotate[xy]\(90deg))`)
	hidesPlaced  = lazyregexp.New(`^(left|top|right|bottom):` + away)
	hidesClipped = lazyregexp.New(`^(max-)?(height|width):[01](\.\d+)?(px|em|%)?$`)
	tinyFont     = lazyregexp.New(`^(0(\.0*)?[a-z%]*|0?\.\d+(px|pt)|[12](\.\d+)?(px|pt)|0?\.(0\d*|1[0-4]?\d*)r?em|\d(\.\d+)?%)$`)
)

// hidesElement reports whether an element is not shown, with all in it.
func (s css) hidesElement() bool {
	placed, clipped := s["position"] == "absolute" || s["position"] == "fixed", strings.HasPrefix(s["overflow"], "hidden")
	for name, value := range s {
		d := name + ":" + value
		if hides().MatchString(d) || placed && hidesPlaced().MatchString(d) || clipped && hidesClipped().MatchString(d) {
			return true
		}
	}
	return false
}

// hidesText reports whether text is not shown. Elements within can change that.
func (s css) hidesText() bool {
	return s["visibility"] == "hidden" || s["visibility"] == "collapse" || s["color"] == "transparent" ||
		tinyFont().MatchString(s["font-size"])
}

// look is how text is shown; elements pass it on to those in them.
type look struct {
	invisible, tiny   bool
	color, background color
}

// apply removes text below n that cannot be seen.
func (l look) apply(n *html.Node, styles map[*html.Node]css) {
	if n.Type == html.ElementNode {
		s := styleOf(n, styles)
		if v := s["visibility"]; v != "" {
			l.invisible = v == "hidden" || v == "collapse"
		}
		if size := s["font-size"]; size != "" {
			relative := strings.HasSuffix(size, "%") || strings.HasSuffix(size, "em") && !strings.HasSuffix(size, "rem")
			l.tiny = tinyFont().MatchString(size) || l.tiny && relative
		}
		if s["color"] != "" {
			l.color = parseColor(s["color"])
		}
		if s["background-color"] != "" {
			l.background = parseColor(s["background-color"])
		}
	}
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		switch {
		case c.Type != html.TextNode:
			l.apply(c, styles)
		case strings.TrimSpace(c.Data) != "" && (l.invisible || l.tiny || l.color.clear || l.color.near(l.background)):
			n.RemoveChild(c)
		}
		c = next
	}
}

// color is red, green and blue. The zero value is unknown.
type color struct {
	r, g, b      int
	known, clear bool // clear = nothing of it is seen
}

var white = color{255, 255, 255, true, false}

// near reports whether text of color c cannot be told from its background.
func (c color) near(back color) bool {
	const least = 24
	far := func(x, y int) bool { return max(x-y, y-x) > least }
	return c.known && back.known && !far(c.r, back.r) && !far(c.g, back.g) && !far(c.b, back.b)
}

var (
	clearColor  = lazyregexp.New(`^transparent|^(rgb|hsl)a?\((?:[^,/]+[,/]){3}(0|0?\.0\d*|0%)\)|^#([0-9a-f]{3}0|[0-9a-f]{6}00)$`)
	colorForms  = []string{"#%02x%02x%02x", "rgb(%d,%d,%d", "rgba(%d,%d,%d"}
	namedColors = map[string]string{"white": "#ffffff", "black": "#000000", "snow": "#fffafa", "ivory": "#fffff0", "whitesmoke": "#f5f5f5"}
)

// parseColor reads the usual forms of colors.
func parseColor(value string) (c color) {
	value = strings.ReplaceAll(strings.ReplaceAll(value, ", ", ","), "( ", "(")
	if value, _, _ = strings.Cut(value, " "); clearColor().MatchString(value) {
		return color{clear: true}
	}
	value = cmp.Or(namedColors[value], value)
	if (len(value) == 4 || len(value) == 5) && value[0] == '#' {
		value = "#" + strings.Repeat(value[1:2], 2) + strings.Repeat(value[2:3], 2) + strings.Repeat(value[3:4], 2)
	}
	for _, form := range colorForms {
		if n, _ := fmt.Sscanf(value, form, &c.r, &c.g, &c.b); n == 3 {
			c.known = true
			return c
		}
	}
	return color{}
}
