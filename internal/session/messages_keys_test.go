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
)

// speaking are the folders whose code says something to people in rooms.
var speaking = []string{".", "../matrix", "../task", "../dream", "../../cmd/bot"}

// sayingEnglish are the folders that say in English what is found by its words.
var sayingEnglish = append([]string{"../memory", "../media", "../llm", "../history", "../prompt"}, speaking...)

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
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
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
		i, ok := map[string]int{"text": 1, "Text": 2, "In": 1}[f.Sel.Name]
		return i, ok
	case *ast.Ident:
		return 0, f.Name == "say"
	}
	return 0, false
}

var keyForm = regexp.MustCompile(`^[a-z]+(\.[a-z_]+)+$`)

// What the program asks for by name is there, with all of its places filled in.
func TestMessageKeys(t *testing.T) {
	all, asked := allMessages(), 0
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
				want = all[key+formMore]
			}
			if want == "" || both && all[key+formOne] == "" {
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

// joints are where the program puts a sentence together.
var joints = regexp.MustCompile(`\{[a-z_]+\}|, which |, because | \(`)

// Every sentence of en.txt is asked for somewhere: by its name, or by the beginning of it.
// What is found by its English words is said in those words.
func TestMessagesAreUsed(t *testing.T) {
	var literals []string
	for _, file := range parsed(t, sayingEnglish) {
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					literals = append(literals, text)
				}
			}
			return true
		})
	}
	for _, key := range slices.Sorted(maps.Keys(builtinEnglish())) {
		if strings.HasPrefix(key, "why.") {
			for _, part := range joints.Split(builtinEnglish()[key], -1) {
				part = strings.TrimFunc(part, func(r rune) bool { return strings.ContainsRune(" ,.:;()#", r) })
				if len(part) > 3 && !slices.ContainsFunc(literals, func(l string) bool { return strings.Contains(l, part) }) {
					t.Errorf("en.txt: nothing says %q, of %s, any more", part, key)
				}
			}
			continue
		}
		name := strings.TrimSuffix(strings.TrimSuffix(key, formOne), formMore)
		used := slices.ContainsFunc(literals, func(l string) bool {
			return l == name || strings.HasSuffix(l, ".") && len(l) > 3 && keyForm.MatchString(l+"x") && strings.HasPrefix(name, l) || l == key
		})
		if !used && !strings.HasPrefix(key, "state.") {
			t.Errorf("en.txt: nobody asks for %s", key)
		}
	}
}
