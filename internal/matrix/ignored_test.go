package matrix_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"maunium.net/go/mautrix/event"

	"reverie/internal/chat"
	"reverie/internal/matrix"
	"reverie/internal/matrix/doctor"
	"reverie/internal/matrix/gate"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/test/expect"
)

// content of events, as JSON has it.
type content = map[string]any

func text(body string, more content) content {
	c := content{"msgtype": "m.text", "body": body}
	maps.Copy(c, more)
	return c
}

// onlyHears says something with a mention, and fails when anything else reached the session before it, or left a trace in the queues.
func (b *bot) onlyHears(s *matrixtest.Server, user, room, want string) {
	b.t.Helper()
	id := s.Post(user, room, "m.room.message", text(want, content{"m.mentions": content{"user_ids": []string{b.UserID()}}}))
	if in := b.next(); in.ID != id || in.Text != want {
		b.t.Errorf("heard %+v, want only %q", in, want)
	}
	st := b.Status(b.t.Context())
	if st.Undecryptable != 0 || st.Lost != 0 || st.Dead != 0 {
		b.t.Errorf("left in the queues: %+v", st)
	}
	if log := b.log.String(); strings.Contains(log, "panic") || strings.Contains(log, "could not be handled") {
		b.t.Error("the log tells of a failure")
	}
}

// spoken matches messages and edits of a user in a room.
func spoken(room, user string) func(peer.Event) bool {
	return func(e peer.Event) bool {
		return e.Room == room && e.Sender == user && (e.Kind == peer.Message || e.Kind == peer.Edit)
	}
}

// The same for what no client sends.
// Holds F35.
func TestMalformedEdits(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, nil)
	question := s.Say(you.UserID(), room, "question")
	b.next()
	replace := func(id any) content { return content{"rel_type": "m.replace", "event_id": id} }
	edit := s.Post(you.UserID(), room, "m.room.message", text("* one", content{"m.relates_to": replace(question), "m.new_content": text("one", nil)}))
	for name, c := range map[string]content{
		"edit of itself in advance": text("* x", content{"m.relates_to": replace("$event99999999"), "m.new_content": text("x", nil)}),
		"no new content":            text("* three", content{"m.relates_to": replace(question)}),
		"new content is null":       text("* three", content{"m.relates_to": replace(question), "m.new_content": nil}),
		"new content is a list":     text("* three", content{"m.relates_to": replace(question), "m.new_content": []int{1}}),
		"new content is empty":      text("* three", content{"m.relates_to": replace(question), "m.new_content": content{}}),
		"new content, no target":    text("* four", content{"m.new_content": text("four", nil)}),
		"empty target":              text("* five", content{"m.relates_to": replace(""), "m.new_content": text("five", nil)}),
		"empty target, no content":  text("* five", content{"m.relates_to": replace("")}),
		"no target, no content":     text("* five", content{"m.relates_to": content{"rel_type": "m.replace"}}),
		"target is a number":        text("* six", content{"m.relates_to": replace(6), "m.new_content": text("six", nil)}),
		"edit that is a reply too":  text("* seven", content{"m.relates_to": content{"rel_type": "m.replace", "event_id": question, "m.in_reply_to": content{"event_id": question}}}),
		"another type inside":       text("* eight", content{"m.relates_to": replace(question), "m.new_content": content{"msgtype": "m.image", "body": "x.png"}}),
	} {
		s.Post(you.UserID(), room, "m.room.message", c)
		t.Log("posted:", name)
	}
	b.onlyHears(s, you.UserID(), room, "and now?")
	s.Post(you.UserID(), room, "m.room.message", text("* two", content{"m.relates_to": replace(edit), "m.new_content": text("two", nil)}))
	for _, want := range []string{"one", "two"} { // and nothing else
		if in, _ := (<-b.changes).(chat.Edit); in.Target != question || in.Text != want {
			t.Errorf("changed: %+v", in)
		}
	}
}

