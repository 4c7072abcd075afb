// Package internal_test holds the rules of the tree as a test: who may import
// whom, where third-party types stop, where goroutines start. It parses the
// files itself, because a test that asks the go command for its facts is
// cached and stays green.
package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// rows says who may import whom: a package imports lower rows only, and packages
// below the same folder; its tests may import its own row, too. A sub-package without a row
// stands in its parent's.
var rows = map[string]int{
	"cmd/bot": 9,
	"cmd/try": 9,

	"internal/matrix": 8,
	"internal/web":    8,
	"internal/doctor": 8,

	"internal/session": 7,
	"internal/dream":   7,

	"internal/subsession": 6,
	"internal/approval":   6,
	"internal/ask":        6,
	"internal/command":    6,
	"internal/recall":     6,
	"internal/harvest":    6,
	"internal/objective":  6,
	"internal/compaction": 6,

	"internal/agent": 5, // below what runs it: turns, sub-sessions, dreams

	"internal/attachment": 4,
	"internal/backup":     4,
	"internal/prompt":     4,
	"internal/tool":       4,
	"internal/questions":  4,

	"internal/memory":   3,
	"internal/task":     3,
	"internal/goal":     3,
	"internal/skill":    3,
	"internal/manner":   3,
	"internal/history":  3,
	"internal/settings": 3,
	"internal/profile":  3,
	"internal/voice":    3,
	"internal/window":   3,
	"internal/delivery": 3,
	"internal/tools":    3, // what `make` runs; no part of the program

	"internal/search":  2, // finds texts by id; knows nothing of memories
	"internal/media":   2,
	"internal/usage":   2,
	"internal/metrics": 2,

	"internal/chat":    1,
	"internal/llm":     1,
	"internal/sandbox": 1,
	"internal/store":   1,
	"internal/systemd": 1,
	"internal/vram":    1,

	"internal/chatexport": 0,
	"internal/hosts":      0,

	"internal/text":  0,
	"internal/tty":   0,
	"internal/idle":  0,
	"internal/pace":  0,
	"internal/test":  0, // what tests share
	"internal/trace": 0, // steps of every row
	"internal/trust": 0,
	"internal/i18n":  0, // errors of every row are made of its sentences

	"internal/lazyregexp": -1,
	".":                   -1,
}

// homes says where third-party packages stop. A module that is not listed here is
// not wanted yet: a new dependency is a decision.
var homes = []struct {
	prefix string
	in     []string // folders; nil = anywhere
}{
	{"maunium.net/go/mautrix", []string{"internal/matrix"}},
	{"go.mau.fi/util", []string{"internal/matrix"}},
	{"github.com/rs/zerolog", []string{"internal/matrix"}},
	{"github.com/yuin/goldmark", []string{"internal/matrix/render", "internal/web"}},
	{"github.com/microcosm-cc/bluemonday", []string{"internal/matrix/render"}},
	{"github.com/blevesearch/snowballstem", []string{"internal/text"}},
	{"github.com/sashabaranov/go-openai", []string{"internal/llm"}},
	{"github.com/kaptinlin/jsonrepair", []string{"internal/llm"}},
	{"github.com/pressly/goose", []string{"internal/store"}},
	{"filippo.io/age", []string{"internal/backup"}},
	{"github.com/google/renameio", []string{"internal/store"}},
	{"modernc.org/sqlite", []string{"internal/store"}},
	{"golang.org/x/sys", []string{"internal/store", "internal/llm/encoder", "internal/media", "internal/sandbox"}},
	{"github.com/landlock-lsm/go-landlock", []string{"internal/sandbox"}},
	{"github.com/elastic/go-seccomp-bpf", []string{"internal/sandbox"}},
	{"github.com/dop251/goja", []string{"internal/sandbox/script"}},
	{"github.com/robfig/cron", []string{"internal/task"}},
	{"gopkg.in/yaml.v3", []string{"cmd/bot/config", "internal/skill"}},
	{"github.com/alexflint/go-arg", []string{"cmd/bot"}},
	{"golang.org/x/term", []string{"internal/tty"}},
	{"golang.org/x/net/html", []string{"internal/matrix/render", "internal/tool/web"}},
	{"codeberg.org/readeck/go-readability", []string{"internal/tool/web"}},
	{"github.com/JohannesKaufmann/html-to-markdown", []string{"internal/tool/web"}},
	{"github.com/andybalholm/cascadia", []string{"internal/tool/web"}},
	{"golang.org/x/image", []string{"internal/media"}},
	{"github.com/modelcontextprotocol/go-sdk", []string{"internal/tool/mcp"}},
	{"github.com/coreos/go-oidc", []string{"internal/web"}},
	{"golang.org/x/oauth2", []string{"internal/web"}},
	{"github.com/prometheus/client_golang", []string{"internal/metrics"}},
	{"golang.org/x/sync", nil},
	{"golang.org/x/text", nil},
}

