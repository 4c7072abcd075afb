package dream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"reverie/internal/i18n"
)

// TestReasons: what people are told of an error is one of the sentences that each language
// has, never what a program said; what it leaves out is for the report.
func TestReasons(t *testing.T) {
	english := i18n.English("why.trouble")
	for _, c := range []struct {
		err   error
		want  string
		exact bool
	}{
		{fmt.Errorf("dream: %w", context.Canceled), i18n.English("why.dream_yielded"), true},
		{fmt.Errorf("%w: %w", errNoCopy, errForgotten), i18n.English("why.dream_forgotten"), true},
		{fmt.Errorf("%w: %w", errNoCopy, syscall.ENOSPC), i18n.English("why.dream_no_room"), false},
		{fmt.Errorf("%w: %w", errNoCopy, syscall.EACCES), i18n.English("why.dream_no_copy"), false},
		{errors.New("sqlite: a table is locked"), english, false},
	} {
		if got, exact := reason(c.err); got.String() != c.want || exact != c.exact || strings.HasPrefix(got.String(), "why.") {
			t.Errorf("%v: got %q, %v, want %q, %v", c.err, got, exact, c.want, c.exact)
		}
	}
}

// TestUndoneInWords: what is said when a dream is taken back is made of sentences that are
// known one by one.
func TestUndoneInWords(t *testing.T) {
	lines := []i18n.Text{i18n.New("why.task_back", "id", "task_a"), i18n.New("why.skill_back", "name", "tea")}
	for want, r := range map[string]Report{
		"taken back: 0 memories are as they were": {}, "taken back: 1 memory is as it was": {Back: make([]Line, 1)},
		"taken back: 3 memories are as they were":       {Back: make([]Line, 2), Restored: make([]Line, 1)},
		"taken back, " + i18n.Join(i18n.English, lines): {Chores: lines}, "taken back: 1 memory is as it was, " + lines[0].String(): {Back: make([]Line, 1), Chores: lines[:1]},
	} {
		if r.State = Undone; r.Summary(i18n.English) != want {
			t.Errorf("got %q, want %q", r.Summary(i18n.English), want)
		}
	}
}