// What the bot's account says itself is never a question, from whichever device
// and however it is worded; also when the configuration names it an owner.
// Holds F36.
func TestOwnOtherDevice(t *testing.T) {
	t.Parallel()
	s, server := fakeHomeserver(t)
	you := person(t, s, "you")
	b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID(), "@reverie:"+s.Name)
	room := metIn(t, s, you, b, true)
	say(t, you, room, "hello")
	b.next()
	peertest.Next(t, you, messageIn(room))
	other := expect.Must(peer.Login(t.Context(), peer.Config{
		Homeserver: s.URL, User: b.UserID(), Password: botPassword, DB: filepath.Join(t.TempDir(), "other.db"),
	}))(t)
	peertest.Run(t, other)
	say(t, other, room, "I am the bot, in another client")
	sayTo(t, other, room, b.UserID()+": and I mention myself", b.UserID())
	for _, text := range []string{"I am the bot, in another client", b.UserID() + ": and I mention myself"} {
		if e := peertest.Next(t, you, messageIn(room)); !strings.HasSuffix(e.Body, text) || strings.Contains(e.Body, "echo") {
			t.Errorf("got %+v, want %q: was it answered?", e, text)
		}
	}
	say(t, you, room, "and me?")
	b.hears("and me?")
	hears(t, you, room, "echo: **and me?**")
	if st := b.Status(t.Context()); st.Undecryptable != 0 || st.Lost != 0 {
		t.Errorf("status %+v", st)
	}
}

// Kinds of messages that are no question in words, and kinds of events that the gate does not read, are left alone.
// Holds F38.
func TestOddMessages(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, nil)
	start := s.Say(you.UserID(), room, "hello")
	b.next()
	media := content{"url": "mxc://" + s.Name + "/x", "info": content{"size": 1 << 40, "mimetype": "x"}}
	of := func(kind string) content { return text("x", content{"msgtype": kind}) }
	with := func(c, more content) content {
		maps.Copy(c, more)
		return c
	}
	poll := content{"question": content{"org.matrix.msc1767.text": "which?"}, "answers": []content{{"id": "1", "org.matrix.msc1767.text": "one"}}}
	for _, c := range []struct {
		name, typ string
		content   any
	}{
		{"notice", "m.room.message", of("m.notice")},
		{"notice that mentions", "m.room.message", with(of("m.notice"), content{"m.mentions": content{"user_ids": []string{b.UserID()}}})},
		{"location", "m.room.message", with(of("m.location"), content{"geo_uri": "geo:1,2"})},
		{"server notice", "m.room.message", of("m.server_notice")},
		{"unknown msgtype", "m.room.message", of("org.example.hologram")},
		{"empty msgtype", "m.room.message", of("")},
		{"no msgtype", "m.room.message", content{"body": "x"}},
		{"empty body", "m.room.message", text("", nil)},
		{"blank body", "m.room.message", text(" \n\t\u00a0\u2028 ", nil)},
		{"invisible body", "m.room.message", text("\u202e\u2066\u0000\ufeff", nil)},
		{"no body", "m.room.message", content{"msgtype": "m.text"}},
		{"no content", "m.room.message", content{}},
		{"sticker", "m.sticker", with(content{"body": "x"}, media)},
		{"poll", "m.poll.start", poll},
		{"poll before it was in the specification", "org.matrix.msc3381.poll.start", content{"org.matrix.msc3381.poll.start": poll, "org.matrix.msc1767.text": "which?"}},
		{"vote", "org.matrix.msc3381.poll.response", content{"m.relates_to": content{"rel_type": "m.reference", "event_id": start}}},
		{"reaction", "m.reaction", content{"m.relates_to": content{"rel_type": "m.annotation", "event_id": start, "key": "+1"}}},
		{"call", "m.call.invite", content{"call_id": "1", "version": "1"}},
		{"unknown type", "org.example.x", text("x", nil)},
		{"no type", "", text("x", nil)},
	} {
		kind := event.Type{Type: c.typ, Class: event.MessageEventType}
		if kind != event.EventMessage && gate.MayBeMessage(&event.Event{Type: kind}) {
			continue // the gate reads this kind: a test of its own says how
		}
		s.Post(you.UserID(), room, c.typ, c.content)
		t.Log("posted:", c.name)
	}
	b.onlyHears(s, you.UserID(), room, "still there?")
	expect.Equal(t, len(eventsIn(s, room, b.UserID(), "m.room.message")), 0, "messages of the bot")
	s.Post(you.UserID(), room, "m.room.message", of("m.emote"))
	b.hears("* you x")
}

