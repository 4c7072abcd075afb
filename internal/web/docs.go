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

// docs lists the documentation by the titles of its files.
func docs(_ context.Context, v *visit) (view, error) {
	names, err := fs.Glob(v.cfg.Docs, "*.md")
	list := block{}
	for _, name := range names {
		text, _ := fs.ReadFile(v.cfg.Docs, name) // it is embedded in the program
		title, _, _ := strings.Cut(string(text), "\n")
		list.Rows = append(list.Rows, v.row(link(strings.TrimLeft(title, "# "), "/docs", name)))
	}
	return view{Title: "Documentation", Blocks: []block{list}}, err
}

// doc shows a file of the documentation. goldmark leaves out HTML in it.
func doc(_ context.Context, v *visit) (view, error) {
	name := v.PathValue("name")
	text, err := fs.ReadFile(v.cfg.Docs, name) // refuses paths that lead elsewhere
	if err != nil || path.Ext(name) != ".md" {
		return view{}, errNotFound
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	var out bytes.Buffer
	err = markdown.Convert(text, &out)
	text = bytes.ReplaceAll(out.Bytes(), []byte(`href="../`), []byte(`title="../`)) // other files are not here
	html := template.HTML(text)                                                     //nolint:gosec // it is embedded in the program
	return view{Title: name, Back: link("Documentation", "/docs"), Blocks: []block{{HTML: html}}}, err
}
