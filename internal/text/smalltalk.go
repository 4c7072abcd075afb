package text

import (
	"strings"
)

// Small-talk words are courtesies, assent, and verbs such as think, say and do. They find candidates
// like other words, but do not show that a memory is about a message's topic.
var smallTalk, smallTalkIdeo = loadSmallTalk()

func loadSmallTalk() (stems [languages]map[string]bool, ideo map[rune]bool) {
	for l, name := range codes {
		stems[l] = map[string]bool{}
		for _, w := range append(Words(name, "idle"), Words(name, "stop")...) { // qu'en contains en
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

// IsSmallTalk reports whether w says nothing about the topic of a message in langs. In scripts
// without spaces, a token may span two words, so every character must be one of small talk.
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

// IsStopWord reports whether w is a stop word in one of langs: an article, a preposition, is, has.
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