// Relations that lead nowhere, or in a circle, do not keep a message from being answered.
// Holds F39.
func TestOddRelations(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	room, other := metIn(t, s, you, b, false), metIn(t, s, you, b, false)
	elsewhere := s.Say(you.UserID(), other, "elsewhere")
	b.next()
	events := func() int { return len(s.Events(room)) }
	reply := func(id string) content { return content{"m.in_reply_to": content{"event_id": id}} }
	thread := func(root, falls string) content {
		return content{"rel_type": "m.thread", "event_id": root, "is_falling_back": true, "m.in_reply_to": content{"event_id": falls}}
	}
	for _, c := range []struct {
		name, id string
		relates  content
	}{
		{"a reply to nothing", "", reply("$nowhere")},
		{"a reply to an event of another room", "", reply(elsewhere)},
		{"a reply to an empty id", "", reply("")},
		{"a reply to itself", "$self", reply("$self")},
		{"a circle, first half", "$a", reply("$b")},
		{"a circle, second half", "$b", reply("$a")},
		{"a thread whose root is missing", "", thread("$nowhere", "$nowhere")},
		{"a thread whose root is in another room", "", thread(elsewhere, elsewhere)},
		{"a thread whose root is itself", "$root", thread("$root", "$root")},
		{"a thread without a root", "", content{"rel_type": "m.thread"}},
		{"a reference to nothing", "", content{"rel_type": "m.reference", "event_id": "$nowhere"}},
		{"an unknown relation", "", content{"rel_type": "org.example.x", "event_id": []int{}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := events()
			raw := fmt.Sprintf(`{"sender":%q,"content":%s}`, you.UserID(), mustJSON(t, text(c.name, content{"m.relates_to": c.relates})))
			if c.id != "" {
				raw = fmt.Sprintf(`{"event_id":%q,`, c.id) + raw[1:]
			}
			expect.Must(s.Inject(room, raw))(t)
			if c.name == "an unknown relation" { // its content makes no sense: the log says so
				b.onlyHears(s, you.UserID(), room, "after it")
				expect.Equal(t, strings.Contains(b.log.String(), "makes no sense"), true, "the log tells of it")
				return
			}
			b.hears(c.name)
			await(t, s, "no answer", func() bool { return events() == before+2 })
		})
	}
}

// What an event says about itself in the room's state or the account's data may make no sense either.
// Holds F39.
func TestBrokenState(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, nil)
	for _, c := range []struct{ typ, key, content string }{
		{"m.room.name", "", `{"name":7}`}, {"m.room.topic", "", `[]`}, {"m.room.canonical_alias", "", `{"alias":{}}`},
		{"m.room.power_levels", "", `{"users":"everybody","ban":"50"}`}, {"m.room.encryption", "x", `{"algorithm":7}`},
		{"m.room.member", "@x:y", `{"membership":{}}`}, {"m.room.member", "nobody", `{"membership":"join","displayname":7}`},
		{"m.room.tombstone", "", `5`}, {"m.room.join_rules", "", `null`}, {"m.room.history_visibility", "", `{"history_visibility":[]}`},
		{"m.room.create", "", `{"creator":1}`}, {"m.room.pinned_events", "", `{"pinned":{"a":1}}`},
		{"org.example.deep", "", strings.Repeat(`{"a":`, 3000) + "1" + strings.Repeat("}", 3000)},
	} {
		expect.Must(s.Inject(room, fmt.Sprintf(`{"sender":%q,"type":%q,"state_key":%q,"content":%s}`, you.UserID(), c.typ, c.key, c.content)))(t)
	}
	for _, c := range []any{"x", 5, nil, []any{nil}, content{"algorithm": "m.olm.v1.curve25519-aes-sha2", "ciphertext": "x"}, content{"algorithm": "m.olm.v1.curve25519-aes-sha2", "ciphertext": content{"x": 1}}} {
		s.SendToDevice(you.UserID(), b.UserID(), "m.room.encrypted", c)
		s.SendToDevice(you.UserID(), b.UserID(), "m.room_key_request", c)
		s.SendToDevice(you.UserID(), b.UserID(), "m.room_key.withheld", c)
	}
	l := logIn(t, b.server, "")
	call(t, b.server, http.MethodPut, "user/"+b.UserID()+"/account_data/m.direct", l.AccessToken, content{"@a:b": "no list", you.UserID(): []any{room, 7}}, nil)
	b.onlyHears(s, you.UserID(), room, "still there?")
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data := expect.Must(json.Marshal(v))(t)
	return data
}

