package render

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/yuin/goldmark/ast"
	extra "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"reverie/internal/lazyregexp"
)

// safeNodes replaces nodes that a message must not have, or that clients hide: images by links,
// links to users by their text, tags by their source.
type safeNodes struct{}

func (safeNodes) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	source := reader.Source()
	used := map[string]bool{}
	var nodes []ast.Node
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			if n.Reference != nil && !footnote(n) {
				used[linkLabel(n.Reference.Value)] = true
			}
			nodes = append(nodes, n)
		case *ast.Image:
			if n.Reference != nil {
				used[linkLabel(n.Reference.Value)] = true
			}
			nodes = append(nodes, n)
		case *ast.AutoLink, *ast.RawHTML, *ast.LinkReferenceDefinition:
			nodes = append(nodes, n)
		}
		return ast.WalkContinue, nil
	})
	room := 2 * len(source) // bytes for the destinations of reference links
	for _, n := range nodes {
		switch n := n.(type) {
		case *ast.Link:
			n.Title = nil
			if n.Reference != nil {
				room -= len(n.Destination)
			}
			switch {
			case footnote(n):
				replaceNode(n, textNode("["+string(n.Reference.Value)+"]"))
			case room < 0 || linksToUser(string(n.Destination)):
				unwrapNode(n)
			}
		case *ast.Image:
			if n.Reference != nil {
				room -= len(n.Destination)
			}
			if room < 0 {
				unwrapNode(n)
			} else {
				linkImage(n)
			}
		case *ast.AutoLink:
			if u := string(n.URL(source)); linksToUser(u) {
				replaceNode(n, textNode(u))
			}
		case *ast.RawHTML:
			sanitizeTag(n, source)
		case *ast.LinkReferenceDefinition:
			if !used[linkLabel(n.Label)] { // a footnote or a list of sources, which would be hidden
				paragraph := ast.NewParagraph()
				paragraph.AppendChild(paragraph, textNode(strings.TrimSpace(string(n.Lines().Value(source)))))
				replaceNode(n, paragraph)
			}
		}
	}
}

// footnote reports whether n is a [^1] that was parsed as a link. The link leads to the first word
// of the note.
func footnote(n *ast.Link) bool {
	return n.Reference != nil && n.Reference.Type == ast.ReferenceLinkShortcut && bytes.HasPrefix(n.Reference.Value, []byte("^"))
}

func linkLabel(b []byte) string { return util.ToLinkReference(b) }

func replaceNode(old, new ast.Node) { old.Parent().ReplaceChild(old.Parent(), old, new) }

// textNode returns a node of literal text.
func textNode(s string) ast.Node {
	n := ast.NewString([]byte(s))
	n.SetRaw(true)
	return n
}

// tagNode returns a node of literal HTML; the sanitiser still checks it.
func tagNode(s string) ast.Node {
	n := ast.NewString([]byte(s))
	n.SetCode(true)
	return n
}

// unwrapNode replaces n by its children.
func unwrapNode(n ast.Node) {
	parent := n.Parent()
	for c := n.FirstChild(); c != nil; {
		next := c.NextSibling()
		parent.InsertBefore(parent, n, c)
		c = next
	}
	parent.RemoveChild(parent, n)
}

// linkImage replaces an image by a link, because clients would fetch it from any server.
func linkImage(n *ast.Image) {
	if !n.HasChildren() {
		n.AppendChild(n, textNode(string(n.Destination)))
	}
	linked := linksToUser(string(n.Destination))
	for p := n.Parent(); p != nil; p = p.Parent() {
		linked = linked || p.Kind() == ast.KindLink
	}
	if linked { // it is in a link already, or must not be one
		unwrapNode(n)
		return
	}
	to := ast.NewLink()
	to.Destination = n.Destination
	replaceNode(n, to)
	to.AppendChild(to, n)
	unwrapNode(n)
}

// linksToUser reports whether a link leads to a Matrix user. Clients show such a link as a mention,
// and some bots take it for one.
func linksToUser(link string) bool {
	u, err := url.Parse(link)
	if err != nil {
		return true
	}
	switch strings.ToLower(u.Scheme) {
	case "matrix":
		return !strings.HasPrefix(u.Opaque, "r/") && !strings.HasPrefix(u.Opaque, "roomid/")
	case "http", "https":
		to := strings.TrimPrefix(strings.ToLower(u.Host), "www.") == "matrix.to" && strings.HasPrefix(u.Fragment, "/@")
		return to || strings.HasPrefix(u.Fragment, "/user/@") // a web client
	}
	return false
}

var (
	lineBreak = lazyregexp.New(`(?i)^<br\s*/?>$`)
	simpleTag = lazyregexp.New(`(?i)^<(sub|sup|u|b|i|s|del|em|strong|kbd|code)>$`)
)

// sanitizeTag keeps line breaks, and pairs of formatting tags without other tags between them. Any
// other tag becomes literal text.
func sanitizeTag(n *ast.RawHTML, source []byte) {
	if n.Parent() == nil { // the end tag of a pair
		return
	}
	s := string(n.Segments.Value(source))
	next := n.NextSibling()
	for next != nil && next.Kind() != ast.KindRawHTML {
		next = next.NextSibling()
	}
	end, _ := next.(*ast.RawHTML)
	switch m := simpleTag().FindStringSubmatch(s); {
	case lineBreak().MatchString(s):
		replaceNode(n, tagNode("<br>"))
	case m != nil && end != nil && strings.EqualFold(string(end.Segments.Value(source)), "</"+m[1]+">"):
		name := strings.Replace(strings.ToLower(m[1]), "kbd", "code", 1)
		replaceNode(n, tagNode("<"+name+">"))
		replaceNode(end, tagNode("</"+name+">"))
	default:
		replaceNode(n, textNode(s))
	}
}

// nodeRenderer renders formulas, and task list checkboxes as characters. Messages have no element
// for checkboxes.
type nodeRenderer struct{}

func (nodeRenderer) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(kindFormula, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, _ = w.WriteString(formulaHTML(n.(*formula).tex))
		}
		return ast.WalkContinue, nil
	})
	reg.Register(extra.KindTaskCheckBox, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if box := "☐ "; entering {
			if n.(*extra.TaskCheckBox).IsChecked {
				box = "☑ "
			}
			_, _ = w.WriteString(box)
		}
		return ast.WalkContinue, nil
	})
}
