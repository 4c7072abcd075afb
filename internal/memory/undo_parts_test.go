package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// importLines makes n facts and n lines of a conversation.
func importLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"text\":\"fact number %d\",\"ref\":\"f%d\"}\n{\"text\":\"heron number %d\",\"conversation\":\"c\",\"seq\":%d}\n", i, i, i, i)
	}
	return b.String()
}

// inParts makes s take back more than four operations part by part.
func inParts(s *Store) *Store {
	s.many, s.partly = 4, 4
	return s
}

// seen counts what of an import can be seen at all.
func seen(t testing.TB, s *Store) (inLists, inFiles, found int) {
	t.Helper()
	all, err := s.List(t.Context(), everything, Filter{Words: "number"})
	if err != nil {
		t.Fatal(err)
	}
	hits, err := s.Search(t.Context(), Query{Text: "a fact or a heron of any number", Scopes: []Scope{Private(owner)}, K: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if in := strings.Count(texts(t, s, Private(owner)), "number"); in != strings.Count(onDisk(t, s, Private(owner)), "number") {
		t.Errorf("%d in prompts, but in the file: %q", in, onDisk(t, s, Private(owner)))
	}
	return len(all), strings.Count(onDisk(t, s, Private(owner)), "number"), len(hits)
}

// While a large import is taken back in parts, nothing of it is seen from the
// first moment on, others write in between, and what they write stays.
func TestUndoInParts(t *testing.T) {
	const n = 30
	dir := t.TempDir()
	s, other := inParts(openAt(t, dir)), openAt(t, dir)
	add(t, s, Private(owner), "tea is green")
	got, err := newImporter(s).Import(t.Context(), "x", strings.NewReader(importLines(n)))
	if err != nil || got.Added != 2*n {
		t.Fatalf("%+v, %v", got, err)
	}
	if lists, files, found := seen(t, other); lists != 2*n || files != n || found == 0 {
		t.Fatalf("before: %d, %d, %d", lists, files, found)
	}
	hidden, err := entries(t.Context(), s.db, `WHERE text = 'fact number 2'`)
	if err != nil || len(hidden) != 1 {
		t.Fatal(err)
	}
	steps := 0
	u, err := s.UndoWatched(t.Context(), everything, "", func(done, total int) {
		if total != 2*n {
			t.Errorf("%d of %d", done, total)
		}
		for _, x := range []*Store{s, other} {
			if lists, files, found := seen(t, x); lists+files+found > 0 {
				t.Errorf("after %d: %d in lists, %d in files, %d found", done, lists, files, found)
			}
		}
		if !add(t, other, Private(owner), fmt.Sprintf("written meanwhile, %d", steps)) {
			t.Error("it was there already")
		}
		if done == total { // what was tidied away already can be taken up again
			put(t, other, Private(owner), onDisk(t, other, Private(owner))+"fact number 29\n")
			if got := texts(t, other, Private(owner)); !strings.HasSuffix(got, "|fact number 29") {
				t.Errorf("known: %q", got)
			}
			put(t, other, Private(owner), strings.Replace(onDisk(t, other, Private(owner)), "fact number 29\n", "", 1))
			texts(t, other, Private(owner))
		}
		if steps++; steps == 1 { // fact 1 is still to be tidied away, and is not in the way of who says the same
			if err := other.Pin(t.Context(), everything, hidden[0].ID, true); !errors.Is(err, ErrNotFound) {
				t.Errorf("what is not to be seen was changed: %v", err)
			}
			e, added, err := other.Append(t.Context(), Private(owner), "fact number 0")
			if err != nil || !added {
				t.Errorf("added: %v, %v", added, err)
			}
			if err := other.Retire(t.Context(), everything, e.ID); err != nil {
				t.Error(err)
			}
			put(t, other, Private(owner), onDisk(t, other, Private(owner))+"Fact number 1\n")
			if got := texts(t, other, Private(owner)); !strings.HasSuffix(got, "|Fact number 1") {
				t.Errorf("known: %q", got)
			}
			if got := lineTexts([]byte(onDisk(t, other, Private(owner)))); got[len(got)-1] != "Fact number 1" {
				t.Errorf("file: %q", got)
			}
			put(t, other, Private(owner), strings.Replace(onDisk(t, other, Private(owner)), "Fact number 1\n", "", 1))
		}
	})
	if err != nil || u.Of != got.Batch || len(u.Away) != maxUndone || u.More != 2*n-maxUndone || steps < 10 {
		t.Fatalf("%d parts, %d away, %d more, %v", steps, len(u.Away), u.More, err)
	}
	if lines := u.Lines(); len(lines) != maxUndone+1 || !strings.Contains(lines[maxUndone], fmt.Sprint(2*n-maxUndone)) {
		t.Errorf("%q", lines)
	}
	if got := texts(t, s, Private(owner)); !strings.HasPrefix(got, "tea is green|written meanwhile, 0") || strings.Count(got, "|") != steps {
		t.Errorf("known: %q", got)
	}
	sound(t, s)
	if now, err := undoingNow(t.Context(), s.db); err != nil || now != nil {
		t.Errorf("%+v, %v", now, err)
	}
	if _, err := s.Undo(t.Context(), everything, got.Batch); !errors.Is(err, ErrChanged) {
		t.Errorf("taken back twice: %v", err)
	}
	if _, err := s.Undo(t.Context(), everything, u.Batch); err != nil {
		t.Fatal(err)
	}
	if lists, files, found := seen(t, other); lists != 2*n || files != n || found == 0 {
		t.Errorf("after the undoing was undone: %d, %d, %d", lists, files, found)
	}
	sound(t, s)
}

// It is all or nothing: whatever keeps one entry from being taken back is found
// out before anything is gone.
func TestUndoInPartsIsRefusedWhole(t *testing.T) {
	for want, do := range map[error]func(s *Store, id string) error{
		ErrChanged:  func(s *Store, id string) error { return s.Pin(t.Context(), everything, id, true) },
		ErrGone:     func(s *Store, id string) error { _, err := s.Forget(t.Context(), everything, id); return err },
		ErrNotFound: nil,
	} {
		s := inParts(openAt(t, t.TempDir()))
		got, err := newImporter(s).Import(t.Context(), "x", strings.NewReader(importLines(5)))
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.List(t.Context(), everything, Filter{})
		if err != nil {
			t.Fatal(err)
		}
		a, left := everything, len(all)
		if do == nil {
			a = Access{Actor: "@else:x", Scopes: []Scope{Private("@else:x"), Shared}}
		} else if err := do(s, all[0].ID); err != nil {
			t.Fatal(err)
		}
		if want == ErrGone {
			left--
		}
		if _, err := s.Undo(t.Context(), a, got.Batch); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if all, err := s.List(t.Context(), everything, Filter{}); err != nil || len(all) != left {
			t.Errorf("%v: %d entries left, %v", want, len(all), err)
		}
	}
}

// TestUndoKilled kills an undoing in parts at each of its steps. Each time all of
// the import is there or nothing, and whoever comes next completes it.
func TestUndoKilled(t *testing.T) {
	t.Parallel()
	const n = 5
	if at := os.Getenv(dieAt); at != "" {
		left, err := strconv.Atoi(at)
		if err != nil {
			t.Fatal(err)
		}
		s := inParts(openAt(t, os.Getenv("REVERIE_TEST_DIR")))
		s.fault = func(string) {
			if left--; left <= 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
		if _, err := s.Undo(t.Context(), everything, os.Getenv("REVERIE_TEST_BATCH")); err != nil {
			t.Fatal(err)
		}
		return
	}
	finished, cut := false, 0
	for at := 1; !finished; at++ {
		if at > 100 {
			t.Fatal("the undoing never ends")
		}
		dir := filepath.Join(t.TempDir(), "data")
		s := openAt(t, dir)
		add(t, s, Private(owner), "tea is green")
		got, err := newImporter(s).Import(t.Context(), "x", strings.NewReader(importLines(n)))
		if err != nil {
			t.Fatal(err)
		}
		_ = s.db.Close()
		cmd := exec.Command(os.Args[0], "-test.run=^TestUndoKilled$")
		cmd.Env = append(os.Environ(), dieAt+"="+strconv.Itoa(at), "REVERIE_TEST_DIR="+dir, "REVERIE_TEST_BATCH="+got.Batch)
		out, err := cmd.CombinedOutput()
		if finished = err == nil; err != nil && !strings.Contains(err.Error(), "killed") {
			t.Fatalf("step %d: %v\n%s", at, err, out)
		}
		s = inParts(openAt(t, dir))
		lists, files, found := seen(t, s)
		if whole := lists == 2*n && files == n && found > 0; !whole && lists+files+found > 0 {
			t.Errorf("step %d: %d in lists, %d in files, %d found", at, lists, files, found)
		}
		sound(t, s)
		under, err := undoingNow(t.Context(), s.db)
		if err != nil {
			t.Fatal(err)
		}
		if under != nil {
			cut++
		}
		switch at % 3 { // whoever comes next
		case 0:
			err = s.Tidy(t.Context())
		case 1:
			_, err = s.Undo(t.Context(), everything, got.Batch)
		case 2:
			_, err = newImporter(s).Import(t.Context(), "y", strings.NewReader(`{"text":"tea is green"}`))
		}
		if err != nil && !(errors.Is(err, ErrChanged) && lists == 0 && under == nil) {
			t.Errorf("step %d: %v", at, err)
		}
		want := 0
		if lists > 0 && at%3 != 1 {
			want = lists
		}
		if lists, _, _ := seen(t, s); lists != want {
			t.Errorf("step %d: %d are left, want %d", at, lists, want)
		}
		if now, err := undoingNow(t.Context(), s.db); err != nil || now != nil {
			t.Errorf("step %d: %+v is still under way, %v", at, now, err)
		}
		if archived, err := s.List(t.Context(), everything, Filter{States: []State{Archived}}); err != nil || len(archived) != 2*n-want {
			t.Errorf("step %d: %d are put away, %v", at, len(archived), err)
		}
		sound(t, s)
		_ = s.db.Close()
	}
	if cut < 3 {
		t.Errorf("it was killed in between %d times", cut)
	}
}

// What is read all the time is read by its index, and not by going through the
// lines of conversations or all that is taken back.
func TestShownIsReadByItsIndex(t *testing.T) {
	s := openAt(t, t.TempDir())
	rows, err := s.db.Query(`EXPLAIN QUERY PLAN SELECT id FROM memory WHERE scope = ? AND `+shown+` ORDER BY n`, Shared)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	plan := ""
	for rows.Next() {
		var id, parent, other int
		var detail string
		if err := rows.Scan(&id, &parent, &other, &detail); err != nil {
			t.Fatal(err)
		}
		plan += detail + "\n"
	}
	for _, want := range []string{"memory_shown (scope=? AND state=? AND conversation=?)", "memory_op_by_entry (entry=? AND seq<?)"} {
		if !strings.Contains(plan, want) {
			t.Errorf("%s\nwant %s", plan, want)
		}
	}
}

// A wish to stop while it is tidied up takes nothing back of what was done.
func TestUndoInPartsIsInterrupted(t *testing.T) {
	s := inParts(openAt(t, t.TempDir()))
	got, err := newImporter(s).Import(t.Context(), "x", strings.NewReader(importLines(10)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	u, err := s.UndoWatched(ctx, everything, got.Batch, func(int, int) { cancel() })
	if err != nil || u.Batch == "" {
		t.Fatalf("%+v, %v", u, err)
	}
	if lists, files, found := seen(t, s); lists+files+found > 0 {
		t.Errorf("%d in lists, %d in files, %d found", lists, files, found)
	}
	again, err := s.Undo(t.Context(), everything, "")
	if err != nil || again.Of != got.Batch || again.Batch != u.Batch {
		t.Errorf("%+v, %v", again, err)
	}
	sound(t, s)
}

// Also where the file does not show it, it is out of sight from the first moment on.
func TestUndoInPartsOfAWorkingSet(t *testing.T) {
	dir := t.TempDir()
	c := Config{Dir: dir, Owner: owner, FileLines: 2}
	s, other := inParts(openWith(t, c)), openWith(t, c)
	got, err := newImporter(s).Import(t.Context(), "x", strings.NewReader(importLines(5)))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"tea is green", "coffee is brown", "milk is white"} {
		add(t, s, Private(owner), text)
	}
	if got := texts(t, other, Private(owner)); !strings.Contains(got, "number") || strings.Contains(onDisk(t, s, Private(owner)), "number") {
		t.Fatalf("known: %q, in the file: %q", got, onDisk(t, s, Private(owner)))
	}
	first := true
	s.fault = func(at string) {
		if at == "committed" && first {
			first = false
			if got := texts(t, other, Private(owner)); strings.Contains(got, "number") {
				t.Errorf("known: %q", got)
			}
		}
	}
	if _, err := s.Undo(t.Context(), everything, got.Batch); err != nil || first {
		t.Fatal(first, err)
	}
}

// What is forgotten of that which was taken back leaves no trace in the index,
// neither while it is tidied up nor afterwards.
func TestUndoInPartsAndForget(t *testing.T) {
	for _, cut := range []bool{true, false} {
		dir := t.TempDir()
		s := inParts(openAt(t, dir))
		got, err := newImporter(s).Import(t.Context(), "x", strings.NewReader(importLines(10)+`{"text":"the safe code is zyzzyva","conversation":"c","seq":100}`))
		if err != nil {
			t.Fatal(err)
		}
		if !cut {
			s.partly = 100 // one part alone gives the index no reason to merge anything by itself
		}
		hits, err := s.index.Search(t.Context(), Query{Text: "zyzzyva", Scopes: []Scope{Private(owner)}})
		if err != nil || len(hits) == 0 || !strings.Contains(hits[0].Entry.Text, "zyzzyva") {
			t.Fatal(len(hits), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if _, err := s.UndoWatched(ctx, everything, got.Batch, func(done, _ int) {
			if cut && done > 4 {
				cancel()
			}
		}); err != nil {
			t.Fatal(err)
		}
		if now, err := undoingNow(t.Context(), s.db); err != nil || (now != nil) != cut {
			t.Fatalf("%+v, %v", now, err)
		}
		if len(traces(t, dir, "zyzzyva")) == 0 {
			t.Fatal("it is nowhere to begin with")
		}
		if _, err := s.Forget(t.Context(), everything, hits[0].Entry.ID); err != nil {
			t.Fatal(err)
		}
		if left := traces(t, dir, "zyzzyva"); len(left) > 0 {
			t.Errorf("cut off: %v: traces in %v", cut, left)
		}
		if err := s.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		sound(t, s)
	}
}