// ahead is a clock that a test moves.
type ahead struct{ by atomic.Int64 }

func (a *ahead) now() time.Time             { return time.Now().Add(time.Duration(a.by.Load())) }
func (a *ahead) advance(d time.Duration)    { a.by.Add(int64(d)) }
func (a *ahead) clocked(cfg *matrix.Config) { cfg.Hurry(); cfg.Clock(a.now) }

func (b *bot) says(room string, all ...chat.Outgoing) {
	b.t.Helper()
	for _, m := range all {
		expect.OK(b.t, b.Send(b.t.Context(), room, m))
	}
}

// The notice that an answer takes long becomes the answer: the same event, as text.
// Holds M68.
func TestProgressBecomesTheAnswer(t *testing.T) {
	t.Parallel()
	clock := &ahead{}
	s, you, b, room := chattingWith(t, false, nil, clock.clocked)
	id := say(t, you, room, "hello")
	b.next()
	still := chat.Outgoing{ID: "re-" + id, Text: "still working: thinking", ReplyTo: id, Draft: true, Notice: true}
	b.says(room, still)
	clock.advance(2 * time.Second)
	b.Look()
	first := peertest.Next(t, you, messageIn(room))
	if !first.Notice || !first.Live || first.Body != still.Text {
		t.Errorf("got %+v", first)
	}
	still.Text = "still working: a tool" // shorter or longer, it is told
	clock.advance(10 * time.Second)
	b.says(room, still)
	next := func() peer.Event {
		return peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && (e.Kind == peer.Message || e.Kind == peer.Edit) })
	}
	if e := next(); e.Kind != peer.Edit || e.ID != first.ID || e.Body != still.Text || !e.Notice {
		t.Errorf("got %+v", e)
	}
	clock.advance(10 * time.Second)
	b.says(room, chat.Outgoing{ID: "re-" + id, Text: "The answer begins.", ReplyTo: id, Draft: true})
	if e := next(); e.Kind != peer.Edit || e.ID != first.ID || e.Body != "The answer begins." || e.Notice || !e.Live {
		t.Errorf("got %+v", e)
	}
	b.says(room, chat.Outgoing{ID: "re-" + id, Text: "The answer.", ReplyTo: id})
	if e := next(); e.Kind != peer.Edit || e.ID != first.ID || e.Body != "The answer." || e.Notice || e.Live {
		t.Errorf("got %+v", e)
	}
	expect.Equal(t, s.Count("redact"), 0, "redactions")
}

