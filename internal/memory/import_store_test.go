package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func newImporter(s *Store) *Importer {
	return &Importer{Store: s, Scope: Private(owner), Now: func() time.Time { return today }}
}

func sound(t testing.TB, s *Store) {
	t.Helper()
	noError(t, indexIsSound(t, OpenFTS(s.db)))
}

// What is imported stands in the file, with what a person wrote there meanwhile;
// the lines of a conversation are only found.
func TestImportedIntoFiles(t *testing.T) {
	s := openAt(t, t.TempDir())
	add(t, s, Private(owner), "tea is green")
	put(t, s, Private(owner), onDisk(t, s, Private(owner))+"by hand\n")
	got, err := newImporter(s).Import(t.Context(), "x", []byte(`{"text":"a heron is grey"}
{"text":"we saw a heron","conversation":"c","seq":1}
{"text":"really?","conversation":"c","seq":2}
{"text":"by hand"}
{"text":"tea is green","conversation":"c","seq":3}`))
	if err != nil || got.Added != 4 || got.Known != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	const all = "tea is green|by hand|a heron is grey"
	if got := texts(t, s, Private(owner)); got != all {
		t.Errorf("known: %q", got)
	}
	if got := strings.Join(lineTexts([]byte(onDisk(t, s, Private(owner)))), "|"); got != all {
		t.Errorf("in the file: %q", got)
	}
	hits, err := s.index.Search(t.Context(), Query{Text: "saw a heron", Scopes: []Scope{Private(owner)}})
	if err != nil || len(hits) < 2 || hits[0].Entry.Text != "we saw a heron" {
		t.Errorf("%+v, %v", hits, err)
	}
	// A person who writes or says what somebody said in a conversation notes it.
	put(t, s, Private(owner), onDisk(t, s, Private(owner))+"we saw a heron\n")
	if got := texts(t, s, Private(owner)); got != all+"|we saw a heron" || !add(t, s, Private(owner), "really?") {
		t.Errorf("known: %q", got)
	}
	if got := strings.Join(lineTexts([]byte(onDisk(t, s, Private(owner)))), "|"); got != all+"|we saw a heron|really?" {
		t.Errorf("in the file: %q", got)
	}
	sound(t, s)
}

// A whole import is one step back, whatever it was stored in.
// Holds W9.
func TestImportIsUndone(t *testing.T) {
	s := openAt(t, t.TempDir())
	add(t, s, Private(owner), "tea is green")
	lines := ""
	for n := range 10 {
		lines += fmt.Sprintf("{\"text\":\"fact number %d\"}\n{\"text\":\"line %d\",\"conversation\":\"c\",\"seq\":%d,\"scope\":\"shared\"}\n", n, n, n)
	}
	got, err := newImporter(s).Import(t.Context(), "x", []byte(lines))
	if err != nil || got.Added != 20 || got.Batch == "" {
		t.Fatalf("%+v, %v", got, err)
	}
	u, err := s.Undo(t.Context(), everything, "")
	if err != nil || u.Of != got.Batch || len(u.Away) != 20 {
		t.Fatalf("%+v, %v", u, err)
	}
	if got := texts(t, s, Private(owner), Shared); got != "tea is green" {
		t.Errorf("known: %q", got)
	}
	if strings.Contains(onDisk(t, s, Private(owner)), "number") {
		t.Error("the file still shows it")
	}
	sound(t, s)
	must(s.Undo(t.Context(), everything, u.Batch))(t)
	if all, err := s.List(t.Context(), everything, Filter{}); err != nil || len(all) != 21 {
		t.Errorf("%d entries after the undoing was undone, %v", len(all), err)
	}
	sound(t, s)
	if n := len((Undone{Away: make([]Entry, 1000)}).Lines()); n != maxUndone+1 {
		t.Errorf("1000 entries are told of in %d lines", n)
	}
}

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
	undo(batch)
	if got := texts(t, s, Private(owner)); got != "" {
		t.Fatalf("after the undoing: %q", got)
	}
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
