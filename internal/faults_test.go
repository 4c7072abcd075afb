package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFaultTable: each test that the table of faults in ARCHITECTURE.md names is
// there, in the package that it names.
func TestFaultTable(t *testing.T) {
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n## Faults\n")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no section Faults")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	row := regexp.MustCompile(`(?m)^\| (\d+) \| [^|]+ \| (.+) \|$`)
	name := regexp.MustCompile("^(?:([a-z/]+) )?`((?:Test|Fuzz)\\w+)`$")
	known := map[string]string{} // folder → all its tests
	rows := row.FindAllStringSubmatch(table, -1)
	if len(rows) < 46 {
		t.Errorf("only %d rows", len(rows))
	}
	for _, r := range rows {
		for _, cell := range strings.Split(r[2], ", ") {
			m := name.FindStringSubmatch(cell)
			if m == nil {
				t.Errorf("fault %s: %q names no test", r[1], cell)
				continue
			}
			dir := map[string]string{"": "matrix", "session": "session", "store": "store", "media": "media", "test": "../test", "cmd/bot": "../cmd/bot"}[m[1]]
			if known[dir] == "" {
				known[dir] = testsIn(t, dir)
			}
			if dir == "" || !strings.Contains(known[dir], "\nfunc "+m[2]+"(") {
				t.Errorf("fault %s: there is no %s", r[1], cell)
			}
		}
	}
}

func testsIn(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