// Nobody is told of an edit: an answer that took longer than a minute is a new message, and the notice is taken back. So it is too when
// the bot was stopped in between, when the answer is shown while it is written, and when the notice is just on its way.
// Holds F46, M68.
func TestLateAnswerIsANewMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                    string
		restart, draft, onItWay bool
	}{{name: "at once"}, {name: "after a restart", restart: true}, {name: "streamed", draft: true}, {name: "the notice is on its way", onItWay: true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := &ahead{}
			s, you, b := meetingWith(t, nil, clock.clocked)
			room := roomWith(t, s, you, b, matrixtest.NewRoom{})
			id := sayTo(t, you, room, "hello", b.UserID())
			b.next()
			hold := make(chan struct{})
			var slow *matrixtest.Hook
			if c.onItWay {
				slow = s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), matrixtest.AfterEffect(matrixtest.Hold(hold)))
			}
			b.says(room, chat.Outgoing{ID: "re-" + id, Text: "still working: thinking", ReplyTo: id, Draft: true, Notice: true})
			clock.advance(2 * time.Second)
			b.Look()
			first := peertest.Next(t, you, messageIn(room))
			if c.restart {
				b = b.again(nil)
				b.next()
			}
			clock.advance(time.Minute)
			if c.draft {
				b.says(room, chat.Outgoing{ID: "re-" + id, Text: "The answer begins.", ReplyTo: id, Draft: true})
				clock.advance(2 * time.Second)
				b.Look()
				if e := peertest.Next(t, you, messageIn(room)); e.ID == first.ID || e.Body != "The answer begins." || !e.Live || e.Notice {
					t.Errorf("got %+v", e)
				}
			}
			b.says(room, chat.Outgoing{ID: "re-" + id, Text: "The answer.", ReplyTo: id})
			if slow != nil {
				close(hold)
			}
			await(t, s, "the notice is not taken back", func() bool {
				list := eventsIn(s, room, b.UserID(), "m.room.message")
				return len(list) > 1 && list[0].ID == first.ID && list[0].Content.Body == ""
			})
			await(t, s, "the answer is not sent", func() bool { st := b.Status(t.Context()); return st.Outbox == 0 })
			list := eventsIn(s, room, b.UserID(), "m.room.message")
			want := either(c.draft, 3, 2)
			if len(list) != want || list[1].Content.MsgType != "m.text" || fmt.Sprint(list[1].Content.users()) != "["+you.UserID()+"]" {
				t.Errorf("shown %+v", list)
			}
			if last := list[len(list)-1].Content; last.Body != "The answer." && last.New.Body != "The answer." {
				t.Errorf("it reads %+v", last)
			}
			// It is ours: who replies to it talks to us, and an edit finds it.
			expect.Must(you.Reply(t.Context(), room, list[1].ID, "thanks"))(t)
			b.hears("thanks")
		})
	}
}

// A notice that nobody's answer takes the place of does not stay there when the bot comes back.
func TestProgressAfterARestart(t *testing.T) {
	t.Parallel()
	clock := &ahead{}
	s, you, b, room := chattingWith(t, false, nil, clock.clocked)
	id := say(t, you, room, "hello")
	b.next()
	b.says(room, chat.Outgoing{ID: "re-" + id, Text: "still working: thinking", ReplyTo: id, Draft: true, Notice: true})
	clock.advance(2 * time.Second)
	b.Look()
	first := peertest.Next(t, you, messageIn(room))
	expect.OK(t, b.Ack(t.Context(), id))
	b = b.again(echo)
	await(t, s, "the notice is not taken back", func() bool {
		list := eventsIn(s, room, b.UserID(), "m.room.message")
		return len(list) == 1 && list[0].ID == first.ID && list[0].Content.Body == ""
	})
	b.becomes("something is still to be sent", func(s doctor.Status) bool { return s.Outbox == 0 })
}

