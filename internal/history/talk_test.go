package history_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reverie/internal/history"
	"reverie/internal/llm"
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

// TestUnsayLeavesThreads: an answer that is taken back leaves the summaries of its room,
// and what the threads of that room began with.
func TestUnsayLeavesThreads(t *testing.T) {
	s, _ := open(t)
	room := history.TalkOf("!room", "")
	for _, m := range []history.Message{
		{Room: room, Role: llm.User, EventID: "$q", Sender: "@me:x", Text: "where is the key?", At: noon},
		{Room: room, Role: llm.Assistant, EventID: "re:$q", Text: "The key of the cellar lies under the third pot.", At: noon},
	} {
		noError(t, s.Append(t.Context(), &m))
	}
	thread := history.TalkOf("!room", "$q")
	c := history.Compaction{Room: thread, Level: history.Extracted, Reason: "thread", At: noon,
		Summary: "- @me:x: where is the key?\n- you: The key of the cellar lies under the third pot."}
	must(s.Begin(t.Context(), &c))(t)
	noError(t, s.Unsay(t.Context(), "re:$q"))
	left, err := s.Compacted(t.Context(), thread)
	if err != nil || strings.Contains(left.Summary, "third pot") || !strings.Contains(left.Summary, "where is the key?") {
		t.Errorf("the thread begins with %q, %v", left.Summary, err)
	}
}
