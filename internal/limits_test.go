package internal_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"reverie"
)

// The limits of one package. What is larger, nobody knows whole.
var limits = []limit{
	{"lines", 3500},
	{"exported names", 60},  // methods of exported types count
	{"methods", 40},         // of one type
	{"fields", 20},          // of one struct
	{"lines in a func", 80}, // the longest
	{"long lines", 0},       // of more than 140 columns, a tab is four
}

type limit struct {
	what string
	most int
}

const columns = 140

// exceptions says what is larger than its limit today, and how large it may be. The list only
// gets shorter and its figures smaller.
var exceptions = map[string]int{
	"internal/memory: exported names": 94,
	"internal/session: methods":       86,
}

// owners says which package holds the SQL statements on a table. Others call it.
var owners = map[string][]string{
	"internal/history":     {"message", "room", "compaction"},
	"internal/task":        {"task", "job_run"},
	"internal/goal":        {"goal", "goal_artifact", "goal_checkpoint", "goal_decision", "goal_cursor"},
	"internal/settings":    {"room_setting"},
	"internal/manner":      {"manner"},
	"internal/usage":       {"usage", "usage_warning"},
	"internal/window":      {"tier_lock", "model_window", "token_ratio"},
	"internal/session":     {"session"},
	"internal/approval":    {"approval"},
	"internal/backup":      {"backup_run"},
	"internal/objective":   {"objective"},
	"internal/subsession":  {"sub_session", "sub_session_need"},
	"internal/prompt":      {"prompt_epoch", "prompt_report"},
	"internal/matrix":      {"matrix_sync"},
	"internal/matrix/room": {"matrix_room", "matrix_tombstone"},
	"internal/delivery": {"inbox", "outbox", "group_message", "redacted_message", "redacted_txn", "pending_redaction",
		"question_reply", "matrix_thread"},
	"internal/memory":         {"memory", "memory_source", "memory_revision", "memory_forgotten", "memory_op", "memory_salt"},
	"internal/memory/file":    {"memory_file"},
	"internal/questions":      {"memory_question"},
	"internal/search":         {"past_message", "index_doc", "index_scope", "index_term", "index_fts"},
	"internal/search/vector":  {"embedding_model", "embedding"},
	"internal/dream":          {"dream_change", "dream_op", "dream_task_list", "dream_run", "dream_verdict"},
	"internal/harvest":        {"harvest"},
	"internal/tool/workspace": {"work_file"},
	"internal/tool/mcp":       {"mcp_server"},
}

// foreignStatements are packages that hold statements on tables of others today. The list only
// gets shorter.
var foreignStatements = map[string][]string{}

// unlimited are folders of test doubles, of tests and of what `make` runs.
var unlimited = regexp.MustCompile(`(^|/)(matrixtest|peer|homeserver|storetest|standin|testset|rehearsal|tools|test)(/|$)|test$`)

// room is how large one package is.
type room struct {
	figures map[string]int
	methods map[string]int // type → how many it has
}

func (e *examiner) measure(dir string, file *ast.File, source string) {
	if unlimited.MatchString(dir) {
		return
	}
	r := e.rooms[dir]
	if r == nil {
		r = &room{figures: map[string]int{}, methods: map[string]int{}}
		e.rooms[dir] = r
	}
	most := func(what string, n int) { r.figures[what] = max(r.figures[what], n) }
	for line := range strings.Lines(source) {
		r.figures["lines"]++
		if len([]rune(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    "))) > columns {
			r.figures["long lines"]++
		}
	}
	exported := func(name *ast.Ident) {
		if name.IsExported() {
			r.figures["exported names"]++
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			most("lines in a func", e.set.Position(decl.End()).Line-e.set.Position(decl.Pos()).Line+1)
			if decl.Recv == nil {
				exported(decl.Name)
				continue
			}
			owner := receiver(decl)
			r.methods[owner]++
			most("methods", r.methods[owner])
			if ast.IsExported(owner) {
				exported(decl.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					exported(spec.Name)
					if structure, ok := spec.Type.(*ast.StructType); ok {
						most("fields", structure.Fields.NumFields())
					}
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						exported(name)
					}
				}
			}
		}
	}
}

// receiver is the name of the type that a method belongs to.
func receiver(decl *ast.FuncDecl) string {
	expr := decl.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return "?"
		}
	}
}

// judge compares what was measured with the limits.
func (e *examiner) judge() {
	for _, dir := range slices.Sorted(maps.Keys(e.rooms)) {
		at := token.Position{Filename: dir, Line: 1}
		for _, limit := range limits {
			key, n := dir+": "+limit.what, e.rooms[dir].figures[limit.what]
			allowed, excepted := exceptions[key]
			switch {
			case n > limit.most && !excepted:
				e.say(at, "%d %s, the most is %d: split the package, the type or the function by subject", n, limit.what, limit.most)
			case n > allowed && excepted:
				e.say(at, "%d %s, %d is what it had: make it smaller again", n, limit.what, allowed)
			}
		}
	}
}

