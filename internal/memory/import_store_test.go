package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// A working set has no lines of conversations either, however many there are.
func TestImportedConversationsLeaveTheWorkingSetAlone(t *testing.T) {
	s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, FileLines: 4})
	add(t, s, Private(owner), "tea is green")
	lines := ""
	for n := range 20 {
		lines += fmt.Sprintf("{\"text\":\"line %d\",\"conversation\":\"c\",\"seq\":%d}\n", n, n)
	}
	must(newImporter(s).Import(t.Context(), "x", []byte(lines)))(t)
	if got := strings.Join(lineTexts([]byte(onDisk(t, s, Private(owner)))), "|"); got != "tea is green" {
		t.Errorf("in the file: %q", got)
	}
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
	m := newImporter(s)
	m.atOnce = 3
	got, err := m.Import(t.Context(), "x", []byte(lines))
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

// What was cut off stays, says how to go on, and is completed by the same file.
func TestImportThatIsCutOff(t *testing.T) {
	s := openAt(t, t.TempDir())
	lines := ""
	for n := range 10 {
		lines += fmt.Sprintf("{\"text\":\"fact number %d\"}\n", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m := newImporter(s)
	m.atOnce = 4
	m.Progress = func(int, int) { cancel() }
	got, err := m.Import(ctx, "x", []byte(lines))
	if !errors.Is(err, context.Canceled) || got.Added != 4 || !strings.Contains(err.Error(), "after 4 memories") || !strings.Contains(err.Error(), got.Batch) {
		t.Fatalf("%+v, %v", got, err)
	}
	// Somebody changes memory between two parts: that is seen.
	m.Progress = func(done, _ int) {
		if done == 8 {
			if !add(t, s, Private(owner), "fact number 9") {
				t.Error("it was there already")
			}
		}
	}
	got, err = m.Import(t.Context(), "x", []byte(lines))
	if err != nil || got.Added != 5 || got.Known != 5 {
		t.Errorf("%+v, %v", got, err)
	}
	seen := map[string]bool{}
	all, err := s.List(t.Context(), everything, Filter{})
	for _, e := range all {
		seen[e.ID] = true
	}
	if err != nil || len(seen) != 10 || len(all) != 10 {
		t.Errorf("%d entries, %d of them with a name of their own, %v", len(all), len(seen), err)
	}
	if n := strings.Count(onDisk(t, s, Private(owner)), "number"); n != 10 {
		t.Errorf("%d lines in the file", n)
	}
	sound(t, s)
}

// TestImportKilled kills an import at each of its steps in turn. Each time a part
// of it is there, sound, and the same file completes it.
func TestImportKilled(t *testing.T) {
	t.Parallel()
	const facts = 7
	lines := ""
	for n := range facts {
		lines += fmt.Sprintf("{\"text\":\"fact %d\"}\n{\"text\":\"said %d\",\"conversation\":\"c\",\"seq\":%d}\n", n, n, n)
	}
	if at := os.Getenv(dieAt); at != "" {
		m := newImporter(mortal(t, at))
		m.atOnce = 4
		must(m.Import(t.Context(), "x", []byte(lines)))(t)
		return
	}
	finished, partly := false, 0
	for at := 1; !finished; at++ {
		dir := t.TempDir()
		_, finished = live(t, dir, at)
		s := openAt(t, dir)
		before := must(s.List(t.Context(), everything, Filter{}))(t)
		if len(before) > 0 && len(before) < 2*facts {
			partly++
		}
		sound(t, s)
		got, err := newImporter(s).Import(t.Context(), "x", []byte(lines))
		if err != nil || got.Added != 2*facts-len(before) || got.Known != len(before) {
			t.Errorf("step %d: %d were there; %+v, %v", at, len(before), got, err)
		}
		if file := lineTexts([]byte(onDisk(t, s, Private(owner)))); len(file) != facts {
			t.Errorf("step %d: %q in the file", at, file)
		}
		sound(t, s)
		_ = s.db.Close()
	}
	if partly == 0 {
		t.Error("it was never killed in between")
	}
}
