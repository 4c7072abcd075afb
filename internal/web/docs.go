package web

import (
	"bytes"
	"context"
	"html/template"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

// docs lists the documentation.
func docs(_ context.Context, v *visit) (view, error) {
	names, err := fs.Glob(v.cfg.Docs, "*.md")
	list := block{}
	for _, name := range names {
		text, err := fs.ReadFile(v.cfg.Docs, name)
		if err != nil {
			return view{}, err
		}
		title, _, _ := strings.Cut(string(text), "\n")
		list.Rows = append(list.Rows, []cell{link(strings.TrimLeft(title, "# "), "/docs", name)})
	}
	return view{Title: "Documentation", Blocks: []block{list}}, err
}

// doc shows a file of the documentation. goldmark leaves out HTML in it.
func doc(_ context.Context, v *visit) (view, error) {
	name := v.PathValue("name")
	if path.Ext(name) != ".md" || !fs.ValidPath(name) {
		return view{}, errNotFound
	}
	text, err := fs.ReadFile(v.cfg.Docs, name)
	if err != nil {
		return view{}, errNotFound
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	var out bytes.Buffer
	if err := markdown.Convert(text, &out); err != nil {
		return view{}, err
	}
	text = bytes.ReplaceAll(out.Bytes(), []byte(`href="../`), []byte(`title="../`)) // other files are not here
	html := template.HTML(text)                                                     //nolint:gosec // it is embedded in the program
	return view{Title: name, Back: link("Documentation", "/docs"), Blocks: []block{{HTML: html}}}, nil
}
