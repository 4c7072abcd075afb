package matrix_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/test/expect"
)

// These tests stop the client between two steps, which leaves the same database as a kill. The crash
// storm kills the real program.

// The program dies during a sync with a message and its key: the key is stored, the message is not.
// Holds F8.
func TestKilledBetweenSyncAndInbox(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, echo)
	db := openDB(t, b.dir)
	// The last write, which stores the inbox, fails.
	execute(t, db, `CREATE TRIGGER died BEFORE UPDATE ON matrix_sync WHEN
		(SELECT count(*) FROM crypto_megolm_inbound_session WHERE room_id = '`+room+`') > 0 BEGIN SELECT raise(ABORT, 'died'); END`)
	both := make(chan struct{})
	inPlace(t, s, matrixtest.On("sync").By(b.UserID()).Times(1), matrixtest.Hold(both))
	say(t, you, room, "one") // the first, so there is a key with it
	close(both)
	await(t, s, "the sync was not worked on", func() bool { return strings.Contains(b.log.String(), "died") })
	b.stop()
	if len(b.heard) > 0 {
		t.Fatalf("heard %+v too soon", <-b.heard)
	}
	execute(t, db, `DROP TRIGGER died`)
	b = b.again(echo)
	hears(t, you, room, "echo: **one**")
	say(t, you, room, "two") // the key is for this one, too
	hears(t, you, room, "echo: **two**")
	if messages, edits := said(t, s, room, b.UserID()); len(messages) != 2 || edits != 0 {
		t.Errorf("%d messages and %d edits for two questions", len(messages), edits)
	}
}

// The program dies while it sends; also after the homeserver has accepted the beginning of the answer
// and the program has no response. The homeserver has forgotten the transaction ID, too.
// Holds F10.
func TestKilledAfterFirstDraft(t *testing.T) {
	t.Parallel()
	const beginning = "the beginning of a long answer, which is never finished"
	for _, c := range []struct {
		name           string
		known, handled bool
		want           string
	}{
		{"unknown, the question waits", false, false, "echo: **go on**"},
		{"unknown, the question is done", false, true, "_(interrupted)_"},
		{"known, the question waits", true, false, "echo: **go on**"},
		{"known, the question is done", true, true, beginning + "\n\n_(interrupted)_"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, true, nil)
			id := say(t, you, room, "go on")
			b.next()
			notice := func() {}
			if !c.known {
				deaf := inPlace(t, s, matrixtest.On("sync").By(b.UserID()), matrixtest.Hang())
				sent := withoutResponse(s, b.UserID())
				notice = func() { deaf.Remove(); sent.Remove(); s.ForgetTransactions() }
			}
			b.says(room, chat.Outgoing{ID: "re-" + id, Text: beginning, ReplyTo: id, Draft: true})
			first := peertest.Next(t, you, messageIn(room))
			if c.handled {
				expect.OK(t, b.Ack(t.Context(), id))
			}
			b.stop()
			notice()
			b = b.again(echo)
			e := peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && (e.Kind == peer.Message || e.Kind == peer.Edit) })
			if e.Kind != peer.Edit || e.ID != first.ID || !strings.HasSuffix(e.Body, c.want) || c.known && e.Body != c.want || e.Live {
				t.Errorf("after the restart came %+v, want an edit of %s", e, first.ID)
			}
			echoes(t, you, room, "then")
			if messages, _ := said(t, s, room, b.UserID()); len(messages) != 2 {
				t.Errorf("%d messages for two questions", len(messages))
			}
		})
	}
}

// withoutResponse lets the bot's sends take effect and never responds.
func withoutResponse(s *matrixtest.Server, bot string) *matrixtest.Hook {
	return s.Fault(matrixtest.On("send").By(bot), matrixtest.AfterEffect(matrixtest.Hang()))
}

