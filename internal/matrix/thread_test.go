package matrix_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/matrix"
	"reverie/internal/matrix/gate"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/settings"
	"reverie/internal/test/expect"
)

// placed is an event of the bot and its relation.
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

// thread returns the relation of a message in a thread.
func thread(root string) content {
	return content{"m.relates_to": content{"rel_type": "m.thread", "event_id": root, "is_falling_back": true, "m.in_reply_to": content{"event_id": root}}}
}

// quiet waits until everything is sent.
func (b *bot) quiet(s *matrixtest.Server) {
	b.t.Helper()
	await(b.t, s, "something is not sent", func() bool { return b.Status(b.t.Context()).Outbox == 0 })
}

// TestAnswersStayInThread: drafts, edits, files and notices for a message are in one thread.
// Holds M24, M28, M62.
func TestAnswersStayInThread(t *testing.T) {
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
			s, server := fakeHomeserver(t)
			you := person(t, s, "you")
			answer := func(b *bot, in chat.Message) {
				id, before := "re-"+in.ID, len(b.places(s, in.Room))
				b.tells(in.Room, chat.Outgoing{ID: id, Text: long[:200], ReplyTo: in.ID, Draft: true})
				await(b.t, s, "no draft", func() bool { return len(b.places(s, in.Room)) > before })
				for _, m := range []chat.Outgoing{
					{ID: id, Text: long, ReplyTo: in.ID},
					{ID: "compaction:1", Text: "by the way", Notice: true, Thread: in.Branch},
				} {
					b.tells(in.Room, m)
				}
				b.done(in)
			}
			b := startWith(t, server, t.TempDir(), answer, hurry, you.UserID())
			room := roomWith(t, s, you, b, matrixtest.NewRoom{Direct: c.direct})
			root := s.Say(you.UserID(), room, "the root, for nobody")
			if c.direct {
				b.next()
				b.quiet(s)
			}
			b.set(t, room, settings.Threads, c.setting)
			before := len(b.places(s, room))
			mention := content{"m.mentions": content{"user_ids": []string{b.UserID()}}}
			if c.in {
				maps.Copy(mention, thread(root))
			}
			asked := s.Post(you.UserID(), room, "m.room.message", text("what now?", mention))
			in := b.next()
			b.quiet(s)
			want := either(c.root, asked, root)
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
					last := either(i > 0, carried, asked)
					if e.Type != string(gate.ElementThread) || e.Event != want || !e.Fallback || e.Reply.Event != last {
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
			read := either(c.in, root, "main")
			await(t, s, "not read", func() bool { return s.ReadIn(room, b.UserID(), read) == asked })
		})
	}
}

// TestNoThread: an invalid thread root is ignored.
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

// TestRootIsQuoted: the first message of a thread quotes its root by any sender, or says that it cannot be read.
// Holds M27.
func TestRootIsQuoted(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypted %v", encrypted), func(t *testing.T) {
			s, you, other, b, room := groupWithStranger(t, encrypted, echo)
			theirs := say(t, other, room, "the fence\u202e is azure")
			sayTo(t, you, room, "and the gate?", b.UserID())
			b.next()
			ours := peertest.Next(t, you, spoken(room, b.UserID())).ID
			state := s.SetState(you.UserID(), room, "m.room.topic", "", content{"topic": "colours"})
			clear := s.Say(other.UserID(), room, "in the clear")
			foreign := expect.Must(s.Inject(room, `{"type":"m.room.encrypted","sender":"@other:matrix.test","content":{"algorithm":"m.megolm.v1.aes-sha2","ciphertext":"AAAA","session_id":"x","sender_key":"y","device_id":"Z"}}`))(t)
			redacted := expect.Must(s.Inject(room, `{"type":"m.room.message","sender":"@other:matrix.test","content":{},"unsigned":{"redacted_because":{"type":"m.room.redaction","sender":"@other:matrix.test"}}}`))(t)
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
					asked := expect.Must(you.SayIn(t.Context(), room, c.root, "why?", b.UserID()))(t)
					in := b.next()
					if in.ID != asked || in.Thread != c.root {
						t.Fatalf("%s: heard %+v", c.name, in)
					}
					if i == 1 {
						expect.Equal(t, len(in.Quotes), 0, "%s: quoted again: %+v", c.name, in.Quotes)
						continue
					}
					if len(in.Quotes) != 1 {
						t.Fatalf("%s: %d quotes", c.name, len(in.Quotes))
					}
					q := in.Quotes[0]
					if q.ID != c.root || q.Why != chat.QuoteThread || q.Sender != c.sender || q.Text != c.text || (q.OutgoingID != "") != (c.root == ours) || q.At.IsZero() != (c.sender == "") {
						t.Errorf("%s: %+v", c.name, q)
					}
					b.begin(room, c.root)
				}
			}
		})
	}
}

