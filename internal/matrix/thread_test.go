package matrix_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// placed is an event of the bot.
type placed struct {
	ID, Body string
	relation
}

// places lists the bot's messages in a room, and its edits of them.
func (b *bot) places(s *matrixtest.Server, room string) (all []placed) {
	b.t.Helper()
	for _, e := range eventsIn(s, room, b.UserID(), "m.room.message") {
		all = append(all, placed{e.ID, e.Content.Body, e.Content.Relates})
	}
	return all
}

// thread is the relation of what is said in a thread.
func thread(root string) content {
	return content{"m.relates_to": content{"rel_type": "m.thread", "event_id": root, "is_falling_back": true, "m.in_reply_to": content{"event_id": root}}}
}

// quiet waits until all is sent that is to be.
func (b *bot) quiet(s *matrixtest.Server) {
	b.t.Helper()
	await(b.t, s, "something is not sent", func() bool { return b.Status(b.t.Context()).Outbox == 0 })
}

// TestAnswersGoWhereTheyWereAsked: all that is said about a message stands in one place:
// drafts, edits, files and notices.
// Holds M24, M28, M62.
func TestAnswersGoWhereTheyWereAsked(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Water every plant of the house. ", 3000) + "Then rest."
	for _, c := range []struct {
		setting     string
		direct, in  bool // asked in a thread
		thread      bool // answered in one
		root, reply bool // which the question is the root of; answered by a reply
	}{
		{"auto", true, false, false, false, false}, {"auto", true, true, true, false, false},
		{"auto", false, false, false, false, true}, {"auto", false, true, true, false, false},
		{"always", true, false, true, true, false}, {"always", false, true, true, false, false}, {"always", false, false, true, true, false},
		{"off", true, false, false, false, false}, {"off", true, true, false, false, true},
		{"off", false, false, false, false, true}, {"off", false, true, false, false, true},
	} {
		t.Run(fmt.Sprintf("%s, direct %v, in a thread %v", c.setting, c.direct, c.in), func(t *testing.T) {
			s, server := pretend(t)
			you := person(t, s, "you")
			answer := func(b *bot, in session.Inbound) {
				id, before := "re-"+in.ID, len(b.places(s, in.Room))
				b.tells(in.Room, session.Outgoing{ID: id, Text: long[:200], ReplyTo: in.ID, Draft: true})
				await(b.t, s, "no draft", func() bool { return len(b.places(s, in.Room)) > before })
				for _, m := range []session.Outgoing{
					{ID: id, Text: long, ReplyTo: in.ID},
					{ID: "compaction:1", Text: "by the way", Notice: true, Thread: in.Branch},
				} {
					b.tells(in.Room, m)
				}
				b.done(in)
			}
			b := startWith(t, server, t.TempDir(), answer, hurry, you.UserID())
			room := s.Room(you.UserID(), matrixtest.NewRoom{Direct: c.direct, Invite: []string{b.UserID()}})
			joined(t, you, room, b.UserID())
			root := s.Say(you.UserID(), room, "the root, for nobody")
			if c.direct {
				b.next()
				b.quiet(s)
			}
			b.set(t, room, session.SettingThreads, c.setting)
			before := len(b.places(s, room))
			mention := content{"m.mentions": content{"user_ids": []string{b.UserID()}}}
			if c.in {
				maps.Copy(mention, thread(root))
			}
			asked := s.Post(you.UserID(), room, "m.room.message", text("what now?", mention))
			in := b.next()
			b.quiet(s)
			want := root
			if c.root {
				want = asked
			}
			if !c.thread {
				want = ""
			}
			if in.ID != asked || in.Branch != want || (in.Thread != "") != c.in {
				t.Errorf("heard %+v", in)
			}
			said := b.places(s, room)[before:]
			first, carried := said[0], ""
			edits := 0
			for i, e := range said {
				switch {
				case e.Type == "m.replace":
					edits++
					if e.Event != first.ID || e.Reply.Event != "" || e.Fallback {
						t.Errorf("an edit stands in %+v", e.relation)
					}
				case c.thread:
					last := asked
					if i > 0 {
						last = carried
					}
					if e.Type != "m.thread" || e.Event != want || !e.Fallback || e.Reply.Event != last {
						t.Errorf("message %d stands in %+v, want thread %s as a reply to %s", i, e.relation, want, last)
					}
					carried = e.ID
				case e.Type != "", e.Event != "", i > 0 && e.Reply.Event != "", i == 0 && (e.Reply.Event == asked) != c.reply:
					t.Errorf("message %d stands in %+v", i, e.relation)
				}
			}
			if edits == 0 || len(said) < edits+2 { // in a direct chat the notice was there before
				t.Errorf("%d events, %d of them edits: want a draft, its end, a file and a notice", len(said), edits)
			}
			read := "main"
			if c.in {
				read = root
			}
			await(t, s, "not read", func() bool { return s.ReadIn(room, b.UserID(), read) == asked })
		})
	}
}

