package matrix_test

import (
	"testing"

	"reverie/internal/session"
)

// TestHeardBesideAFile: of a file that is not for us its caption is heard, as it reads after
// an edit; the file's name is no caption.
// Holds M65.
func TestHeardBesideAFile(t *testing.T) {
	t.Parallel()
	s, you, other, b, room := party(t, false, echo)
	file := func(caption string) content {
		c := content{"msgtype": "m.file", "body": "list.txt", "url": "mxc://" + s.Name + "/list"}
		if caption != "" {
			c["body"], c["filename"] = caption, "list.txt"
		}
		return c
	}
	edit := func(event, caption string) {
		c := file(caption)
		c["m.new_content"], c["m.relates_to"] = file(caption), content{"rel_type": "m.replace", "event_id": event}
		s.Post(other.UserID(), room, "m.room.message", c)
	}
	s.Post(other.UserID(), room, "m.room.message", file(""))
	for _, now := range []string{"for Monday", ""} {
		edit(s.Post(other.UserID(), room, "m.room.message", file("for Sunday")), now)
	}
	sayTo(t, you, room, "what is it for?", b.UserID())
	b.quotes(t, session.QuoteHeard, "other: for Monday")
}
