package internal_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	update       = flag.Bool("update", false, "rewrite docs/faults.md from faults.txt and the tests")
	faultLine    = regexp.MustCompile(`^([FLWPSTM]\d+) (.+)$`)
	holdsLine    = regexp.MustCompile(`(?m)^// Holds (.+)\.\nfunc (\w+)\(`)
	onHomeserver = regexp.MustCompile(`newConversation\(t\)|newWorld\(t\)|homeservertest\.Start\(t\)|atHome\(t\)`)
)

// TestFaults: each line of faults.txt is held by a test that says so, on the real homeserver where the
// line says that. No test holds a line that is missing there. docs/faults.md shows both.
func TestFaults(t *testing.T) {
	held, real := holders(t)
	text, err := os.ReadFile("faults.txt")
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString("<!-- Written by `make faults` from internal/faults.txt and the tests; do not edit. -->\n\n")
	lines, inTable := 0, false
	for line := range strings.Lines(string(text)) {
		m := faultLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			inTable = false
			page.WriteString(line)
			continue
		}
		id, what := m[1], m[2]
		if !inTable {
			page.WriteString("| | what | held by |\n|---|---|---|\n")
		}
		inTable = true
		lines++
		fmt.Fprintf(&page, "| %s | %s | %s |\n", id, what, strings.Join(held[id], ", "))
		if len(held[id]) == 0 {
			t.Errorf("no test holds %s: %s", id, what)
		}
		if strings.HasSuffix(what, "(real)") && !real[id] {
			t.Errorf("no test on the real homeserver holds %s: %s", id, what)
		}
		delete(held, id)
	}
	if lines < 150 {
		t.Fatalf("faults.txt has only %d lines", lines)
	}
	for id, tests := range held {
		t.Errorf("%q hold %s, which is not in faults.txt", tests, id)
	}
	const path = "../docs/faults.md"
	if *update {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(path); err != nil || string(is) != page.String() {
		t.Errorf("docs/faults.md is stale; `make faults` writes it (%v)", err)
	}
}

// holders returns the tests that hold each line, and which lines are held on the real homeserver.
func holders(t *testing.T) (held map[string][]string, real map[string]bool) {
	t.Helper()
	held, real = map[string][]string{}, map[string]bool{}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range holdsLine.FindAllStringSubmatchIndex(string(source), -1) {
			body, _, _ := strings.Cut(string(source[m[1]:]), "\n}\n")
			for id := range strings.SplitSeq(string(source[m[2]:m[3]]), ", ") {
				held[id] = append(held[id], filepath.Base(filepath.Dir(path))+"."+string(source[m[4]:m[5]]))
				real[id] = real[id] || onHomeserver.MatchString(body)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tests := range held {
		slices.Sort(tests)
	}
	return held, real
}
