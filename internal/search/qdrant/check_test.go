package qdrant

import (
	"strings"
)

// failer is a test, or a part of one that rapid makes.
type failer interface {
	Helper()
	Errorf(string, ...any)
	Fatal(...any)
}

// must is a value that comes without an error.
func must[T any](v T, err error) func(failer) T {
	return func(t failer) T {
		t.Helper()
		noError(t, err)
		return v
	}
}

// noError ends the test after an error.
func noError(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// equal says what is not as wanted.
func equal[T comparable](t failer, what any, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%v: got %+v, want %+v", what, got, want)
	}
}

// never says what is, and should not be.
func never(t failer, is bool, format string, args ...any) {
	t.Helper()
	if is {
		t.Errorf(format, args...)
	}
}

func has(t failer, what any, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%v: no %q in\n%s", what, part, text)
	}
}
