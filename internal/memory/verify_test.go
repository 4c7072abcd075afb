package memory

import (
	"fmt"
	"slices"
	"testing"
)

// Verifying keeps nobody from writing, and what is written meanwhile is no fault.
func TestVerifyBesideAWriter(t *testing.T) {
	f := openIndex(t)
	remember(t, f, `{"text":"apple","conversation":"c","seq":1}`, `{"text":"pear","conversation":"c","seq":3}`)
	told := 0
	faults, err := f.VerifyWatched(t.Context(), func(done, total int) {
		told++
		if done != 2 || total != 2 {
			t.Errorf("%d of %d", done, total)
		}
		if err := f.Hear(t.Context(), Turn{Scope: Shared, Event: "$1", Text: "hello", At: today}); err != nil {
			t.Error(err)
		}
		remember(t, f, `{"text":"plum","conversation":"c","seq":2}`)
	})
	if err != nil || len(faults) > 0 || told != 1 {
		t.Errorf("%q, %v, told %d times", faults, err, told)
	}
	if faults, err := f.Verify(t.Context()); err != nil || len(faults) > 0 {
		t.Errorf("%q, %v", faults, err)
	}
}

// What stands in one table of the index alone is found, and progress goes from one
// part to the next.
func TestVerifyInParts(t *testing.T) {
	f := openIndex(t)
	var lines []string
	for i := range indexedAtOnce + 10 {
		lines = append(lines, fmt.Sprintf(`{"text":"apple %d"}`, i))
	}
	remember(t, f, lines...)
	if _, err := f.db.Exec(`DELETE FROM index_doc WHERE doc = 2; INSERT INTO index_fts (rowid, body) VALUES (7, 'alone')`); err != nil {
		t.Fatal(err)
	}
	var told []int
	faults, err := f.VerifyWatched(t.Context(), func(done, total int) { told = append(told, done, total) })
	if err != nil || !slices.Contains(faults, "2 texts stand in the full-text table alone") || !slices.Contains(faults, "memory 2 is missing") {
		t.Errorf("%q, %v", faults, err)
	}
	if !slices.Equal(told, []int{indexedAtOnce, indexedAtOnce + 10, indexedAtOnce + 10, indexedAtOnce + 10}) {
		t.Errorf("told %v", told)
	}
}