// begin starts the thread's conversation, like a session.
func (b *bot) begin(room, root string) {
	b.t.Helper()
	db := openDB(b.t, b.dir)
	defer db.Close()
	expect.Must(history.NewStore(db).BeginThread(b.t.Context(), &history.Compaction{Room: history.NewTimeline(room, root)}))(b.t)
}

// TestActiveThread: in a thread with a message of the bot within a day, allowed people need not mention it.
// Holds M33.
func TestActiveThread(t *testing.T) {
	t.Parallel()
	s, server := fakeHomeserver(t)
	you, friend := person(t, s, "you"), person(t, s, "friend")
	var mu sync.Mutex
	ahead := time.Duration(0)
	dir := t.TempDir()
	open := func() *bot {
		return startWith(t, server, dir, func(b *bot, in chat.Message) {
			if !strings.Contains(in.Text, "be quiet") {
				echo(b, in)
			} else if err := b.Ack(context.Background(), in.ID); err != nil {
				b.t.Error(err)
			}
		}, func(cfg *matrix.Config) {
			hurry(cfg)
			cfg.Clock(func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(ahead) })
		}, you.UserID(), friend.UserID())
	}
	b := open()
	room := roomWith(t, s, you, b, matrixtest.NewRoom{Join: []string{friend.UserID()}})
	us := content{"m.mentions": content{"user_ids": []string{b.UserID()}}}
	say := func(user, body, root string, more content) string {
		t.Helper()
		c := either(root != "", thread(root), content{})
		maps.Copy(c, more)
		return s.Post(user, room, "m.room.message", text(body, c))
	}
	heard := func(what, id string) {
		t.Helper()
		b.gets(id)
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

// quoted returns a message's quotes of one kind, as display name and text.
func quoted(in chat.Message, why chat.QuoteKind) (all []string) {
	for _, q := range in.Quotes {
		if q.Why == why {
			name, _, _ := strings.Cut(strings.TrimPrefix(q.Sender, "@"), ":")
			all = append(all, name+": "+q.Text)
		}
	}
	return all
}

func (b *bot) quotes(t *testing.T, why chat.QuoteKind, want ...string) chat.Message {
	t.Helper()
	in := b.next()
	if got := quoted(in, why); !slices.Equal(got, want) {
		t.Errorf("%q quotes %q, want %q", in.Text, got, want)
	}
	return in
}

// set sets a setting of a room.
func (b *bot) set(t *testing.T, room, name, value string) {
	t.Helper()
	db := openDB(t, b.dir)
	defer db.Close()
	expect.OK(t, settings.Store{DB: db}.Put(t.Context(), room, name, value, "@you:matrix.test", time.Now()))
}

// TestGroupContext: group context is quoted once with its senders; redacted, edited or private messages are
// not.
// Holds M34, M65.
func TestGroupContext(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypted %v", encrypted), func(t *testing.T) {
			s, you, other, b, room := groupWithStranger(t, encrypted, echo)
			say(t, other, room, "the lake is warm")
			regret := say(t, other, room, "my code is 4711")
			wrong := say(t, other, room, "we leave at nine")
			say(t, you, room, "who brings bread?")
			say(t, other, room, "!stop")
			expect.OK(t, other.Edit(t.Context(), room, wrong, "we leave at ten"))
			expect.OK(t, you.Edit(t.Context(), room, wrong, "we stay")) // who did not say it cannot change it
			s.Redact(other.UserID(), room, regret)
			sayTo(t, you, room, "what do you think?", b.UserID())
			in := b.quotes(t, chat.QuoteContext, "other: the lake is warm", "other: we leave at ten", "you: who brings bread?")
			if in.Private || in.Sender != you.UserID() || in.Quotes[0].At.IsZero() || in.Quotes[0].ID == "" {
				t.Errorf("heard %+v", in)
			}
			peertest.Next(t, you, spoken(room, b.UserID()))
			say(t, other, room, "fine")
			await(t, s, "the line is not read", func() bool { return b.holds(t, `SELECT count(*) FROM group_message WHERE delivered = 0`) == 1 })
			expect.Equal(t, b.holds(t, `SELECT count(*) FROM group_message WHERE delivered = 1 AND text <> ''`), 0, "lines are kept longer than needed")
			b.stop()
			say(t, other, room, "and sunny")
			b = b.again(echo)
			sayTo(t, you, room, "!status", b.UserID())
			b.quotes(t, chat.QuoteContext)
			sayTo(t, you, room, "and now?", b.UserID())
			b.quotes(t, chat.QuoteContext, "other: fine", "other: and sunny")
			sayTo(t, you, room, "and then?", b.UserID())
			b.quotes(t, chat.QuoteContext)
			b.set(t, room, settings.Listen, "off")
			say(t, other, room, "secretly")
			sayTo(t, you, room, "what was it?", b.UserID())
			b.quotes(t, chat.QuoteContext)
			if strings.Contains(b.log.String(), "4711") || strings.Contains(b.log.String(), "sunny") {
				t.Error("the log shows what was said")
			}
		})
	}
}

