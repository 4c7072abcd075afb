package lazyregexp

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPatterns compiles every pattern of the program: a wrong one would not show before its first use.
func TestPatterns(t *testing.T) {
	fset, packages := token.NewFileSet(), map[string][]*ast.File{}
	for _, root := range []string{"../../internal", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(fset, path, nil, 0)
			packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], file)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	compiled := 0
	for _, files := range packages {
		info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		lenient := types.Config{Error: func(error) {}} // nothing is imported; constants are known all the same
		_, _ = lenient.Check("p", fset, files, &info)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || types.ExprString(call.Fun) != "lazyregexp.New" {
					return true
				}
				value := info.Types[call.Args[0]].Value
				if value == nil || value.Kind() != constant.String {
					t.Errorf("%s: the pattern must be a constant", fset.Position(call.Pos()))
					return true
				}
				compiled++
				if _, err := regexp.Compile(constant.StringVal(value)); err != nil {
					t.Errorf("%s: %v", fset.Position(call.Pos()), err)
				}
				return true
			})
		}
	}
	t.Logf("%d patterns", compiled)
	if compiled < 100 {
		t.Error("that is not all")
	}
}

func TestNew(t *testing.T) {
	re := New(`a(b*)`)
	if first := re(); first != re() || first.FindString("xabb") != "abb" {
		t.Errorf("got %v", first)
	}
}
