package memory

import (
	"testing"
)

// Who took an import back and imports the file again has it again. What a person put
// away stays away, and what was to be forgotten stays forgotten.
// Holds W8.
func TestImportOfWhatWasUndone(t *testing.T) {
	t.Parallel()
	const lines = `{"text":"the boat is blue","ref":"1"}
{"text":"the heron is grey"}
{"text":"the safe is green","conversation":"c","seq":1}
{"text":"the tea is cold"}`
	s := openAt(t, t.TempDir())
	again := func(added, known, forgotten int) string {
		t.Helper()
		got, err := newImporter(s).Import(t.Context(), "x", []byte(lines))
		if err != nil || got.Added != added || got.Known != known || got.Forgotten != forgotten {
			t.Fatalf("%+v, %v", got, err)
		}
		sound(t, s)
		return got.Batch
	}
	undo := func(batch string) string {
		t.Helper()
		u := must(s.Undo(t.Context(), everything, batch))(t)
		return u.Batch
	}
	one := func(words string) string {
		t.Helper()
		found, _, err := s.Find(t.Context(), everything, words)
		if err != nil || len(found) != 1 {
			t.Fatalf("%q: %+v, %v", words, found, err)
		}
		return found[0].ID
	}
	batch := again(4, 0, 0)
	again(0, 4, 0)
	undone := undo(batch)
	if got := texts(t, s, Private(owner)); got != "" {
		t.Fatalf("after the undoing: %q", got)
	}
	undo(undo(undone)) // there again, and gone again
	again(4, 0, 0)
	if got := texts(t, s, Private(owner)); got != "the boat is blue|the heron is grey|the tea is cold" {
		t.Errorf("known: %q", got)
	}
	noError(t, s.Retire(t.Context(), everything, one("heron")))
	again(0, 4, 0)
	must(s.Forget(t.Context(), everything, one("tea")))(t)
	again(0, 3, 1)
	// What was put away, fetched back and put away again by undoing that, was
	// put away by a person all the same.
	noError(t, s.Retire(t.Context(), everything, one("boat")))
	undo(undo(""))
	again(0, 3, 1)
	if got := texts(t, s, Private(owner)); got != "" {
		t.Errorf("known at the end: %q", got)
	}
}
