package memory

import (
	"errors"
	"fmt"
	"strings"
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

// An import is taken back wholly or not at all, whatever keeps one entry from it.
func TestUndoIsRefusedWhole(t *testing.T) {
	for want, do := range map[error]func(s *Store, id string) error{
		ErrChanged:  func(s *Store, id string) error { return s.Pin(t.Context(), everything, id, true) },
		ErrGone:     func(s *Store, id string) error { _, err := s.Forget(t.Context(), everything, id); return err },
		ErrNotFound: nil,
	} {
		s := openAt(t, t.TempDir())
		got := must(newImporter(s).Import(t.Context(), "x", []byte(importLines(5))))(t)
		all := must(s.List(t.Context(), everything, Filter{}))(t)
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

// What is read all the time is read by its index, and not by going through the
// lines of conversations.
func TestShownIsReadByItsIndex(t *testing.T) {
	s := openAt(t, t.TempDir())
	rows := must(s.db.Query(`EXPLAIN QUERY PLAN SELECT id FROM memory WHERE scope = ? AND `+shown+` ORDER BY n`, Shared))(t)
	defer rows.Close()
	plan := ""
	for rows.Next() {
		var id, parent, other int
		var detail string
		noError(t, rows.Scan(&id, &parent, &other, &detail))
		plan += detail + "\n"
	}
	for _, want := range []string{"memory_shown (scope=? AND state=? AND conversation=?)"} {
		if !strings.Contains(plan, want) {
			t.Errorf("%s\nwant %s", plan, want)
		}
	}
}
