package memory

import (
	"strings"

	"reverie/internal/text"
)

// The idle words are those of conversation: courtesies, assent, thinking, saying and
// doing as such. They look for candidates like any word, but that one of them
// stands in a memory does not make it one that a message is about.
var idle, idleIdeo = makeIdle()

func makeIdle() (stems [languages]map[string]bool, ideo map[rune]bool) {
	for l, name := range codes {
		stems[l] = map[string]bool{}
		for _, w := range append(text.Words(name, "idle"), text.Words(name, "stop")...) { // qu'en is en too
			for _, part := range words(w) {
				stems[l][stemIn(language(l), part.text)] = true
			}
		}
	}
	ideo = map[rune]bool{}
	for _, r := range strings.Join(append(text.Words("zh", "stop"), text.Words("zh", "idle")...), "") {
		ideo[r] = true
	}
	return stems, ideo
}

// isIdle reports whether w says nothing of what a message of langs is about. Of
// characters without spaces a piece may hold the end of one word and the beginning
// of the next, so each character counts.
func isIdle(w word, langs []language) bool {
	if isStop(w, langs) {
		return true
	}
	if w.ideo {
		return strings.IndexFunc(w.text, func(r rune) bool { return !idleIdeo[r] }) < 0
	}
	for _, l := range langs {
		if idle[l][stemIn(l, w.text)] {
			return true
		}
	}
	return false
}