// holds returns a number from the bot's database.
func (b *bot) holds(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	db := openDB(t, b.dir)
	defer db.Close()
	expect.OK(t, db.QueryRowContext(t.Context(), query, args...).Scan(&n))
	return n
}

// TestGroupContextLimit: only the newest lines are quoted; waiting quotes are deleted with their message, and
// the context of a room is deleted when the bot leaves it.
func TestGroupContextLimit(t *testing.T) {
	t.Parallel()
	s, you, other, b, room := groupWithStranger(t, false, nil)
	ask := func(text string) string {
		return s.Post(you.UserID(), room, "m.room.message", content{"msgtype": "m.text", "body": text, "m.mentions": content{"user_ids": []string{b.UserID()}}})
	}
	var lines []string
	last := ""
	for i := range 50 {
		lines = append(lines, fmt.Sprintf("other: line %d", i))
		last = s.Say(other.UserID(), room, fmt.Sprintf("line %d", i))
	}
	await(t, s, "the lines are not read", func() bool { return b.holds(t, `SELECT count(*) FROM group_message WHERE event = ?`, last) == 1 })
	expect.Equal(t, b.holds(t, `SELECT count(*) FROM group_message`), 20, "lines are kept")
	ask("and?")
	b.quotes(t, chat.QuoteContext, lines[30:]...)
	for range 6 {
		last = s.Say(other.UserID(), room, strings.Repeat("ä", 2_000))
	}
	ask("and?")
	if got := quoted(b.next(), chat.QuoteContext); len(got) != 3 || len([]rune(got[0])) > 1_020 {
		t.Errorf("%d long lines", len(got))
	}
	s.Redact(other.UserID(), room, last)
	await(t, s, "a quote outlives its message", func() bool { return b.holds(t, `SELECT count(*) FROM inbox WHERE instr(attachments, ?)`, last) == 0 })
	expect.Equal(t, b.holds(t, `SELECT count(*) FROM inbox WHERE instr(attachments, 'ääää')`), 1, "messages have quotes")
	s.Say(other.UserID(), room, "bye")
	await(t, s, "not heard", func() bool { return b.holds(t, `SELECT count(*) FROM group_message WHERE text = 'bye'`) == 1 })
	s.SetState(you.UserID(), room, "m.room.member", b.UserID(), content{"membership": "leave"})
	await(t, s, "what was heard stays", func() bool { return b.holds(t, `SELECT count(*) FROM group_message`) == 0 })
}

// TestReplyChain: a message quotes up to six messages of its reply chain, and none of another room.
// Holds F39, M29.
func TestReplyChain(t *testing.T) {
	t.Parallel()
	s, you, other, b, room := groupWithStranger(t, false, echo)
	b.set(t, room, settings.Listen, "off")
	private := metIn(t, s, you, b, false)
	say(t, you, private, "the code is 4711")
	b.next()
	secret := peertest.Next(t, you, spoken(private, b.UserID())).ID
	post := func(by *peer.Peer, text, to string, more ...content) string {
		c := content{"msgtype": "m.text", "body": text}
		if to != "" {
			c["m.relates_to"] = content{"m.in_reply_to": content{"event_id": to}}
			c["body"] = "> <" + by.UserID() + "> old\n> words\n\n" + text
		}
		for _, m := range more {
			maps.Copy(c, m)
		}
		return s.Post(by.UserID(), room, "m.room.message", c)
	}
	at := content{"m.mentions": content{"user_ids": []string{b.UserID()}}}
	answer := func() string { t.Helper(); return peertest.Next(t, you, spoken(room, b.UserID())).ID }
	to := ""
	for i := range 8 {
		by := []*peer.Peer{you, other}[i%2]
		to = post(by, fmt.Sprint("number ", i), to)
	}
	post(you, "what of it?", to, at)
	b.quotes(t, chat.QuoteReply, "you: number 2", "other: number 3", "you: number 4", "other: number 5", "you: number 6", "other: number 7")
	first := answer()
	post(you, "go on", first)
	b.quotes(t, chat.QuoteReply)
	answer()
	post(you, "no, about that", first) // an older answer of ours, and what it answered
	in := b.quotes(t, chat.QuoteReply, "you: number 4", "other: number 5", "you: number 6", "other: number 7", "you: what of it?", "reverie: echo: **what of it?**")
	if len(in.Quotes) > 0 && in.Quotes[5].ID != first {
		t.Errorf("quotes %+v", in.Quotes)
	}
	answer()
	long := post(other, strings.Repeat("word ", 1_000), "")
	for range 4 {
		long = post(other, strings.Repeat("word ", 1_000), long)
	}
	post(you, "too long?", long, at)
	if got := quoted(b.next(), chat.QuoteReply); len(got) != 3 || len(got[2]) > 1_520 {
		t.Errorf("%d long quotes", len(got))
	}
	answer()
	gone := post(other, "I regret this", "")
	upon := post(you, "upon it", gone)
	s.Redact(other.UserID(), room, gone)
	post(you, "and?", upon, at)
	b.quotes(t, chat.QuoteReply, "you: upon it")
	answer()
	const hidden = ": (this message is not there, or not for you to see)"
	for _, to := range []string{"$nowhere", secret} {
		post(you, "to what?", to, at)
		b.quotes(t, chat.QuoteReply, hidden)
		answer()
	}
	picture := post(other, "cat.png", "", content{"msgtype": "m.image", "body": "cat.png"})
	post(you, "nice?", picture, at)
	b.quotes(t, chat.QuoteReply, "other: (image) cat.png")
	answer()
}

