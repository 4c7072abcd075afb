package internal_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDefectTable: each test that the table of defects in ARCHITECTURE.md names
// is there, and a defect without one says what it waits for.
func TestDefectTable(t *testing.T) {
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n## Defects seen elsewhere\n")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no section Defects seen elsewhere")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| ([LWPST]\d+) \| [^|]+ \| (.+) \|$`).FindAllStringSubmatch(table, -1)
	if lines := strings.Count(table, "\n| "); len(rows) != lines-1 || len(rows) < 25 {
		t.Errorf("%d rows are read, of %d", len(rows), lines-1)
	}
	name := regexp.MustCompile("(?:^|, |: )(?:([a-z]+) )?`((?:Test|Fuzz)\\w+)`")
	waits := regexp.MustCompile(`^waits for (dreaming|harvesting|vectors)(; [a-z ]+: |$)`)
	known := map[string]string{}
	for _, r := range rows {
		tests := name.FindAllStringSubmatch(r[2], -1)
		if len(tests) != strings.Count(r[2], "`")/2 || len(tests) == 0 && !waits.MatchString(r[2]) {
			t.Errorf("defect %s: %q is no list of tests", r[1], r[2])
		}
		for _, m := range tests {
			dir := m[1]
			if dir == "" {
				dir = "memory"
			}
			if known[dir] == "" {
				known[dir] = testsIn(t, dir)
			}
			if !strings.Contains(known[dir], "\nfunc "+m[2]+"(") {
				t.Errorf("defect %s: there is no %s in %s", r[1], m[2], dir)
			}
		}
	}
}