// The response to the first draft is lost, the homeserver restarts, and the whole answer is ready before
// a sync shows the draft.
// Holds F12.
func TestLostDraftResponse(t *testing.T) {
	t.Parallel()
	for name, final := range map[string]bool{"more follows": false, "the end follows": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, true, nil)
			text := "the beginning of an answer that is long enough to be shown"
			lost := make(chan struct{})
			s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				next.ServeHTTP(httptest.NewRecorder(), r)
				s.ForgetTransactions()
				close(lost)
				hangUp(w)
			})
			slow := s.Fault(matrixtest.On("sync").By(b.UserID()), matrixtest.Drop()) // until the next try would be due
			b.says(room, chat.Outgoing{ID: "answer", Text: text, Draft: true})
			<-lost
			b.says(room, chat.Outgoing{ID: "answer", Text: text + ", and its end", Draft: !final})
			time.Sleep(2500 * time.Millisecond) // longer than a draft waits after a failure
			slow.Remove()
			b.says(room, chat.Outgoing{ID: "answer", Text: text + ", and its end"})
			first := peertest.Next(t, you, messageIn(room))
			for {
				e := peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && (e.Kind == peer.Message || e.Kind == peer.Edit) })
				if e.ID != first.ID || e.Kind != peer.Edit {
					t.Errorf("a second message: %+v", e)
				}
				if !e.Live {
					break
				}
			}
			if messages, _ := said(t, s, room, b.UserID()); len(messages) != 1 {
				t.Errorf("%d messages for one answer", len(messages))
			}
		})
	}
}

// The same message arrives more than once.
// Holds F13.
func TestDeliveredTwice(t *testing.T) {
	t.Parallel()
	for kind, encrypted := range map[string]bool{"plain": false, "encrypted": true} {
		t.Run(kind, func(t *testing.T) {
			s, you, b, room := chatting(t, encrypted, echo)
			want := 0
			ask := func(text string) (id string) {
				t.Helper()
				want++
				id = say(t, you, room, text)
				hears(t, you, room, "echo: **"+text+"**")
				b.gets(id)
				return id
			}
			t.Run("twice in one sync", func(t *testing.T) {
				hook := inPlace(t, s, matrixtest.On("sync").By(b.UserID()), matrixtest.Duplicate())
				ask("one")
				ask("two")
				hook.Remove()
			})
			t.Run("again in a later sync", func(t *testing.T) {
				id := ask("three")
				for range 3 {
					expect.OK(t, s.Redeliver(room, id))
				}
				ask("four")
			})
			all := t // who is started below lives longer than its part
			t.Run("an old token", func(t *testing.T) {
				db := openDB(t, b.dir)
				var old string
				expect.OK(t, db.QueryRowContext(t.Context(), `SELECT next_batch FROM matrix_sync`).Scan(&old))
				ask("five")
				ask("six")
				b.stop()
				execute(t, db, `UPDATE matrix_sync SET next_batch = ?`, old)
				b = startWith(all, b.server, b.dir, echo, hurry, you.UserID())
				ask("seven")
			})
			t.Run("the bot comes back into the room", func(t *testing.T) {
				s.SetState(you.UserID(), room, "m.room.member", b.UserID(), map[string]any{"membership": "leave"})
				peertest.Next(t, you, peertest.Kind(room, peer.Left))
				s.SetState(you.UserID(), room, "m.room.member", b.UserID(), map[string]any{"membership": "invite", "is_direct": true})
				peertest.Next(t, you, peertest.Kind(room, peer.Joined))
				ask("eight")
			})
			if messages, edits := said(t, s, room, b.UserID()); len(messages) != want || edits != 0 {
				t.Errorf("%d messages and %d edits for %d questions", len(messages), edits, want)
			}
		})
	}
}

