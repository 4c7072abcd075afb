package session

import (
	"testing"
)

// TestCommandsSayWhatTheyDoNotKnow: what follows a command and means nothing to it is said. A "/" is as good as a "!".
func TestCommandsSayWhatTheyDoNotKnow(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello", "the path is fine")
	say := func(text string, parts ...string) { t.Helper(); w.tells(t, text, parts...) }
	say("hi", "hello")
	say("!HELP", "`!retry`")
	say("!whoami", "an owner")
	say("!tasks", "No open tasks")
	say("!status", "Models for chat, in order: local")
	say("!prompt", "window")
	say("!help memory", "`!memory`: what I remember here")
	say("!help !hlep", "I do not know `!hlep`", "Did you mean `!help`")
	say("!stop now", "There is nothing to stop")
	say("!memory", "MEMORIES.txt** (0)", "I remember nothing here yet")
	say("!memory share", "`!memory share` and the id")
	say("!remember my tea is green", "Remembered")
	say("!memory share wrong", "I remember nothing like that here")
	say("!memory private wrong", "I remember nothing like that here")
	say("!memory coffee", "I remember nothing like that here")
	say("/memory tea", "my tea is green")
	say("/hlep", "the path is fine") // no command, so the model answers
	say("!!", "fine")
	say("/new", "A new conversation starts here")
	say("!retry", "nothing to try again")
}
