package internal_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestMannersTable: each test that the table of manners in ARCHITECTURE.md names is there,
// and those that it names for the real homeserver run on that.
func TestMannersTable(t *testing.T) {
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n## Manners\n")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no section Manners")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(table, -1)
	if lines := strings.Count(table, "\n| "); len(rows) != lines || len(rows) < 60 {
		t.Errorf("%d rows are read, of %d", len(rows), lines)
	}
	for _, r := range rows[1:] {
		for i, cell := range r[2:] {
			if i == 1 && cell == "–" {
				continue
			}
			for _, one := range strings.Split(cell, ", ") {
				body, there := bodyOf(t, one)
				if !there {
					t.Errorf("%s: there is no %s", r[1], one)
				}
				if i == 1 && !onHomeserver.MatchString(body) {
					t.Errorf("%s: %s does not run on the real homeserver", r[1], one)
				}
			}
		}
	}
}

var (
	namedTest    = regexp.MustCompile("^(?:([a-z/]+) )?`((?:Test|Fuzz)\\w+)`$")
	onHomeserver = regexp.MustCompile(`newConversation\(t\)|newWorld\(t\)|homeservertest\.Start\(t\)`)
	bodies       = map[string]string{} // folder → all its tests
)

// bodyOf is what a test does that is named with its package.
func bodyOf(t *testing.T, name string) (body string, there bool) {
	t.Helper()
	m := namedTest.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	dir := map[string]string{"": "matrix", "session": "session", "media": "media", "tool": "tool", "test": "../test", "cmd/bot": "../cmd/bot"}[m[1]]
	if bodies[dir] == "" {
		bodies[dir] = testsIn(t, dir)
	}
	_, body, there = strings.Cut(bodies[dir], "\nfunc "+m[2]+"(")
	body, _, _ = strings.Cut(body, "\n}\n")
	return body, there
}
