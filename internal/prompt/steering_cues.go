package prompt

import (
	"reverie/internal/skill"
	words "reverie/internal/text"
)

// What people and models say, as data/words has it. It is matched as the
// triggers of skills are: whole words, in any case. A cue too many costs a line that
// does not fit; one too few, a line that is not there.

// asksToKeep reports whether a message asks for something to be kept.
func asksToKeep(text string) bool {
	return skill.Said(text, asksKeeping) != "" && skill.Said(text, asksMemory) == ""
}

var (
	asksKeeping = words.All("asks_to_keep")
	asksMemory  = words.All("asks_memory") // what a question about memories says in such words
	personal    = words.All("personal")    // what people say when they speak of themselves
	promises    = words.All("promise")     // how answers say that something was kept
)
