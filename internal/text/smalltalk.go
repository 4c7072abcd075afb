package text

import (
	"strings"
)

// The idle words are those of conversation: courtesies, assent, thinking, saying and
// doing as such. They look for candidates like any word, but that one of them
// stands in a memory does not make it one that a message is about.
var smallTalk, smallTalkIdeo = loadSmallTalk()

func loadSmallTalk() (stems [languages]map[string]bool, ideo map[rune]bool) {
	for l, name := range codes {
		stems[l] = map[string]bool{}
		for _, w := range append(Words(name, "idle"), Words(name, "stop")...) { // qu'en is en too
			for _, part := range Tokens(w) {
				stems[l][stemIn(Language(l), part.Text)] = true
			}
		}
	}
	ideo = map[rune]bool{}
	for _, r := range strings.Join(append(Words("zh", "stop"), Words("zh", "idle")...), "") {
		ideo[r] = true
	}
	return stems, ideo
}

// IsIdle reports whether w says nothing of what a message of langs is about. Of
// characters without spaces a piece may hold the end of one word and the beginning
// of the next, so each character counts.
func IsSmallTalk(w Token, langs []Language) bool {
	if IsStopWord(w, langs) {
		return true
	}
	if w.Ideo {
		return strings.IndexFunc(w.Text, func(r rune) bool { return !smallTalkIdeo[r] }) < 0
	}
	for _, l := range langs {
		if smallTalk[l][stemIn(l, w.Text)] {
			return true
		}
	}
	return false
}

// IsStop reports whether w says little in one of langs: an article, a preposition, is and has.
func IsStopWord(w Token, langs []Language) bool {
	if w.Ideo {
		return stopIdeo[w.Text]
	}
	bits := stopWords[w.Text]
	for _, l := range langs {
		if bits&(1<<l) != 0 {
			return true
		}
	}
	return false
}