// An exception that is needed no more is struck, so that it cannot be used again.
func TestExceptionsAreNeeded(t *testing.T) {
	e := newExaminer()
	if _, err := e.walk(os.DirFS("..")); err != nil {
		t.Fatal(err)
	}
	for key := range exceptions {
		dir, what, _ := strings.Cut(key, ": ")
		i := slices.IndexFunc(limits, func(l limit) bool { return l.what == what })
		if i < 0 || e.rooms[dir] == nil || e.rooms[dir].figures[what] <= limits[i].most {
			t.Errorf("strike %q from the exceptions: it is within the limit", key)
		}
	}
}

// named finds the tables of an SQL statement.
var named = regexp.MustCompile(`\b(?:FROM|JOIN|INTO|UPDATE(?: OR [A-Z]+)?)\s+([a-z_]+)`)

// partial are the indexes of the rows whose first column is not empty: by name the table and that column.
var partial = func() map[string][2]string {
	indexes := map[string][2]string{}
	files, _ := fs.Glob(reverie.Migrations, "01*.sql")
	for _, file := range files {
		text, _ := fs.ReadFile(reverie.Migrations, file)
		for _, m := range changed.FindAllStringSubmatch(string(text), -1) {
			delete(indexes, m[1])
			if m[4] != "" && m[3] == m[4] {
				indexes[m[1]] = [2]string{m[2], m[3]}
			}
		}
	}
	return indexes
}()

var changed = regexp.MustCompile(`INDEX (\w+)(?: ON (\w+) \((\w+)[^)]*\)(?: WHERE (\w+) <> '')?)?;`)

// statements: SQL on a table stands in the package that owns it, and SQLite can use the indexes.
func (e *examiner) statements(dir string, file *ast.File) {
	if unlimited.MatchString(dir) {
		return
	}
	ast.Inspect(file, func(node ast.Node) bool {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			return true
		}
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			owner := ownerOf(match[1])
			if owner != "" && owner != dir && !slices.Contains(foreignStatements[dir], match[1]) {
				e.say(e.set.Position(node.Pos()), "a statement on %s; %s owns that table: call it", match[1], owner)
			}
			_, where, _ := strings.Cut(text, "WHERE ")
			for name, of := range partial {
				if of[0] == match[1] && strings.Contains(where, of[1]+" = ?") && !strings.Contains(where, of[1]+" <> ''") {
					e.say(e.set.Position(node.Pos()), "SQLite cannot use the index %s: say %s <> '', too", name, of[1])
				}
			}
		}
		return true
	})
}

func ownerOf(table string) string {
	for dir, tables := range owners {
		if slices.Contains(tables, table) {
			return dir
		}
	}
	return ""
}

// Each limit is shown one breach of it.
func TestLimitsSeeBreaches(t *testing.T) {
	const head = "// Package x is for this test.\npackage x\n"
	for name, c := range map[string]struct{ file, source, want string }{
		"lines":       {"internal/llm/calls/a.go", head + strings.Repeat("//\n", 3500), "internal/llm/calls:1: 3502 lines, the most is 3500"},
		"exported":    {"internal/trust/a.go", head + "// A is.\nconst (" + names(61) + ")", "61 exported names"},
		"methods":     {"internal/trust/a.go", head + "type a int\n" + methods(41), "41 methods"},
		"fields":      {"internal/trust/a.go", head + "type a struct{" + strings.ToLower(names(21)) + "int}", "21 fields"},
		"function":    {"internal/trust/a.go", head + "func f() {" + strings.Repeat("\n", 80) + "}", "81 lines in a func"},
		"columns":     {"internal/trust/a.go", head + "\t// " + strings.Repeat("x", 134), "1 long lines"},
		"columns fit": {"internal/trust/a.go", head + "\t// " + strings.Repeat("ü", 133), ""},
		"table":       {"internal/trust/a.go", head + "const q = `SELECT id FROM message WHERE seq > 1`", "internal/history owns that table"},
		"index":       {"internal/history/a.go", head + "const q = `SELECT id FROM message WHERE event_id = ?`", "use the index message_by_event"},
		"own table":   {"internal/history/a.go", head + "const q = `SELECT id FROM message`", ""},
		"test double": {"internal/store/storetest/a.go", head + "const q = `DELETE FROM message`", ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, _, err := examine(fstest.MapFS{c.file: {Data: []byte(c.source)}})
			if err != nil {
				t.Fatal(err)
			}
			found = slices.DeleteFunc(found, func(v string) bool { return strings.Contains(v, "the file has") })
			if got := strings.Join(found, "\n"); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// names are n exported names.
func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "N%d, ", i)
	}
	return strings.TrimSuffix(b.String(), ", ") + " "
}

func methods(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "func (a) m%d() {}\n", i)
	}
	return b.String()
}
