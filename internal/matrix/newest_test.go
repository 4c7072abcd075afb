package matrix_test

import (
	"fmt"
	"net/http"
	"testing"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// TestQuotesReadAsEdited: what a message replies to, and the root of its thread, read as
// the person who wrote them left them; nobody else can change them, and nobody in plain
// text where the room is encrypted.
func TestQuotesReadAsEdited(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypted %v", encrypted), func(t *testing.T) {
			t.Parallel()
			s, you, other, b, room := party(t, encrypted, echo)
			b.set(t, room, session.SettingListen, "off")
			edited := func(words ...string) string {
				t.Helper()
				id := say(t, other, room, words[0])
				for _, w := range words[1:] {
					ok(t, other.Edit(t.Context(), room, id, w))
				}
				ok(t, you.Edit(t.Context(), room, id, "we stay"))
				if encrypted {
					s.Post(other.UserID(), room, "m.room.message", replacing(id, "we fly"))
				}
				return id
			}
			leaving := edited("we leave at nine", "we leave at eight", "we leave at ten")
			_, err := you.Reply(t.Context(), room, leaving, "is that so?", b.UserID())
			ok(t, err)
			b.quotes(t, session.QuoteReply, "other: we leave at ten")
			peertest.Next(t, you, spoken(room, b.UserID()))
			root := edited("the lake is cold", "the lake is warm")
			_, err = you.SayIn(t.Context(), room, root, "is it?", b.UserID())
			ok(t, err)
			b.quotes(t, session.QuoteThread, "other: the lake is warm")
			peertest.Next(t, you, spoken(room, b.UserID()))
			plain := say(t, other, room, "nobody edits this")
			_, err = you.Reply(t.Context(), room, plain, "no?", b.UserID())
			ok(t, err)
			b.quotes(t, session.QuoteReply, "other: nobody edits this")
			peertest.Next(t, you, spoken(room, b.UserID()))
			asked := s.Fault(matrixtest.On("relations").By(b.UserID()), matrixtest.Status(http.StatusNotFound, "M_UNRECOGNIZED"))
			_, err = you.Reply(t.Context(), room, leaving, "and if that is not known?", b.UserID()) // then they read as they were written first
			ok(t, err)
			if b.quotes(t, session.QuoteReply, "other: we leave at nine"); asked.Hits() != 1 {
				t.Errorf("edits were asked for %d times, want 1", asked.Hits())
			}
		})
	}
}

func replacing(event, words string) content {
	return content{"msgtype": "m.text", "body": "* " + words, "m.new_content": content{"msgtype": "m.text", "body": words},
		"m.relates_to": content{"rel_type": "m.replace", "event_id": event}}
}
