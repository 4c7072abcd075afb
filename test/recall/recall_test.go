package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/test/expect"
)

// TestSet: a small set is measured as counted by hand.
func TestSet(t *testing.T) {
	folder, cache := t.TempDir(), t.TempDir()
	write := func(name string, lines ...string) {
		expect.OK(t, os.WriteFile(filepath.Join(folder, name), []byte(strings.Join(lines, "\n")), 0o600))
	}
	write("memory.jsonl",
		`{"text":"Anna keeps bees","scope":"room:!a:x","ref":"1"}`,
		`{"text":"the bees sting `+strings.Repeat("again and ", 1200)+`","scope":"room:!a:x","ref":"2"}`,
		`{"text":"a boat","scope":"room:!a:x","ref":"3"}`,
		`{"text":"Anna keeps bees elsewhere","scope":"room:!b:x","ref":"1"}`)
	write("questions.jsonl",
		`{"query":"who keeps bees?","scope":"room:!a:x","kind":"one","evidence":["1"]}`,
		`{"query":"bees?","scope":"room:!a:x","kind":"two","evidence":["2","3"]}`,
		`{"query":"boat","scope":"room:!a:x","kind":"two","evidence":["1"],"apart":true}`,
		`{"query":"trains?","scope":"room:!a:x","kind":"none","evidence":[]}`,
		`{"query":"bees","scope":"room:!a:x","kind":"none","evidence":[]}`)
	for range 2 { // the second time with the vectors of the first
		f := expect.Must(measureSet(t.Context(), folder, cache, false))(t)
		for _, r := range f.Ways[:2] {
			a := r.All
			if a.Questions != 2 || a.Recall != [3]float64{75, 75, 75} || a.Without != 2 || a.Quiet != 50 || a.Within != [3]float64{50, 50, 75} {
				t.Errorf("%s: %+v", r.Way, a)
			}
			if two := r.Kinds["two"]; two.Questions != 2 || two.Recall[1] != 25 {
				t.Errorf("%s: %+v", r.Way, two)
			}
		}
		var out strings.Builder
		expect.OK(t, f.print(&out))
		expect.Has(t, out.String(), "4 memories", "fts5", "two")
	}
	write("questions.jsonl", `{"query":"bees?","scope":"room:!b:x","kind":"one","evidence":["2"]}`)
	if _, err := measureSet(t.Context(), folder, cache, false); err == nil || !strings.Contains(err.Error(), `evidence "2" of question 1`) {
		t.Errorf("evidence of another scope: %v", err)
	}
}
