package expect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"reverie/internal/test/expect"
)

// recorder is a T that records its messages.
type recorder struct{ strings.Builder }

func (*recorder) Helper()                          {}
func (h *recorder) Fatal(args ...any)              { fmt.Fprint(h, args...) }
func (h *recorder) Errorf(format string, a ...any) { fmt.Fprintf(h, format, a...) }

// Each check is silent on success, and describes a failure.
func TestChecks(t *testing.T) {
	boom := errors.New("boom 100%d")
	for _, tt := range []struct {
		name      string
		good, bad func(expect.T)
		want      string
	}{
		{"OK", func(t expect.T) { expect.OK(t, nil) }, func(t expect.T) { expect.OK(t, boom) }, "boom 100%d"},
		{"Must", func(t expect.T) { expect.Must(1, nil)(t) }, func(t expect.T) { expect.Must(1, boom)(t) }, "boom 100%d"},
		{"Equal", func(t expect.T) { expect.Equal(t, 1, 1) }, func(t expect.T) { expect.Equal(t, "a", "b", "100%") }, `100%: got "a", want "b"`},
		{"Equal, formatted", func(t expect.T) { expect.Equal(t, 1, 1, "%d", 1) }, func(t expect.T) { expect.Equal(t, 1, 2, "%q", "x") }, `"x": got 1, want 2`},
		{"Equal, lines", func(t expect.T) { expect.Equal(t, "a\n", "a\n") }, func(t expect.T) { expect.Equal(t, "a\nb", "a") }, "got\na\nb\nwant\na"},
		{"Same", func(t expect.T) { expect.EqualSlice(t, []int{}, nil) }, func(t expect.T) { expect.EqualSlice(t, []int{1}, nil) }, "got []int{1}, want []int(nil)"},
		{"NoDiff", func(t expect.T) { expect.NoDiff(t, []int{1}, []int{1}) }, func(t expect.T) { expect.NoDiff(t, 1, 2, "it") }, "it: (-want +got):\n"},
		{"Len", func(t expect.T) { expect.Len(t, []int{1}, 1) }, func(t expect.T) { expect.Len(t, []int{1}, 2, "it") }, "it: 1, want 2: [1]"},
		{"False", func(t expect.T) { expect.False(t, false, "no") }, func(t expect.T) { expect.False(t, true, "it is %d", 1) }, "it is 1"},
		{"Has", func(t expect.T) { expect.Has(t, "abc", "a", "c") }, func(t expect.T) { expect.Has(t, "abc", "a", "d") }, "no \"d\" in\nabc"},
		{"Lacks", func(t expect.T) { expect.Lacks(t, "abc", "d", "e") }, func(t expect.T) { expect.Lacks(t, "abc", "d", "a") }, "there is \"a\" in\nabc"},
		{"Refused", func(t expect.T) { expect.ErrorContains(t, boom, "boom") }, func(t expect.T) { expect.ErrorContains(t, nil, "x") }, `got <nil>, want an error with "x"`},
		{"Refused for another reason", func(expect.T) {}, func(t expect.T) { expect.ErrorContains(t, boom, "x", "it") }, `it: got boom 100%d, want an error with "x"`},
	} {
		var good, bad recorder
		tt.good(&good)
		tt.bad(&bad)
		if good.String() != "" || !strings.HasPrefix(bad.String(), tt.want) {
			t.Errorf("%s: %q and %q, want nothing and %q", tt.name, good.String(), bad.String(), tt.want)
		}
	}
}