// testHomes are for tests only.
var testHomes = []string{
	"golang.org/x/net/dns/dnsmessage",
	"github.com/google/go-cmp", "github.com/rogpeppe/go-internal/testscript", "github.com/rogpeppe/go-internal/txtar", "pgregory.net/rapid",
}

// plain are methods whose name says all there is to say.
var plain = []string{
	"String", "Error", "Unwrap", "Is", "As", "Len", "Less", "Swap", "Read", "Write", "Close", "ServeHTTP", "Format", "LogValue",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalYAML", "UnmarshalYAML", "Scan", "Value",
}

const maxLines = 600

func TestRules(t *testing.T) {
	violations, files, err := examine(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Fatalf("only %d Go files found: the rules were looked for in the wrong place", files)
	}
	for _, v := range violations {
		t.Error(v)
	}
}

// examine checks every Go file of the module whose root is tree.
func examine(tree fs.FS) (violations []string, files int, err error) {
	e := newExaminer()
	files, err = e.walk(tree)
	e.judge()
	for dir, position := range e.first {
		if !e.documented[dir] {
			e.say(position, "package %s has no comment; say above `package` in one of its files what it is for", dir)
		}
	}
	slices.Sort(e.violations)
	return e.violations, files, err
}

func newExaminer() *examiner {
	return &examiner{documented: map[string]bool{}, first: map[string]token.Position{}, set: token.NewFileSet(), rooms: map[string]*room{}}
}

// walk looks at every Go file and counts them.
func (e *examiner) walk(tree fs.FS) (files int, err error) {
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() {
			_, other := fs.Stat(tree, path.Join(name, "go.mod")) // a module of its own has rules of its own
			if name != "." && (other == nil || strings.HasPrefix(base, ".") || base == "testdata" || base == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") {
			return nil
		}
		files++
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return e.file(name, source)
	})
	return files, err
}

type examiner struct {
	set        *token.FileSet
	violations []string
	documented map[string]bool           // folder → one of its files has a package comment
	first      map[string]token.Position // folder → where its first package clause stands
	rooms      map[string]*room          // folder → how large it is
}

func (e *examiner) say(at token.Position, format string, args ...any) {
	e.violations = append(e.violations, fmt.Sprintf("%s:%d: %s", at.Filename, at.Line, fmt.Sprintf(format, args...)))
}

func (e *examiner) file(name string, source []byte) error {
	parsed, err := parser.ParseFile(e.set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir, test := path.Dir(name), strings.HasSuffix(name, "_test.go")
	if lines := strings.Count(string(source), "\n"); lines > maxLines {
		e.say(token.Position{Filename: name, Line: maxLines}, "the file has %d lines; split it by subject, %d is the most", lines, maxLines)
	}
	for _, spec := range parsed.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		e.imports(e.set.Position(spec.Pos()), dir, target, test)
	}
	if test {
		return nil
	}
	if dir == "." && name != "assets.go" {
		e.say(e.set.Position(parsed.Package), "assets.go is the only Go file at the root; move this one to the package it belongs to")
	}
	if _, seen := e.first[dir]; !seen {
		e.first[dir] = e.set.Position(parsed.Package)
	}
	if parsed.Doc != nil {
		e.documented[dir] = true
	}
	e.goroutines(parsed)
	e.environment(dir, parsed)
	e.declarations(parsed)
	e.measure(dir, parsed, string(source))
	e.statements(dir, parsed)
	return nil
}

