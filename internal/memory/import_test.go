package memory

import (
	"fmt"
	"strings"
	"testing"

	"reverie/internal/memory/lines"
	"reverie/internal/test/expect"
)

func sound(t testing.TB, s *Store) {
	t.Helper()
	expect.OK(t, indexIsSound(t, OpenFTS(s.db)))
}

// What is imported stands in the file, with what a person wrote there meanwhile;
// the lines of a conversation are only found.
func TestImportedIntoFiles(t *testing.T) {
	s := openAt(t, t.TempDir())
	add(t, s, Private(owner), "tea is green")
	put(t, s, Private(owner), onDisk(t, s, Private(owner))+"by hand\n")
	added, known, _, _ := imported(t, s, Private(owner), `{"text":"a heron is grey"}
{"text":"we saw a heron","conversation":"c","seq":1,"subject":"Anna"}
{"text":"really?","conversation":"c","seq":2,"subject":"Ben"}
{"text":"by hand"}
{"text":"tea is green","conversation":"c","seq":3}`)
	expect.Equal(t, [2]int{added, known}, [2]int{4, 1}, "added and known")
	const all = "tea is green|by hand|a heron is grey"
	expect.Equal(t, texts(t, s, Private(owner)), all, "known")
	expect.Equal(t, strings.Join(lines.Texts([]byte(onDisk(t, s, Private(owner)))), "|"), all, "in the file")
	hits, err := OpenFTS(s.db).Search(t.Context(), Query{Text: "saw a heron", Scopes: []Scope{Private(owner)}})
	expect.False(t, err != nil || len(hits) < 2 || hits[0].Entry.Text != "we saw a heron", "%+v, %v", hits, err)
	// A person who writes or says what somebody said in a conversation notes it.
	put(t, s, Private(owner), onDisk(t, s, Private(owner))+"we saw a heron\n")
	if got := texts(t, s, Private(owner)); got != all+"|we saw a heron" || !add(t, s, Private(owner), "really?") {
		t.Errorf("known: %q", got)
	}
	expect.Equal(t, strings.Join(lines.Texts([]byte(onDisk(t, s, Private(owner)))), "|"), all+"|we saw a heron|really?", "in the file")
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
	added, _, _, batch := imported(t, s, Private(owner), lines)
	expect.Equal(t, added, 20, "added")
	u, err := s.Undo(t.Context(), everything, "")
	if err != nil || u.Undid != batch || len(u.Retired) != 20 {
		t.Fatalf("%+v, %v", u, err)
	}
	expect.Equal(t, texts(t, s, Private(owner), Shared), "tea is green", "known")
	expect.Lacks(t, onDisk(t, s, Private(owner)), "number")
	sound(t, s)
	expect.Must(s.Undo(t.Context(), everything, u.Batch))(t)
	expect.Len(t, expect.Must(s.List(t.Context(), everything, Filter{}))(t), 21, "entries after the undoing was undone")
	sound(t, s)
	expect.Equal(t, len((Undone{Retired: make([]Entry, 1000)}).Lines()), maxUndoneLines+1, "1000 entries are told of in lines")
}

// Who took an import back and imports the file again has it again. What a person put
// away stays away, and what was to be forgotten stays forgotten.
// Holds W8.
func TestImportAfterUndo(t *testing.T) {
	t.Parallel()
	const lines = `{"text":"the boat is blue","ref":"1"}
{"text":"the heron is grey"}
{"text":"the safe is green","conversation":"c","seq":1}
{"text":"the tea is cold"}`
	s := openAt(t, t.TempDir())
	again := func(added, known, forgotten int) string {
		t.Helper()
		a, k, f, batch := imported(t, s, Private(owner), lines)
		expect.Equal(t, [3]int{a, k, f}, [3]int{added, known, forgotten}, "added, known, forgotten")
		sound(t, s)
		return batch
	}
	undo := func(batch string) string {
		t.Helper()
		u := expect.Must(s.Undo(t.Context(), everything, batch))(t)
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
	expect.Equal(t, texts(t, s, Private(owner)), "the boat is blue|the heron is grey|the tea is cold", "known")
	expect.OK(t, s.Retire(t.Context(), everything, one("heron")))
	again(0, 4, 0)
	expect.Must(s.Forget(t.Context(), everything, one("tea")))(t)
	again(0, 3, 1)
	// An entry that was archived, restored and archived again by an undo counts as archived by a
	// person.
	expect.OK(t, s.Retire(t.Context(), everything, one("boat")))
	undo(undo(""))
	again(0, 3, 1)
	expect.Equal(t, texts(t, s, Private(owner)), "", "known at the end")
}
