package history_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reverie/internal/history"
)

// TestTalk: a room and a thread make a name that gives both back, and no two make the same
// one, whatever a room is called.
func TestTalk(t *testing.T) {
	for _, room := range []string{"!a:example.org", "!31hneApxJ_1o-63DmFrpeqnkFfWppnzWso1JvH3ogLM", "!with blanks /$x:example.org", "sub:1", "terminal", "thread:$x !a"} {
		for _, root := range []string{"$old:example.org", "$Rqnc-F-dvnEYJTyHq_iKxU2bZ1CI92-kuZq3a5lr5Zg", "$with/and+"} {
			if talk := history.TalkOf(room, root); talk.Room() != room || talk.Thread() != root {
				t.Errorf("%q and %q became %q: %q and %q", room, root, talk, talk.Room(), talk.Thread())
			}
		}
		for _, root := range []string{"", "$with blank", "$with\nline"} {
			if talk := history.TalkOf(room, root); string(talk) != room {
				t.Errorf("%q and %q became %q", room, root, talk)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching(`[!$ a:/-]{1,6}`)
		a, b := "!"+id.Draw(t, "room"), "!"+id.Draw(t, "other room")
		x, y := "$"+strings.ReplaceAll(id.Draw(t, "root"), " ", ""), "$"+strings.ReplaceAll(id.Draw(t, "other root"), " ", "")
		if same := history.TalkOf(a, x) == history.TalkOf(b, y); same != (a == b && x == y) {
			t.Fatalf("%q %q and %q %q", a, x, b, y)
		}
		if history.TalkOf(a, x) == history.TalkOf(b, "") {
			t.Fatalf("the thread %q of %q is the room %q", x, a, b)
		}
	})
}
