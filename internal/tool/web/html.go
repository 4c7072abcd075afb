package web

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	readability "codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// readHTML returns the title and the main text of a page as Markdown, without what a reader does not
// see.
func readHTML(source string, at *url.URL) (title, markdown string, err error) {
	doc, err := html.ParseWithOptions(strings.NewReader(source), html.ParseOptionEnableScripting(false))
	if err != nil {
		return "", "", errors.New("its HTML cannot be read")
	}
	dropHidden(doc)
	tidyLinks(doc, at)
	title = textOf(cascadia.Query(doc, titleElement))
	main := article(doc, at)
	for _, n := range cascadia.QueryAll(doc, surroundings) {
		n.Parent.RemoveChild(n)
	}
	body := cascadia.Query(doc, bodyElement)
	dropLinks(body, len(textOf(body))*3/4)
	if main == nil || len(textOf(main)) < len(textOf(body))/2 { // a list, a forum: not one article
		main = body
	}
	return title, toMarkdown(main), nil
}

var (
	titleElement = cascadia.MustCompile("title")
	bodyElement  = cascadia.MustCompile("body")
	// surroundings are around the main text of a page.
	surroundings = cascadia.MustCompile("nav, footer, aside, form, menu, body > header, [role=navigation], [role=banner], " +
		"[role=contentinfo], [role=search], [role=complementary]")
)

// tidyLinks makes the links of a page absolute. It leaves out those within the page, very long ones and
// those that are no addresses.
func tidyLinks(doc *html.Node, at *url.URL) {
	const longest = 300
	for n := range doc.Descendants() {
		for i, a := range n.Attr {
			if a.Key != "href" {
				continue
			}
			u, err := at.Parse(strings.TrimSpace(a.Val))
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || strings.HasPrefix(a.Val, "#") || len(u.String()) > longest {
				n.Attr = slices.Delete(n.Attr, i, i+1)
				break
			}
			n.Attr[i].Val = u.String()
		}
	}
}

// article finds the main text of a page; nil = none.
func article(doc *html.Node, at *url.URL) (node *html.Node) {
	defer func() {
		if recover() != nil { // a fault in the library costs the page's order, not the page
			node = nil
		}
	}()
	if effort(doc, 0) > maxEffort {
		return nil
	}
	p := readability.NewParser()
	p.DisableJSONLD = true
	found, err := p.ParseDocument(doc, at)
	if err != nil {
		return nil
	}
	return found.Node
}

// maxEffort keeps hostile pages from taking long: the library's time grows with the depth of elements.
const maxEffort = 2_000_000

// effort sums up the depths of all nodes.
func effort(n *html.Node, depth int) int {
	sum := depth
	for c := range n.ChildNodes() {
		sum += effort(c, depth+1)
	}
	return sum
}

// dropLinks drops blocks of links below n, such as menus, unless one is most of the page. It returns the
// length of the text in n, and how much of it is in how many links.
func dropLinks(n *html.Node, most int) (size, linked, links int) {
	const least = 8
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		s, in, count := len(strings.TrimSpace(c.Data)), 0, 0
		if c.Type != html.TextNode {
			s, in, count = dropLinks(c, most)
		}
		switch {
		case c.Data == "a" && c.Type == html.ElementNode:
			in, count = s, 1
		case count >= least && s < most && in > s*4/5:
			n.RemoveChild(c)
			s, in, count = 0, 0, 0
		}
		size, linked, links = size+s, linked+in, links+count
		c = next
	}
	return size, linked, links
}

// toMarkdown converts an element; nil = "".
func toMarkdown(n *html.Node) (markdown string) {
	if n == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			markdown = textOf(n)
		}
	}()
	links := commonmark.WithLinkEmptyHrefBehavior(commonmark.LinkBehaviorSkip)
	plugins := converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(links), table.NewTablePlugin())
	out, err := converter.NewConverter(plugins).ConvertNode(n)
	if err != nil {
		return textOf(n)
	}
	return string(out)
}

// drop removes the elements below n that is tells of, with all in them.
func drop(n *html.Node, is func(*html.Node) bool) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if c.Type == html.CommentNode || c.Type == html.ElementNode && is(c) {
			n.RemoveChild(c)
		} else {
			drop(c, is)
		}
		c = next
	}
}

// textOf returns the text in an element, with single blanks.
func textOf(n *html.Node) string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}