// area is the folder that has a row: internal/matrix for internal/matrix/peer.
func area(dir string) string {
	parts := strings.Split(dir, "/")
	return path.Join(parts[:min(2, len(parts))]...)
}

// ofTheWhole tells the folders that put everything together: the programs and the
// tests that run them. They may import all of it, and read flags and environment.
func ofTheWhole(dir string) bool {
	return dir == "cmd/bot" || dir == "cmd/try" || dir == "test" || strings.HasPrefix(dir, "test/")
}

func (e *examiner) imports(at token.Position, dir, target string, test bool) {
	if inner, ours := strings.CutPrefix(target+"/", "reverie/"); ours {
		e.ours(at, dir, path.Clean(inner), test)
		return
	}
	if first, _, _ := strings.Cut(target, "/"); !strings.Contains(first, ".") {
		if target == "flag" && !ofTheWhole(dir) && !test {
			e.say(at, "%s reads flags; only cmd/bot does, everything else takes a Config", dir)
		}
		return // the standard library
	}
	within := func(prefix string) bool { return target == prefix || strings.HasPrefix(target, prefix+"/") }
	if slices.ContainsFunc(testHomes, within) {
		if !test && area(dir) != "internal/test" {
			e.say(at, "%s is for tests only", target)
		}
		return
	}
	for _, home := range homes {
		if !within(home.prefix) {
			continue
		}
		inside := func(folder string) bool { return dir == folder || strings.HasPrefix(dir, folder+"/") }
		if home.in != nil && !slices.ContainsFunc(home.in, inside) && !test {
			e.say(at, "%s may not import %s: its types stop at %s; call what that package offers",
				dir, target, strings.Join(home.in, " and "))
		}
		return
	}
	e.say(at, "%s is a new dependency; if it is wanted, give it a home in internal/arch_test.go", target)
}

// doubles are the other side of a Matrix room, for tests and for cmd/try, and what tests share.
var doubles = regexp.MustCompile(`^(internal/(test|matrix/(matrixtest|peer|homeserver))|test|cmd/try)(/|$)`)

func (e *examiner) ours(at token.Position, dir, target string, test bool) {
	from, to := area(dir), area(target)
	if !test && doubles.MatchString(target) && !doubles.MatchString(dir) {
		e.say(at, "%s is for tests and cmd/try; it is no part of the bot", target)
		return
	}
	if from == to || from == "internal" || ofTheWhole(dir) {
		return
	}
	fromRow, known := rows[from]
	if !known {
		e.say(at, "%s has no row; give it one in internal/arch_test.go", from)
		return
	}
	toRow, known := rows[to]
	if !known {
		e.say(at, "%s has no row; give it one in internal/arch_test.go, or import something else", to)
		return
	}
	if toRow > fromRow || toRow == fromRow && !test {
		e.say(at, "%s (row %d) may not import %s (row %d): imports go to a lower row; declare an interface or a func field here and let cmd/bot set it",
			dir, fromRow, target, toRow)
	}
}

// goroutines: a bare go statement stands in a function named Run, or below a
// comment "// go: ..." that says who waits for it.
func (e *examiner) goroutines(file *ast.File) {
	why := map[int]bool{}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if strings.HasPrefix(comment.Text, "// go: ") {
				why[e.set.Position(group.End()).Line] = true
			}
		}
	}
	for _, decl := range file.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if ok && function.Name.Name == "Run" {
			continue
		}
		ast.Inspect(decl, func(node ast.Node) bool {
			if statement, ok := node.(*ast.GoStmt); ok {
				if at := e.set.Position(statement.Pos()); !why[at.Line-1] {
					e.say(at, "a goroutine starts outside a Run method; move it there, or say in a comment \"// go: ...\" above it who waits for it")
				}
			}
			return true
		})
	}
}

