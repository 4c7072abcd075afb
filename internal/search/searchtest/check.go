package searchtest

import (
	"fmt"
	"slices"
	"strings"
)

// Failer is a test, or a part of one that rapid makes.
type Failer interface {
	Helper()
	Errorf(string, ...any)
	Fatal(...any)
}

// Must is a value that comes without an error.
func Must[T any](v T, err error) func(Failer) T {
	return func(t Failer) T {
		t.Helper()
		NoError(t, err)
		return v
	}
}

// NoError ends the test after an error.
func NoError(t Failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal says what is not as wanted.
func Equal[T comparable](t Failer, what any, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%v: got %+v, want %+v", what, got, want)
	}
}

// Never says what is, and should not be.
func Never(t Failer, is bool, format string, args ...any) {
	t.Helper()
	if is {
		t.Errorf(format, args...)
	}
}

// Same is equal for lists.
func Same[T comparable](t Failer, what any, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%v: got %+v, want %+v", what, got, want)
	}
}

// Sized says how many there are, if it is another number than wanted.
func Sized[T any](t Failer, what any, got []T, want int) {
	t.Helper()
	if len(got) != want {
		t.Fatal(fmt.Sprintf("%v: %d, want %d: %+v", what, len(got), want, got))
	}
}

// Has says what part is not in text.
func Has(t Failer, what any, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%v: no %q in\n%s", what, part, text)
	}
}