// TestNoThread: what names no event is no thread.
func TestNoThread(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, echo)
	for _, root := range []string{"", "no event", "$with blank", "$with\nline", "$" + strings.Repeat("x", 300)} {
		s.Post(you.UserID(), room, "m.room.message", text("hello", content{"m.relates_to": content{"rel_type": "m.thread", "event_id": root}}))
		if in := b.next(); in.Thread != "" || in.Branch != "" {
			t.Errorf("%v: %+v", root, in)
		}
	}
}

// TestRootIsQuoted: the first message of a thread brings what the thread is about, whoever
// wrote it, and says so when that cannot be had.
// Holds M27.
func TestRootIsQuoted(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypted %v", encrypted), func(t *testing.T) {
			s, you, other, b, room := party(t, encrypted, echo)
			theirs := say(t, other, room, "the fence\u202e is azure")
			sayTo(t, you, room, "and the gate?", b.UserID())
			b.next()
			ours := peertest.Next(t, you, spoken(room, b.UserID())).ID
			state := s.SetState(you.UserID(), room, "m.room.topic", "", content{"topic": "colours"})
			clear := s.Say(other.UserID(), room, "in the clear")
			foreign, err := s.Inject(room, `{"type":"m.room.encrypted","sender":"@other:matrix.test","content":{"algorithm":"m.megolm.v1.aes-sha2","ciphertext":"AAAA","session_id":"x","sender_key":"y","device_id":"Z"}}`)
			ok(t, err)
			redacted, err := s.Inject(room, `{"type":"m.room.message","sender":"@other:matrix.test","content":{},"unsigned":{"redacted_because":{"type":"m.room.redaction","sender":"@other:matrix.test"}}}`)
			ok(t, err)
			plain, plainSender := "in the clear", other.UserID()
			if encrypted {
				plain, plainSender = "[it could not be read]", ""
			}
			for _, c := range []struct{ name, root, sender, text string }{
				{"somebody else's", theirs, other.UserID(), "the fence is azure"},
				{"ours", ours, b.UserID(), "echo: **and the gate?**"},
				{"in the clear", clear, plainSender, plain},
				{"taken back", redacted, other.UserID(), "[it was taken back, or has no words]"},
				{"of the room", state, you.UserID(), "[it was taken back, or has no words]"},
				{"without a key", foreign, "", "[it could not be read]"},
				{"that is nowhere", "$nowhere", "", "[it could not be read]"},
			} {
				for i := range 2 { // the second message knows already
					asked, err := you.SayIn(t.Context(), room, c.root, "why?", b.UserID())
					ok(t, err)
					in := b.next()
					if in.ID != asked || in.Thread != c.root {
						t.Fatalf("%s: heard %+v", c.name, in)
					}
					if i == 1 {
						if len(in.Quotes) != 0 {
							t.Errorf("%s: quoted again: %+v", c.name, in.Quotes)
						}
						continue
					}
					if len(in.Quotes) != 1 {
						t.Fatalf("%s: %d quotes", c.name, len(in.Quotes))
					}
					q := in.Quotes[0]
					if q.ID != c.root || q.Why != session.QuoteThread || q.Sender != c.sender || q.Text != c.text || (q.Ours != "") != (c.root == ours) || q.At.IsZero() != (c.sender == "") {
						t.Errorf("%s: %+v", c.name, q)
					}
					b.begin(room, c.root)
				}
			}
		})
	}
}

