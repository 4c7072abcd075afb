package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSeeds: the tests that docs/seeds.md names exist.
func TestSeeds(t *testing.T) {
	page, err := os.ReadFile("../docs/seeds.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w*`).FindAllString(string(page), -1) {
		named[name] = true
	}
	if len(named) < 50 {
		t.Fatalf("docs/seeds.md names only %d tests", len(named))
	}
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range test.FindAllStringSubmatch(string(source), -1) {
			delete(named, m[1])
		}
		return err
	})
	if err != nil || len(named) > 0 {
		t.Errorf("docs/seeds.md names tests that do not exist: %v (%v)", named, err)
	}
}
