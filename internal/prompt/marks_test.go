package prompt

import (
	"slices"
	"testing"
)

// What a server is told to keep is what the next request begins with.
func TestMarks(t *testing.T) {
	w := newWorld(t, Stable)
	w.says("Hello")
	p := w.send()
	if got := p.Marks(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("marks of the first request: %v", got)
	}
	w.callsTool("task", "{}")
	w.result("none")
	p = w.send()
	marks, before := p.Marks(), p.Messages()
	if !slices.Equal(marks, []int{0, 2, 3}) {
		t.Errorf("marks: %v", marks)
	}
	w.answers("There are none.")
	w.says("And now?")
	next := w.send().Messages()
	for _, m := range marks {
		if flat(next[:m+1]) != flat(before[:m+1]) {
			t.Errorf("mark %d: another request begins\n%s\n--- and not ---\n%s", m, flat(next[:m+1]), flat(before[:m+1]))
		}
	}
	w = newWorld(t, Classic)
	w.says("Hello")
	if got := w.send().Marks(); got != nil {
		t.Errorf("a layout that is rebuilt has the marks %v", got)
	}
}