// environment: only cmd/bot reads it.
func (e *examiner) environment(dir string, file *ast.File) {
	if ofTheWhole(dir) {
		return
	}
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "os" && slices.Contains([]string{"Getenv", "LookupEnv", "ExpandEnv"}, selector.Sel.Name) {
			e.say(e.set.Position(node.Pos()), "%s reads the environment; only cmd/bot does, everything else takes a Config", dir)
		}
		return true
	})
}

// declarations: no init, and what is exported has a comment.
func (e *examiner) declarations(file *ast.File) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			at := e.set.Position(decl.Pos())
			if decl.Name.Name == "init" && decl.Recv == nil {
				e.say(at, "func init hides what happens at start; write a function and call it, or a table")
			}
			if file.Name.Name != "main" && decl.Doc == nil && decl.Name.IsExported() && exportedReceiver(decl) {
				e.say(at, "%s is exported and has no comment; say what it promises", decl.Name.Name)
			}
		case *ast.GenDecl:
			if file.Name.Name != "main" && decl.Doc == nil {
				e.specs(decl)
			}
		}
	}
}

func (e *examiner) specs(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		var names []*ast.Ident
		var comment bool
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			names, comment = []*ast.Ident{spec.Name}, spec.Doc != nil || spec.Comment != nil
		case *ast.ValueSpec:
			names, comment = spec.Names, spec.Doc != nil || spec.Comment != nil
		}
		for _, name := range names {
			if name.IsExported() && !comment {
				e.say(e.set.Position(name.Pos()), "%s is exported and has no comment; say what it is", name.Name)
			}
		}
	}
}

// exportedReceiver tells whether people outside can see the function: it is no
// method, or one of an exported type whose name does not already say it all.
func exportedReceiver(decl *ast.FuncDecl) bool {
	if decl.Recv == nil {
		return true
	}
	if slices.Contains(plain, decl.Name.Name) {
		return false
	}
	receiver := decl.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.Ident:
			return r.IsExported()
		default:
			return true
		}
	}
}

