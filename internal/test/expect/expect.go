// Package expect checks test results in one line each. It is for tests only.
//
// The arguments about describe the checked value: a text, or a format with its arguments.
package expect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// T is a test, a benchmark or a property test of rapid.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// OK ends the test on an error.
func OK(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must returns the value of a call: Must(f())(t) ends the test if f returned an error.
func Must[V any](v V, err error) func(T) V {
	return func(t T) V {
		t.Helper()
		OK(t, err)
		return v
	}
}

// Equal fails the test unless two values are equal.
func Equal[V comparable](t T, got, want V, about ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s%s", prefix(about), describeDiff(got, want))
	}
}

// EqualSlice fails the test unless two lists are equal.
func EqualSlice[V comparable](t T, got, want []V, about ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s%s", prefix(about), describeDiff(got, want))
	}
}

// NoDiff fails the test unless two values are deeply equal, and shows the difference.
func NoDiff(t T, got, want any, about ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s(-want +got):\n%s", prefix(about), diff)
	}
}

// Len ends the test unless a list has the length want.
func Len[V any](t T, got []V, want int, about ...any) {
	t.Helper()
	if len(got) != want {
		t.Fatal(fmt.Sprintf("%s%d, want %d: %+v", prefix(about), len(got), want, got))
	}
}

// False fails the test with the message if is is true.
func False(t T, is bool, format string, args ...any) {
	t.Helper()
	if is {
		t.Errorf("%s", fmt.Sprintf(format, args...))
	}
}

// Has fails the test unless text contains all parts.
func Has(t T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// Lacks fails the test if text contains any of the parts.
func Lacks(t T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("there is %q in\n%s", part, text)
		}
	}
}

// ErrorContains fails the test unless err contains why.
func ErrorContains(t T, err error, why string, about ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%sgot %v, want an error with %q", prefix(about), err, why)
	}
}

// describeDiff shows multi-line texts line by line, other values in Go syntax.
func describeDiff(got, want any) string {
	g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want)
	if strings.Contains(g+w, "\n") {
		return "got\n" + g + "\nwant\n" + w
	}
	return fmt.Sprintf("got %#v, want %#v", got, want)
}

func prefix(about []any) string {
	switch len(about) {
	case 0:
		return ""
	case 1:
		return fmt.Sprint(about[0], ": ")
	}
	return fmt.Sprintf(about[0].(string), about[1:]...) + ": "
}
