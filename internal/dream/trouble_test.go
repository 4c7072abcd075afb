package dream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestReasons: what people are told of an error is one of the sentences that each language
// has, never what a program said; what it leaves out is for the report.
func TestReasons(t *testing.T) {
	english := inEnglish("why.trouble")
	for _, c := range []struct {
		err   error
		want  string
		exact bool
	}{
		{fmt.Errorf("dream: %w", context.Canceled), inEnglish("why.dream_yielded"), true},
		{fmt.Errorf("%w: %w", errNoCopy, errForgotten), inEnglish("why.dream_forgotten"), true},
		{fmt.Errorf("%w: %w", errNoCopy, syscall.ENOSPC), inEnglish("why.dream_no_room"), false},
		{fmt.Errorf("%w: %w", errNoCopy, syscall.EACCES), inEnglish("why.dream_no_copy"), false},
		{errors.New("sqlite: a table is locked"), english, false},
	} {
		if got, exact := reason(c.err); got != c.want || exact != c.exact || strings.HasPrefix(got, "why.") {
			t.Errorf("%v: got %q, %v, want %q, %v", c.err, got, exact, c.want, c.exact)
		}
	}
}

// TestUndoneInWords: what is said when a dream is taken back is made of sentences that are
// known one by one.
func TestUndoneInWords(t *testing.T) {
	lines := []string{"the task #task_a is as it was", "the skill tea is as it was"}
	for want, r := range map[string]Report{
		"taken back: 0 memories are as they were": {}, "taken back: 1 memory is as it was": {Back: make([]Line, 1)},
		"taken back: 3 memories are as they were":  {Back: make([]Line, 2), Restored: make([]Line, 1)},
		"taken back, " + strings.Join(lines, ", "): {Chores: lines}, "taken back: 1 memory is as it was, " + lines[0]: {Back: make([]Line, 1), Chores: lines[:1]},
	} {
		if r.State = Undone; r.Summary() != want {
			t.Errorf("got %q, want %q", r.Summary(), want)
		}
	}
}
