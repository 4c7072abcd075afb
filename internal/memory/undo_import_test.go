package memory

import (
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

// An import is taken back wholly or not at all, whatever keeps one entry from it.
func TestUndoIsRefusedWhole(t *testing.T) {
	for want, do := range map[error]func(s *Store, id string) error{
		ErrChanged:  func(s *Store, id string) error { return s.Pin(t.Context(), everything, id, true) },
		ErrGone:     func(s *Store, id string) error { _, err := s.Forget(t.Context(), everything, id); return err },
		ErrNotFound: nil,
	} {
		s := openAt(t, t.TempDir())
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

// TestUndoKilled kills the undoing of an import at each of its steps. Each time all of
// the import is there or nothing, and a second undoing completes it.
func TestUndoKilled(t *testing.T) {
	t.Parallel()
	const n = 5
	if at := os.Getenv(dieAt); at != "" {
		left, err := strconv.Atoi(at)
		if err != nil {
			t.Fatal(err)
		}
		s := openAt(t, os.Getenv("REVERIE_TEST_DIR"))
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
	finished, whole, none := false, 0, 0
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
		s = openAt(t, dir)
		lists, files, found := seen(t, s)
		switch {
		case lists == 2*n && files == n && found > 0:
			whole++
			_, err = s.Undo(t.Context(), everything, got.Batch)
		case lists+files+found == 0:
			none, err = none+1, nil
		default:
			t.Errorf("step %d: %d in lists, %d in files, %d found", at, lists, files, found)
		}
		if err != nil {
			t.Errorf("step %d: %v", at, err)
		}
		sound(t, s)
		if lists, files, found := seen(t, s); lists+files+found > 0 {
			t.Errorf("step %d: %d in lists, %d in files, %d found after the undoing", at, lists, files, found)
		}
		if archived, err := s.List(t.Context(), everything, Filter{States: []State{Archived}}); err != nil || len(archived) != 2*n {
			t.Errorf("step %d: %d are put away, %v", at, len(archived), err)
		}
		sound(t, s)
		_ = s.db.Close()
	}
	if whole == 0 || none < 2 {
		t.Errorf("all of it was there %d times, nothing %d times", whole, none)
	}
}

// What is read all the time is read by its index, and not by going through the
// lines of conversations.
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
	for _, want := range []string{"memory_shown (scope=? AND state=? AND conversation=?)"} {
		if !strings.Contains(plan, want) {
			t.Errorf("%s\nwant %s", plan, want)
		}
	}
}

// What is forgotten of an import that was taken back leaves no trace.
func TestUndoAndForget(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	got, err := newImporter(s).Import(t.Context(), "x", strings.NewReader(importLines(10)+`{"text":"the safe code is zyzzyva","conversation":"c","seq":100}`))
	if err != nil {
		t.Fatal(err)
	}
	hits, err := s.index.Search(t.Context(), Query{Text: "zyzzyva", Scopes: []Scope{Private(owner)}})
	if err != nil || len(hits) == 0 || !strings.Contains(hits[0].Entry.Text, "zyzzyva") {
		t.Fatal(len(hits), err)
	}
	if _, err := s.Undo(t.Context(), everything, got.Batch); err != nil {
		t.Fatal(err)
	}
	if len(traces(t, dir, "zyzzyva")) == 0 {
		t.Fatal("it is nowhere to begin with")
	}
	if _, err := s.Forget(t.Context(), everything, hits[0].Entry.ID); err != nil {
		t.Fatal(err)
	}
	if left := traces(t, dir, "zyzzyva"); len(left) > 0 {
		t.Errorf("traces in %v", left)
	}
	sound(t, s)
}