// An answer is edited at most forty times, each time a while after the last, slower where
// it is encrypted; nobody is mentioned by an edit, and the last one says all.
// Holds F5, M19, M20, M23.
func TestStreamingManners(t *testing.T) {
	t.Parallel()
	clock := &ahead{}
	s, you, b := meetingWith(t, nil, clock.clocked)
	room := roomWith(t, s, you, b, matrixtest.NewRoom{})
	id := sayTo(t, you, room, "hello", b.UserID())
	b.next()
	text := strings.Repeat("word ", 12)
	draft := func() {
		text += strings.Repeat("more ", 12)
		b.says(room, chat.Outgoing{ID: "re-" + id, Text: text, ReplyTo: id, Draft: true})
	}
	for i := 1; i <= 45; i++ {
		draft()
		for tries := 0; len(eventsIn(s, room, b.UserID(), "m.room.message")) < min(i, 40); tries++ {
			if tries > 5000 {
				t.Fatalf("edit %d is missing", i)
			}
			clock.advance(time.Second)
			b.Look()
			time.Sleep(2 * time.Millisecond)
		}
	}
	other := metIn(t, s, you, b, false)
	for i := range 4 { // nothing more is shown, however long it waits: what is said elsewhere comes after it
		clock.advance(time.Minute)
		b.says(other, chat.Outgoing{ID: fmt.Sprint("elsewhere ", i), Text: "and this"})
		await(t, s, "nothing is said elsewhere", func() bool { return len(eventsIn(s, other, b.UserID(), "m.room.message")) == i+1 })
	}
	text += "the end"
	b.says(room, chat.Outgoing{ID: "re-" + id, Text: text, ReplyTo: id})
	await(t, s, "the answer is not sent", func() bool { return b.Status(t.Context()).Outbox == 0 })
	list := eventsIn(s, room, b.UserID(), "m.room.message")
	if len(list) != 41 {
		t.Fatalf("%d events for an answer", len(list))
	}
	for i, e := range list {
		c := e.Content
		switch {
		case i == 0:
			if c.Live == nil || fmt.Sprint(c.users()) != "["+you.UserID()+"]" {
				t.Errorf("it begins as %+v", c)
			}
		case c.Relates.Type != "m.replace" || c.Relates.Event != list[0].ID || len(c.users()) > 0:
			t.Errorf("edit %d: %+v", i, c)
		case (c.Live == nil) != (i == 40):
			t.Errorf("edit %d: live %v", i, c.Live)
		}
	}
	if last := list[40].Content.New; last.Body != text || last.MsgType != "m.text" {
		t.Errorf("it ends as %+v", last)
	}
}

// Holds F5, M18.
func TestPaceOfEdits(t *testing.T) {
	t.Parallel()
	clock, began := &ahead{}, time.Now()
	stopped := func() time.Time { return began.Add(time.Duration(clock.by.Load())) } // or the test's own time counts, too
	s, you, b := meetingWith(t, echo, func(cfg *matrix.Config) { cfg.Hurry(); cfg.Clock(stopped) })
	plain, secret := metIn(t, s, you, b, false), metIn(t, s, you, b, true)
	count := func(room string) (n int) {
		for _, send := range s.Sends() {
			if send.User == b.UserID() && send.Room == room {
				n++
			}
		}
		return n
	}
	text := "a beginning that is long enough to be shown"
	grow := func() {
		text += strings.Repeat(" and more", 10)
		for _, room := range []string{plain, secret} {
			b.says(room, chat.Outgoing{ID: "answer " + room, Text: text, Draft: true})
		}
	}
	// settle waits until all that is due is sent: what is said elsewhere comes after it.
	other := metIn(t, s, you, b, false)
	settle := func() {
		t.Helper()
		for range 2 {
			b.Look()
			n := count(other)
			say(t, you, other, "and?")
			await(t, s, "no answer", func() bool { return count(other) > n })
		}
	}
	grow()
	clock.advance(1100 * time.Millisecond)
	settle()
	await(t, s, "no beginning", func() bool { return count(plain) == 1 && count(secret) == 1 })
	settle() // what comes next is due when they are done with
	grow()
	clock.advance(900 * time.Millisecond)
	settle()
	if p, e := count(plain), count(secret); p != 1 || e != 1 {
		t.Errorf("within a second: %d and %d events", p, e)
	}
	clock.advance(900 * time.Millisecond)
	settle()
	await(t, s, "nothing more in the open room after 1.8 s", func() bool { return count(plain) == 2 })
	expect.Equal(t, count(secret), 1, "after 1.8 s: events in the encrypted room")
	clock.advance(1500 * time.Millisecond)
	settle()
	await(t, s, "nothing more in the encrypted room after 3.3 s", func() bool { return count(secret) == 2 })
}
