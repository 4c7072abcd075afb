package matrix_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
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
			s, server := pretend(t)
			you, other := person(t, s, "you"), person(t, s, "other")
			b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID())
			room := s.Room(you.UserID(), matrixtest.NewRoom{Encrypted: encrypted, Invite: []string{b.UserID()}, Join: []string{other.UserID()}})
			joined(t, you, room, b.UserID())
			joined(t, other, room, b.UserID())
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
		})
	}
}

func replacing(event, words string) content {
	return content{"msgtype": "m.text", "body": "* " + words, "m.new_content": content{"msgtype": "m.text", "body": words},
		"m.relates_to": content{"rel_type": "m.replace", "event_id": event}}
}

// TestEditThatComesAlong: a homeserver may send the newest edit along with the event; it
// counts if it is one. Where edits cannot be asked for, the words are those that were
// written first.
func TestEditThatComesAlong(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you, other := person(t, s, "you"), person(t, s, "other")
	b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID())
	room := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID()}, Join: []string{other.UserID()}})
	joined(t, you, room, b.UserID())
	b.set(t, room, session.SettingListen, "off")
	asked := s.Fault(matrixtest.On("relations").By(b.UserID()), matrixtest.Status(http.StatusNotFound, "M_UNRECOGNIZED"))
	for _, c := range []struct {
		name   string
		edit   map[string]any // what comes along
		want   string
		asking int
	}{
		{"the edit", map[string]any{"sender": other.UserID()}, "other: second", 0},
		{"somebody else's", map[string]any{"sender": you.UserID()}, "other: first", 0},
		{"of something else", map[string]any{"sender": other.UserID(), "of": "$another"}, "other: first", 0},
		{"nothing", nil, "other: first", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := s.Say(other.UserID(), room, "first")
			along := s.Fault(matrixtest.On("event").By(b.UserID()), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				rec := httptest.NewRecorder()
				next.ServeHTTP(rec, r)
				var e map[string]any
				if err := json.NewDecoder(bytes.NewReader(rec.Body.Bytes())).Decode(&e); err != nil {
					t.Error(err)
				}
				if c.edit != nil {
					of, isOf := c.edit["of"].(string)
					if !isOf {
						of = id
					}
					e["unsigned"] = map[string]any{"m.relations": map[string]any{"m.replace": map[string]any{"event_id": "$edit", "type": "m.room.message", "room_id": room,
						"sender": c.edit["sender"], "origin_server_ts": 1, "content": replacing(of, "second")}}}
				}
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(e)
			})
			defer along.Remove()
			before := asked.Hits()
			_, err := you.Reply(t.Context(), room, id, "is that so?", b.UserID())
			ok(t, err)
			b.quotes(t, session.QuoteReply, c.want)
			peertest.Next(t, you, spoken(room, b.UserID()))
			if n := asked.Hits() - before; n != c.asking {
				t.Errorf("edits were asked for %d times, want %d", n, c.asking)
			}
		})
	}
}
