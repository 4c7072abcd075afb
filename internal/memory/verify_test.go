package memory

import (
	"fmt"
	"slices"
	"testing"
)

// What stands in one table of the index alone is found.
func TestVerifyFindsWhatStandsAlone(t *testing.T) {
	f := openIndex(t)
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf(`{"text":"apple %d"}`, i))
	}
	remember(t, f, lines...)
	if _, err := f.db.Exec(`DELETE FROM index_doc WHERE doc = 2; INSERT INTO index_fts (rowid, body) VALUES (7, 'alone')`); err != nil {
		t.Fatal(err)
	}
	faults, err := f.Verify(t.Context())
	if err != nil || !slices.Contains(faults, "2 texts stand in the full-text table alone") || !slices.Contains(faults, "memory 2 is missing") {
		t.Errorf("%q, %v", faults, err)
	}
}

// Verifying sees one state of the index while others write.
func TestVerifyBesideAWriter(t *testing.T) {
	f := openIndex(t)
	remember(t, f, `{"text":"apple","conversation":"c","seq":1}`, `{"text":"pear","conversation":"c","seq":3}`)
	done := make(chan error, 1)
	// go: it ends with its last message, and is waited for
	go func() {
		for i := range 40 {
			if err := f.Hear(t.Context(), Turn{Scope: Shared, Event: fmt.Sprint("$", i), Text: "hello", At: today, Conversation: "c", Seq: i}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for ended := false; !ended; {
		if faults, err := f.Verify(t.Context()); err != nil || len(faults) > 0 {
			t.Errorf("%q, %v", faults, err)
		}
		select {
		case err := <-done:
			if ended = true; err != nil {
				t.Error(err)
			}
		default:
		}
	}
}