// In a group only messages addressed to the bot count, also after an absence: for the old ones there is
// one notice, the recent ones are answered, and the others are ignored.
// Holds F14.
func TestLongAbsenceFromAGroup(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	friend := person(t, s, "friend")
	group := func(name string) string {
		return roomWith(t, s, you, b, matrixtest.NewRoom{Name: name, Join: []string{friend.UserID()}})
	}
	busy, chatty := group("busy"), group("chatty")
	b.stop()
	mention := func(room, text string) {
		s.Post(you.UserID(), room, "m.room.message", map[string]any{"msgtype": "m.text", "body": text, "m.mentions": map[string]any{"user_ids": []string{b.UserID()}}})
	}
	s.Fault(matrixtest.On("sync").By(b.UserID()), matrixtest.LimitTimelines(2))
	s.SetClock(time.Hour)
	for i := range 20 {
		s.Say(friend.UserID(), busy, fmt.Sprint("chatter ", i))
		s.Say(you.UserID(), chatty, fmt.Sprint("chatter ", i))
	}
	mention(busy, "an old question")
	mention(busy, "another old question")
	s.SetClock(4 * time.Hour)
	s.Say(you.UserID(), busy, "more chatter")
	mention(busy, "a recent question")
	for i := range 20 {
		s.Say(you.UserID(), busy, fmt.Sprint("chatter ", i))
	}
	b = startWith(t, b.server, b.dir, echo, func(cfg *matrix.Config) {
		cfg.Hurry()
		cfg.Clock(func() time.Time { return time.Now().Add(4 * time.Hour) })
	}, you.UserID())
	byBot := func(room string) func(peer.Event) bool {
		return func(e peer.Event) bool { return e.Room == room && e.Sender == b.UserID() && e.Kind == peer.Message }
	}
	got := map[string]bool{}
	for range 2 {
		e := peertest.Next(t, you, byBot(busy))
		got[e.Body] = true
		away := strings.HasPrefix(e.Body, "I was offline from ")
		if away != e.Notice || away != strings.HasSuffix(e.Body, " and have not answered older messages. Ask again if it still matters.") {
			t.Errorf("got %+v", e)
		}
	}
	if !got["echo: **a recent question**"] {
		t.Errorf("got %v", got)
	}
	for _, room := range []string{chatty, busy} {
		mention(room, "are you there?")
		comes(t, you, byBot(room), "echo: **are you there?**")
	}
}

// With a fresh store the first sync brings the room state: the first message of the new device is
// encrypted for everybody. Earlier messages are old and not fetched.
// Holds F16.
func TestFreshStoreKnowsItsRooms(t *testing.T) {
	t.Parallel()
	s, you, friend, b, room := groupWithStranger(t, true, nil)
	for i := range 3 {
		sayTo(t, you, room, fmt.Sprint("old ", i), b.UserID())
		b.next()
	}
	b.stop()
	s.Fault(matrixtest.On("sync").By(b.UserID()), matrixtest.LimitTimelines(2))
	pages := s.Count("messages")
	b = startWith(t, b.server, t.TempDir(), echo, hurry, you.UserID())
	await(t, s, "no sync", func() bool { return b.Status(t.Context()).Rooms == 1 })
	expect.Equal(t, b.Status(t.Context()).Encrypted, 1, "encrypted rooms")
	b.says(room, chat.Outgoing{ID: "back", Text: "I am back"})
	for _, p := range []*peer.Peer{you, friend} {
		e := peertest.Next(t, p, func(e peer.Event) bool { return e.Room == room && e.Sender == b.UserID() && e.Kind != peer.Joined })
		if e.Body != "I am back" || !e.Encrypted {
			t.Errorf("%s sees %+v", p.UserID(), e)
		}
	}
	sayTo(t, you, room, "new", b.UserID())
	b.hears("new")
	expect.Equal(t, s.Count("messages")-pages, 0, "pages of old messages were fetched")
}

