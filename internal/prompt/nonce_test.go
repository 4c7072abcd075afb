package prompt

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A conversation has one nonce from its first look on, also after a restart; the next one
// has another, in every fence.
func TestNonceOfAConversation(t *testing.T) {
	w := newWorld(t, Stable)
	made := 0
	w.assembler.nonce = func() string { made++; return fmt.Sprintf("n%03d", made) }
	w.file("MEMORIES.txt", "Ada drinks tea.\n")
	w.file("skills/tea.md", "# How to make tea\n")
	fences := func(p Prompt, want string) {
		t.Helper()
		all := flat(p.Messages())
		if n := strings.Count(all, `<data id="`); n != 2 || n != strings.Count(all, `<data id="`+want+`"`) || n != strings.Count(all, "</data "+want+">") {
			t.Errorf("not all fences have the nonce %s:\n%s", want, all)
		}
		if strings.Count(all, "[note ") != strings.Count(all, openNote(want)) {
			t.Errorf("not all notes have the nonce %s:\n%s", want, all)
		}
	}
	w.says("Hello n001")
	fences(w.assemble(), "n001")
	fences(w.assemble(), "n001")
	w.must(w.assembler.Commit(t.Context(), w.assemble()))
	nonce := w.assembler.nonce
	w.restart()
	w.assembler.nonce = nonce
	w.answers("Hello.")
	w.says("And now?")
	w.file("SOUL.md", "Warm.") // a new epoch of the same conversation
	fences(w.assemble(), "n001")
	for i := range 2 {
		w.startsNew()
		w.says("Hello")
		fences(w.assemble(), fmt.Sprintf("n%03d", i+2)) // never sent
		fences(w.assemble(), fmt.Sprintf("n%03d", i+2))
	}
	if made != 3 {
		t.Errorf("%d nonces were made", made)
	}
}

// A day begins where the person is.
func TestDaysAreLocal(t *testing.T) {
	w := newWorld(t, Stable)
	w.now = time.Date(2026, 11, 21, 22, 30, 0, 0, time.UTC) // 23:30 in Berlin
	w.asks("Hello")
	w.remembers("Ada drinks tea.")
	w.now = w.now.Add(20 * time.Minute)
	w.epoch("And now?", "") // before midnight
	w.now = w.now.Add(20 * time.Minute)
	w.epoch("And now?", newDay) // after midnight
	w.restart()
	w.remembers("Ada plays chess.")
	w.now = time.Date(2026, 11, 22, 22, 50, 0, 0, time.UTC)
	w.epoch("And now?", "") // in the evening of the same day
}