// begin has the thread's conversation begun, as a session does.
func (b *bot) begin(room, root string) {
	b.t.Helper()
	db := openDB(b.t, b.dir)
	defer db.Close()
	if _, err := history.NewStore(db).Begin(b.t.Context(), &history.Compaction{Room: history.TalkOf(room, root)}); err != nil {
		b.t.Fatal(err)
	}
}

// TestActiveThread: in a thread in which we spoke, or which begins at a message of ours,
// allowed people need not mention us, for a day.
// Holds M33.
func TestActiveThread(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you, friend := person(t, s, "you"), person(t, s, "friend")
	var mu sync.Mutex
	ahead := time.Duration(0)
	dir := t.TempDir()
	open := func() *bot {
		return startWith(t, server, dir, func(b *bot, in session.Inbound) {
			if !strings.Contains(in.Text, "be quiet") {
				echo(b, in)
			} else if err := b.Handled(context.Background(), in.ID); err != nil {
				b.t.Error(err)
			}
		}, func(cfg *matrix.Config) {
			hurry(cfg)
			cfg.Clock(func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(ahead) })
		}, you.UserID(), friend.UserID())
	}
	b := open()
	room := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID()}, Join: []string{friend.UserID()}})
	joined(t, you, room, b.UserID())
	us := content{"m.mentions": content{"user_ids": []string{b.UserID()}}}
	say := func(user, body, root string, more content) string {
		t.Helper()
		c := content{}
		if root != "" {
			c = thread(root)
		}
		maps.Copy(c, more)
		return s.Post(user, room, "m.room.message", text(body, c))
	}
	heard := func(what, id string) {
		t.Helper()
		if in := b.next(); in.ID != id {
			t.Errorf("%s: heard %+v", what, in)
		}
		b.quiet(s)
	}
	quietRoot, busyRoot := s.Say(you.UserID(), room, "one"), s.Say(you.UserID(), room, "two")
	say(you.UserID(), "for nobody", busyRoot, nil)
	heard("a mention", say(you.UserID(), "hello", busyRoot, us))
	ours := b.places(s, room)[0].ID
	heard("a mention outside", say(you.UserID(), "hello", "", us))
	root := b.places(s, room)[1].ID
	heard("another mention", say(you.UserID(), "be quiet", quietRoot, us))
	for range 2 {
		say(you.UserID(), "outside", "", nil)
		say(you.UserID(), "where nothing was said by us", quietRoot, nil)
		say(you.UserID(), "for my friend", busyRoot, content{"m.mentions": content{"user_ids": []string{friend.UserID()}}})
		say("@stranger:matrix.test", "I am nobody", busyRoot, nil)
		// In a thread's middle no thread begins, but we wrote it.
		heard("at something of ours", say(you.UserID(), "elsewhere", ours, nil))
		heard("after our answer", say(you.UserID(), "and then?", busyRoot, nil))
		heard("of somebody else who is allowed", say(friend.UserID(), "and for me?", busyRoot, nil))
		heard("at our message", say(you.UserID(), "why?", root, nil))
		b.stop() // a restart changes nothing
		b = open()
	}
	mu.Lock()
	ahead = 25 * time.Hour
	mu.Unlock()
	say(you.UserID(), "a day later", busyRoot, nil)
	say(you.UserID(), "a day later", root, nil)
	heard("a mention a day later", say(you.UserID(), "again", busyRoot, us))
	heard("after that", say(you.UserID(), "good", busyRoot, nil))
}