// Our clock is wrong or jumps between two runs, or the homeserver's is wrong: messages are answered.
// Holds F17.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                string
		before, after, away time.Duration // our clock in the first and the second run; the homeserver's
	}{
		{"ours is 2 h ahead", 2 * time.Hour, 2 * time.Hour, 0},
		{"ours is 2 h behind", -2 * time.Hour, -2 * time.Hour, 0},
		{"ours is set forward by 2 h", 0, 2 * time.Hour, 0},
		{"ours is set back by 2 h", 2 * time.Hour, 0, 0},
		{"the homeserver's is 2 h ahead", 0, 0, 2 * time.Hour},
		{"the homeserver's is 2 h behind", 0, 0, -2 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, server := fakeHomeserver(t)
			s.SetClock(c.away)
			you := person(t, s, "you")
			dir := t.TempDir()
			off := func(d time.Duration) func(*matrix.Config) {
				return func(cfg *matrix.Config) {
					cfg.Hurry()
					cfg.Clock(func() time.Time { return time.Now().Add(d) })
				}
			}
			b := startWith(t, server, dir, echo, off(c.before), you.UserID())
			room := metIn(t, s, you, b, true)
			echoes(t, you, room, "one")
			// An answer is refused for now and pending when the program ends.
			busy := s.Fault(matrixtest.On("send").By(b.UserID()), matrixtest.Limit(2*time.Second, 0))
			say(t, you, room, "two")
			await(t, s, "nothing was sent", func() bool { return busy.Hits() > 0 })
			b.stop()
			busy.Remove()
			s.Fault(matrixtest.On("sync").By(b.UserID()).Times(1), matrixtest.LimitTimelines(1))
			say(t, you, room, "three")
			say(t, you, room, "four")
			startWith(t, server, dir, echo, off(c.after), you.UserID())
			hears(t, you, room, "echo: **two**", "echo: **three**", "echo: **four**")
			echoes(t, you, room, "five")
		})
	}
}

// An event's timestamp decides neither whether nor when it is answered. An invalid one hides no other event.
// Holds F18.
func TestInvalidTimestamps(t *testing.T) {
	t.Parallel()
	odd := []string{
		"1", "0", "-5", "-9223372036854775808", "99999999999999", "9223372036854775807", "253402300800000", "null",
		`"1700000000000"`, `"yesterday"`, "1.5", "1e400", "[]", "{}", "true",
	}
	inject := func(t *testing.T, s *matrixtest.Server, room, sender, before string) {
		t.Helper()
		for i, ts := range odd {
			expect.Must(s.Inject(room, fmt.Sprintf(`{"event_id":"$odd-%d","sender":%q,"type":"m.room.message","origin_server_ts":%s,"content":{"msgtype":"m.text","body":"%s%d"}}`, i, sender, ts, before, i)))(t)
		}
	}
	// good are the events that the bot receives: those with an integer timestamp or none.
	const good = 8
	for name, gap := range map[string]bool{"in a sync": false, "in a gap": true} {
		t.Run(name, func(t *testing.T) {
			s, you, b, room := chatting(t, false, echo)
			say(t, you, room, "before")
			b.hears("before")
			b.stop()
			if gap {
				s.Fault(matrixtest.On("sync").By(b.UserID()), matrixtest.LimitTimelines(1))
			}
			s.Say(you.UserID(), room, "first")
			inject(t, s, room, you.UserID(), "odd ")
			s.Say(you.UserID(), room, "last")
			b = b.again(echo)
			want := []string{"first"}
			for i := range good {
				want = append(want, fmt.Sprint("odd ", i))
			}
			for _, text := range append(want, "last") {
				b.hears(text)
			}
		})
	}
}

