package session

import (
	"go/ast"
	"go/token"
	"regexp"
	"testing"
)

// sentenceForm is a literal that people would read: two words at least.
var sentenceForm = regexp.MustCompile(`[A-Za-z]{3,}[ ,:;]+[A-Za-z]{2,}`)

// shown are the expressions of a file whose text a room gets: of messages, of notices, and
// of redactions.
func shown(file *ast.File) (all []ast.Expr) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			name := ""
			switch kind := n.Type.(type) {
			case *ast.Ident:
				name = kind.Name
			case *ast.SelectorExpr:
				name = kind.Sel.Name
			}
			for _, e := range n.Elts {
				kv, ok := e.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				key, _ := kv.Key.(*ast.Ident)
				switch {
				case key == nil:
				case (name == "Outgoing" || name == "notice") && (key.Name == "Text" || key.Name == "text" || key.Name == "Caption"), name == "ReqRedact" && key.Name == "Reason":
					all = append(all, kv.Value)
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "notice" || f.Sel.Name == "endDraft") && len(n.Args) == 3 {
				all = append(all, n.Args[2])
			}
		}
		return true
	})
	return all
}

// TestNoSentencesInCode: what is sent to rooms holds no sentence of its own: it comes from
// data/messages, by its name.
func TestNoSentencesInCode(t *testing.T) {
	looked := 0
	for name, file := range parsed(t, append([]string{"../tool"}, speaking...)) {
		for _, e := range shown(file) {
			looked++
			ast.Inspect(e, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && sentenceForm.MatchString(lit.Value) {
					t.Errorf("%s: %s is said in English in every room", name, lit.Value)
				}
				return true
			})
		}
	}
	if looked < 30 {
		t.Errorf("only %d expressions were looked at: they were looked for in the wrong way", looked)
	}
}