// TestSlowReplyChain: a slow reply chain delays its room only, in order; it is fetched again after a
// restart, and if it cannot be fetched the message is answered without it.
func TestSlowReplyChain(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	slow, quick := metIn(t, s, you, b, false), metIn(t, s, you, b, false)
	b.knows(slow)
	b.knows(quick)
	first := s.Say(you.UserID(), slow, "first")
	b.quotes(t, chat.QuoteReply)
	peertest.Next(t, you, spoken(slow, b.UserID()))
	release := make(chan struct{})
	hang := s.Fault(matrixtest.On("event").By(b.UserID()), matrixtest.Hold(release))
	reply := func(text string) {
		s.Post(you.UserID(), slow, "m.room.message", content{"msgtype": "m.text", "body": text, "m.relates_to": content{"m.in_reply_to": content{"event_id": first}}})
	}
	reply("about that")
	s.Say(you.UserID(), slow, "and after it")
	await(t, s, "nothing is fetched", func() bool { return hang.Hits() > 0 })
	for i := range 3 {
		s.Say(you.UserID(), quick, fmt.Sprint("meanwhile ", i))
		b.hears(fmt.Sprint("meanwhile ", i))
	}
	b.stop() // in the middle
	close(release)
	hang.Remove()
	b = b.again(echo)
	expect.Equal(t, b.quotes(t, chat.QuoteReply, "you: first").Text, "about that", "heard")
	b.hears("and after it")
	s.Fault(matrixtest.On("event").By(b.UserID()), matrixtest.ChangeAnswer(func(a *httptest.ResponseRecorder, _ *http.Request) {
		a.Body.Reset()
		a.Body.WriteString(`{"event_id":["x"]}`)
	}))
	reply("and of this?")
	b.quotes(t, chat.QuoteReply, ": (this message cannot be read)")
}

// TestOpenGroup: by a setting, all messages of allowed people are for the bot. A person may mark a room as a
// direct chat or not.
// Holds M64.
func TestOpenGroup(t *testing.T) {
	t.Parallel()
	s, you, other, b, room := groupWithStranger(t, false, echo)
	b.set(t, room, settings.Mention, "off")
	s.Say(other.UserID(), room, "I may not")
	s.Say(you.UserID(), room, "I may")
	if in := b.quotes(t, chat.QuoteContext, "other: I may not"); in.Text != "I may" || in.Private {
		t.Errorf("heard %+v", in)
	}
	two := group(t, s, you, b)
	b.knows(two)
	s.Say(you.UserID(), two, "are we alone?") // nobody said that this is a direct chat
	b.onlyHears(s, you.UserID(), two, "now?")
	b.set(t, two, settings.Direct, "on")
	s.Say(you.UserID(), two, "we are alone")
	if in := b.next(); in.Text != "we are alone" || !in.Private {
		t.Errorf("heard %+v", in)
	}
	b.set(t, room, settings.Direct, "on")
	s.Say(you.UserID(), room, "not here")
	if in := b.next(); in.Text != "not here" || in.Private {
		t.Errorf("three are alone: %+v", in)
	}
	direct := metIn(t, s, you, b, false)
	b.knows(direct)
	b.set(t, direct, settings.Direct, "off")
	s.Say(you.UserID(), direct, "hello?")
	b.onlyHears(s, you.UserID(), direct, "hello!")
}
