// Package expect says in one line what a test wants. It is for tests only.
//
// What follows a check, where it takes more, says what is looked at: a text, or a format with what belongs in it.
package expect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// T is a test, a benchmark or a part of one that rapid makes.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// OK ends the test after an error.
func OK(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must is what a call returned: Must(f())(t) ends the test if f returned an error.
func Must[V any](v V, err error) func(T) V {
	return func(t T) V {
		t.Helper()
		OK(t, err)
		return v
	}
}

// Equal wants two values to be the same.
func Equal[V comparable](t T, got, want V, about ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s%s", prefix(about), describeDiff(got, want))
	}
}

// Same wants two lists to hold the same.
func Same[V comparable](t T, got, want []V, about ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s%s", prefix(about), describeDiff(got, want))
	}
}

// NoDiff wants two values to be the same all the way down.
func NoDiff(t T, got, want any, about ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s(-want +got):\n%s", prefix(about), diff)
	}
}

// Len ends the test unless a list is so long.
func Len[V any](t T, got []V, want int, about ...any) {
	t.Helper()
	if len(got) != want {
		t.Fatal(fmt.Sprintf("%s%d, want %d: %+v", prefix(about), len(got), want, got))
	}
}

// False says what is, and should not be.
func False(t T, is bool, format string, args ...any) {
	t.Helper()
	if is {
		t.Errorf("%s", fmt.Sprintf(format, args...))
	}
}

// Has wants all parts in the text.
func Has(t T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// Lacks wants none of the parts in the text.
func Lacks(t T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("there is %q in\n%s", part, text)
		}
	}
}

// ErrorContains wants an error that says why.
func ErrorContains(t T, err error, why string, about ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%sgot %v, want an error with %q", prefix(about), err, why)
	}
}

// describeDiff shows texts of several lines line by line, others as Go writes them.
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