// The same with a real homeserver, whose tokens have another form.
// Holds F14.
func TestGapIsFilledFromARealServer(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
	dir := t.TempDir()
	b := start(t, server, dir, echo, you.UserID())
	room := directChat(t, you, b)
	say(t, you, room, "before")
	b.next()
	peertest.Next(t, you, messageIn(room))
	b.stop()
	var want []string
	for i := range 130 { // a sync brings a hundred
		want = append(want, fmt.Sprint("number ", i))
		say(t, you, room, want[i])
	}
	b = start(t, server, dir, func(b *bot, in chat.Message) { b.done(in) }, you.UserID())
	var got []string
	for range want {
		got = append(got, b.next().Text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("heard %q", got)
	}
	expect.Equal(t, strings.Contains(b.log.String(), "a gap was filled"), true, "there was a gap")
}

// A gap is larger than the limit: the newest messages are answered.
// Holds F14.
func TestGapOverLimit(t *testing.T) {
	t.Parallel()
	quietly := func(b *bot, in chat.Message) { b.done(in) }
	s, you, b, room := chatting(t, false, quietly)
	s.Say(you.UserID(), room, "before")
	b.next()
	b.stop()
	s.Fault(matrixtest.On("sync").By(b.UserID()), matrixtest.LimitTimelines(2))
	const n = matrix.MaxGap + 100
	var want, got []string
	for i := range n {
		if id := s.Say(you.UserID(), room, fmt.Sprint("number ", i)); i >= n-2-matrix.MaxGap {
			want = append(want, id)
		}
	}
	b = b.again(quietly)
	for range want {
		got = append(got, b.next().ID)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("heard %d messages, among them others than the %d that were near", len(got), len(want))
	}
}

// omitFromSyncs omits all messages from the bot's syncs, as a homeserver may do that shuts down, until some
// syncs were stored.
func omitFromSyncs(t *testing.T, s *matrixtest.Server, bot string, do func()) {
	t.Helper()
	empty := inPlace(t, s, matrixtest.On("sync").By(bot), matrixtest.Timelines(func(string, []json.RawMessage) []json.RawMessage { return nil }))
	do()
	before := empty.Hits()
	await(t, s, "no more syncs", func() bool { return empty.Hits() >= before+2 })
	empty.Remove()
}

// A homeserver that shuts down returns a sync token past a message that it does not show. The bot
// fetches the message when the homeserver is back.
// Holds F14.
func TestOmittedBySync(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"the homeserver restarts", "the bot restarts"} {
		t.Run(c, func(t *testing.T) {
			s, you, b, room := chatting(t, true, echo)
			say(t, you, room, "before")
			b.next()
			omitFromSyncs(t, s, b.UserID(), func() { say(t, you, room, "left out") })
			if c == "the bot restarts" {
				b = b.again(echo)
			} else {
				s.Fault(matrixtest.On("sync").By(b.UserID()).Times(1), matrixtest.Status(http.StatusBadGateway, ""))
			}
			b.hears("left out")
			say(t, you, room, "after")
			b.hears("after")
		})
	}
}

// The omitted message is the bot's own, whose send had no response.
// Holds F14.
func TestEchoOmittedBySync(t *testing.T) {
	t.Parallel()
	for c, poll := range map[string]matrixtest.Fault{
		"before the bot ends": func(w http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(w, r) },
		"after it is back":    matrixtest.DelayAnswer(time.Minute),
	} {
		t.Run(c, func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, true, nil)
			say(t, you, room, "before")
			b.next()
			// Some homeservers show transaction IDs in syncs only.
			txn := regexp.MustCompile(`"transaction_id":"[^"]*"`)
			s.Fault(matrixtest.On("messages").By(b.UserID()), matrixtest.ChangeAnswer(func(a *httptest.ResponseRecorder, _ *http.Request) {
				bare := txn.ReplaceAll(a.Body.Bytes(), []byte(`"age":1`))
				a.Body.Reset()
				a.Body.Write(bare)
			}))
			var once peer.Event
			omitFromSyncs(t, s, b.UserID(), func() {
				s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), taken(s))
				again := s.Fault(matrixtest.On("send").By(b.UserID()).After(1), func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { hangUp(w) }) // the end comes before the next try
				polls := inPlace(t, s, matrixtest.On("sync").By(b.UserID()), poll)
				b.says(room, chat.Outgoing{ID: "once", Text: "once"})
				once = peertest.Next(t, you, messageIn(room))
				if c == "before the bot ends" {
					before := polls.Hits()
					await(t, s, "no more syncs", func() bool { return polls.Hits() >= before+2 })
				}
				b.stop()
				again.Remove()
				polls.Remove()
				b = startWith(t, b.server, b.dir, nil, hurry, you.UserID()) // its syncs leave it out as well
			})
			b.says(room, chat.Outgoing{ID: "then", Text: "then"})
			comes(t, you, func(e peer.Event) bool { return e.Room == room && e.Kind == peer.Message && e.ID != once.ID }, "then")
		})
	}
}
