package prompt

import (
	"testing"
)

// An edit of the owner's mode waits for the next switch of the mode, conversation, tier
// or start; that of another mode does not, and in no layout. To look at the mode is no switch.
func TestUserMode(t *testing.T) {
	for _, layout := range []Layout{Stable, Tiered} {
		w := newWorld(t, layout)
		version := 0
		edit := func(mode string) (text string) {
			version++
			text = mode + " version " + string(rune('0'+version))
			w.file("prompts/"+mode+"/tier3.txt", text)
			w.file("prompts/"+mode+"/tier4.txt", text+" for more")
			return text
		}
		shows := func(text string) {
			t.Helper()
			w.asks("And now?")
			w.expect(true, "# Mode\n"+text+"\n\n---")
		}
		preview := func(text string) {
			t.Helper()
			turn := w.turn()
			turn.Preview, turn.Mode, turn.Tier = true, UserMode, 3
			p := w.assembles(turn)
			w.last = p.Messages()
			w.expect(true, "# Mode\n"+text+"\n\n---")
			w.last = w.sent.Messages()
		}
		w.mode, w.tier = "assistant", 3
		shows(edit("assistant"))
		shows(edit("assistant")) // at once
		preview(edit(UserMode))
		w.mode = UserMode
		old := edit(UserMode)
		shows(old) // though an older one was looked at
		edited := edit(UserMode)
		shows(old)
		preview(old)
		w.mode = "" // a scheduled job in the room
		w.asks("And now?")
		w.mode = UserMode
		shows(old)
		w.switched++ // !mode user
		shows(edited)
		edited = edit(UserMode)
		w.mode = "assistant"
		w.asks("And now?")
		w.mode = UserMode
		shows(edited)
		edited = edit(UserMode)
		w.startsNew()
		shows(edited)
		edited = edit(UserMode)
		w.tier = 4
		shows(edited + " for more")
		old, edited = edited, edit(UserMode)
		shows(old + " for more")
		w.restart()
		shows(edited + " for more")
	}
}
