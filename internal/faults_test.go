package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	faultLine    = regexp.MustCompile(`(?m)^- ([FLWPSTM]\d+) (.+)$`)
	holdsLine    = regexp.MustCompile(`(?m)^// Holds (.+)\.\nfunc (\w+)\(`)
	onHomeserver = regexp.MustCompile(`newConversation\(t\)|newWorld\(t\)|homeservertest\.Start\(t\)|atHome\(t\)`)
)

// TestFaults: each line of docs/faults.md is held by a test that says so, on the real homeserver
// where the line says that, and no test says that it holds what is not there.
func TestFaults(t *testing.T) {
	text, err := os.ReadFile("../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := faultLine.FindAllStringSubmatch(string(text), -1)
	if len(lines) < 150 {
		t.Fatalf("only %d lines", len(lines))
	}
	held, real := map[string][]string{}, map[string]bool{}
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range holdsLine.FindAllStringSubmatchIndex(string(source), -1) {
			body, _, _ := strings.Cut(string(source[m[1]:]), "\n}\n")
			for id := range strings.SplitSeq(string(source[m[2]:m[3]]), ", ") {
				held[id] = append(held[id], filepath.Base(filepath.Dir(path))+" "+string(source[m[4]:m[5]]))
				real[id] = real[id] || onHomeserver.MatchString(body)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		id, what := line[1], line[2]
		t.Logf("%s %s: %s", id, what, strings.Join(held[id], ", ")) // `make faults`
		if len(held[id]) == 0 {
			t.Errorf("no test holds %s: %s", id, what)
		}
		if strings.HasSuffix(what, "(real)") && !real[id] {
			t.Errorf("no test on the real homeserver holds %s: %s", id, what)
		}
		delete(held, id)
	}
	for id, tests := range held {
		slices.Sort(tests)
		t.Errorf("%q hold %s, which is not in docs/faults.md", tests, id)
	}
}