// Each rule is shown one breach of it, so that a rule that sees nothing is seen.
func TestRulesSeeBreaches(t *testing.T) {
	const head = "// Package x is for this test.\npackage x\n"
	cases := []struct {
		name, file, source string
		want               string // part of the only violation; "" = none
	}{
		{"lower row", "internal/tool/a.go", head + `import _ "reverie/internal/memory"`, ""},
		{"root assets", "internal/prompt/a.go", head + `import _ "reverie"`, ""},
		{"same row", "internal/tool/a.go", head + `import _ "reverie/internal/prompt"`, "internal/tool/a.go:3: internal/tool (row 4) may not import internal/prompt (row 4)"},
		{"higher row", "internal/llm/rehearsal/a.go", head + `import _ "reverie/internal/session"`, "internal/llm/rehearsal (row 1) may not import"},
		{"higher row in a test", "internal/llm/a_test.go", head + `import _ "reverie/internal/session"`, "may not import"},
		{"same folder", "internal/matrix/peer/a.go", head + `import _ "reverie/internal/matrix/homeserver"`, ""},
		{"sub-package of a lower row", "internal/tool/a.go", head + `import _ "reverie/internal/llm/rehearsal"`, ""},
		{"no row", "internal/utils/a.go", head + `import _ "reverie/internal/llm"`, "internal/utils has no row"},
		{"test double in the bot", "cmd/bot/a.go", head + `import _ "reverie/internal/matrix/peer"`, "no part of the bot"},
		{"checks of tests in a test", "internal/text/a_test.go", head + `import _ "reverie/internal/test/expect"`, ""},
		{"checks of tests elsewhere", "internal/text/a.go", head + `import _ "reverie/internal/test/expect"`, "no part of the bot"},
		{"end to end", "test/e2e_test.go", head + `import _ "reverie/internal/matrix/peer"`, ""},
		{"third party at home", "internal/matrix/peer/a.go", head + `import _ "maunium.net/go/mautrix/id"`, ""},
		{"third party strayed", "internal/session/a.go", head + `import _ "maunium.net/go/mautrix/id"`, "its types stop at internal/matrix"},
		{"third party unknown", "internal/session/a.go", head + `import _ "example.org/left-pad"`, "example.org/left-pad is a new dependency"},
		{"third party with a like name", "internal/matrix/a.go", head + `import _ "maunium.net/go/mautrix2"`, "is a new dependency"},
		{"test library in a test", "internal/tool/a_test.go", head + `import _ "github.com/google/go-cmp/cmp"`, ""},
		{"test library elsewhere", "internal/tool/a.go", head + `import _ "github.com/google/go-cmp/cmp"`, "for tests only"},
		{"flags", "internal/tool/a.go", head + `import _ "flag"`, "reads flags"},
		{"environment", "internal/tool/a.go", head + "import \"os\"\nvar home = os.Getenv(\"HOME\")", "internal/tool/a.go:4: internal/tool reads the environment"},
		{"init", "internal/tool/a.go", head + "func init() {}", "func init"},
		{"goroutine in Run", "internal/tool/a.go", head + "// Run runs.\nfunc Run() { go func() {}() }", ""},
		{"goroutine elsewhere", "internal/tool/a.go", head + "func start() {\n\tgo start()\n}", "internal/tool/a.go:4: a goroutine starts"},
		{"goroutine explained", "internal/tool/a.go", head + "func start() {\n\t// go: stop waits for it.\n\tgo start()\n}", ""},
		{"goroutine explained at length", "internal/tool/a.go", head + "func start() {\n\t// go: stop waits for it,\n\t// at the end.\n\tgo start()\n}", ""},
		{"goroutine in a test", "internal/tool/a_test.go", head + "func start() { go start() }", ""},
		{"no package comment", "internal/tool/a.go", "package tool", "package internal/tool has no comment"},
		{"exported function", "internal/tool/a.go", head + "func New() {}", "New is exported"},
		{"exported method", "internal/tool/a.go", head + "// Set is.\ntype Set[T any] struct{}\nfunc (*Set[T]) Add() {}", "Add is exported"},
		{"exported method of a hidden type", "internal/tool/a.go", head + "type set struct{}\nfunc (*set) Add() {}", ""},
		{"exported type", "internal/tool/a.go", head + "type Set struct{}", "Set is exported"},
		{"exported constants with one comment", "internal/tool/a.go", head + "// Kinds.\nconst (\n\tA = 1\n\tB = 2\n)", ""},
		{"exported constant", "internal/tool/a.go", head + "const (\n\tA = 1 // first\n\tB = 2\n)", "internal/tool/a.go:5: B is exported"},
		{"main exports to nobody", "cmd/bot/a.go", "// Bot is.\npackage main\nfunc Run() {}", ""},
		{"root file", "other.go", "// Package reverie is.\npackage reverie", "the only Go file at the root"},
		{"long file", "internal/tool/a.go", head + strings.Repeat("\n", maxLines), "the file has 602 lines"},
		{"generated test data", "internal/tool/testdata/a.go", "no Go at all", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			violations, _, err := examine(fstest.MapFS{
				c.file:              {Data: []byte(c.source)},
				"test/other/go.mod": {},
				"test/other/a.go":   {Data: []byte("a module of its own, left alone")},
			})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == "" && len(violations) > 0:
				t.Errorf("want no violation, got:\n%s", strings.Join(violations, "\n"))
			case c.want != "" && (len(violations) != 1 || !strings.Contains(violations[0], c.want)):
				t.Errorf("want one violation with %q, got:\n%s", c.want, strings.Join(violations, "\n"))
			}
		})
	}
}
