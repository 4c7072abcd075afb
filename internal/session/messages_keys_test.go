package session

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"reverie/internal/i18n"
)

// speaking are the folders whose code says something to people in rooms.
var speaking = []string{".", "../matrix", "../task", "../dream", "../memory", "../media", "../llm", "../history", "../prompt", "../i18n", "../../cmd/bot"}

// parsed are the files of folders, without their tests.
func parsed(t *testing.T, dirs []string) map[string]*ast.File {
	t.Helper()
	all := map[string]*ast.File{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f := result(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
			all[name] = f
		}
	}
	return all
}

// at is the literal among args at i.
func at(args []ast.Expr, i int) (string, bool) {
	if i >= len(args) {
		return "", false
	}
	lit, ok := args[i].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// keyAt is where in the arguments of a call the key of a sentence is.
func keyAt(call *ast.CallExpr) (int, bool) {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		if of, ok := f.X.(*ast.Ident); ok && of.Name == "i18n" && f.Sel.Name == "New" {
			return 0, true
		}
		i, ok := map[string]int{"text": 1, "Text": 2, "In": 1}[f.Sel.Name]
		return i, ok
	case *ast.Ident:
		i, ok := map[string]int{"say": 0, "New": 0, "textError": 0, "refuse": 1}[f.Name]
		return i, ok
	}
	return 0, false
}

var keyForm = regexp.MustCompile(`^[a-z]+(\.[a-z_]+)+$`)

// What the program asks for by name is there, with all of its places filled in.
func TestMessageKeys(t *testing.T) {
	all, asked := i18n.Source(), 0
	for name, file := range parsed(t, speaking) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			i, ok := keyAt(call)
			if !ok {
				return true
			}
			key, ok := at(call.Args, i)
			if !ok || strings.Contains(key, " ") || strings.HasSuffix(key, ".") { // English, or the beginning of a key
				return true
			}
			asked++
			want, both := all[key], all[key] == ""
			if both {
				want = all[key+i18n.More]
			}
			if want == "" || both && all[key+i18n.One] == "" {
				t.Errorf("%s asks for %q, which is nowhere", name, key)
			}
			var given []string
			for j := i + 1; j < len(call.Args); j += 2 {
				place, ok := at(call.Args, j)
				if !ok {
					t.Errorf("%s: a place of %q has no name", name, key)
				}
				given = append(given, "{"+place+"}")
			}
			for _, place := range places(want) {
				if !slices.Contains(given, place) {
					t.Errorf("%s: %q is not filled in with %s", name, key, place)
				}
			}
			return true
		})
	}
	if asked < 200 {
		t.Errorf("only %d sentences are asked for: they were looked for in the wrong way", asked)
	}
}

// Every sentence of en.txt is asked for somewhere: by its name, or by the beginning of it.
func TestMessagesAreUsed(t *testing.T) {
	var literals []string
	for _, file := range parsed(t, speaking) {
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					literals = append(literals, text)
				}
			}
			return true
		})
	}
	for _, key := range slices.Sorted(maps.Keys(i18n.Source())) {
		name := strings.TrimSuffix(strings.TrimSuffix(key, i18n.One), i18n.More)
		used := slices.ContainsFunc(literals, func(l string) bool {
			return l == name || strings.HasSuffix(l, ".") && len(l) > 3 && keyForm.MatchString(l+"x") && strings.HasPrefix(name, l) || l == key ||
				strings.Contains(l, "'"+name+"'") // in SQL
		})
		if !used && !strings.HasPrefix(key, "state.") {
			t.Errorf("en.txt: nobody asks for %s", key)
		}
	}
}

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
