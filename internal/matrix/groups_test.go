package matrix_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// quoted is what a message quotes for a reason, each as its sender's name and its words.
func quoted(in session.Inbound, why session.QuoteKind) (all []string) {
	for _, q := range in.Quotes {
		if q.Why == why {
			name, _, _ := strings.Cut(strings.TrimPrefix(q.Sender, "@"), ":")
			all = append(all, name+": "+q.Text)
		}
	}
	return all
}

func (b *bot) quotes(t *testing.T, why session.QuoteKind, want ...string) session.Inbound {
	t.Helper()
	in := b.next()
	if got := quoted(in, why); !slices.Equal(got, want) {
		t.Errorf("%q quotes %q, want %q", in.Text, got, want)
	}
	return in
}

// set is a setting of a room.
func (b *bot) set(t *testing.T, room, name, value string) {
	t.Helper()
	db := openDB(t, b.dir)
	defer db.Close()
	ok(t, session.Settings{DB: db}.Set(t.Context(), room, name, value, "@you:matrix.test", time.Now()))
}

// TestHeardInAGroup: what was said before comes along with a question, once, with who
// said it; what was taken back, changed, or was none of the room's talk does not.
// Holds M34, M65.
func TestHeardInAGroup(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypted %v", encrypted), func(t *testing.T) {
			s, you, other, b, room := party(t, encrypted, echo)
			say(t, other, room, "the lake is warm")
			regret := say(t, other, room, "my code is 4711")
			wrong := say(t, other, room, "we leave at nine")
			say(t, you, room, "who brings bread?")
			say(t, other, room, "!stop")
			ok(t, other.Edit(t.Context(), room, wrong, "we leave at ten"))
			ok(t, you.Edit(t.Context(), room, wrong, "we stay")) // who did not say it cannot change it
			s.Redact(other.UserID(), room, regret)
			sayTo(t, you, room, "what do you think?", b.UserID())
			in := b.quotes(t, session.QuoteHeard, "other: the lake is warm", "other: we leave at ten", "you: who brings bread?")
			if in.Private || in.Sender != you.UserID() || in.Quotes[0].Name != "other" || in.Quotes[0].At.IsZero() || in.Quotes[0].ID == "" {
				t.Errorf("heard %+v", in)
			}
			peertest.Next(t, you, spoken(room, b.UserID()))
			say(t, other, room, "fine")
			await(t, s, "the line is not read", func() bool { return b.holds(t, `SELECT count(*) FROM heard WHERE given = 0`) == 1 })
			if n := b.holds(t, `SELECT count(*) FROM heard WHERE given = 1 AND text <> ''`); n != 0 {
				t.Errorf("%d lines are kept longer than needed", n)
			}
			b.stop()
			say(t, other, room, "and sunny")
			b = b.again(echo)
			sayTo(t, you, room, "!status", b.UserID())
			b.quotes(t, session.QuoteHeard)
			sayTo(t, you, room, "and now?", b.UserID())
			b.quotes(t, session.QuoteHeard, "other: fine", "other: and sunny")
			sayTo(t, you, room, "and then?", b.UserID())
			b.quotes(t, session.QuoteHeard)
			b.set(t, room, session.SettingListen, "off")
			say(t, other, room, "secretly")
			sayTo(t, you, room, "what was it?", b.UserID())
			b.quotes(t, session.QuoteHeard)
			if strings.Contains(b.log.String(), "4711") || strings.Contains(b.log.String(), "sunny") {
				t.Error("the log shows what was said")
			}
		})
	}
}

// holds is a number of the bot's database.
func (b *bot) holds(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	db := openDB(t, b.dir)
	defer db.Close()
	ok(t, db.QueryRowContext(t.Context(), query, args...).Scan(&n))
	return n
}

// TestHeardIsBounded: only the newest lines come along; what waits as a quote goes with
// its message, and a room that is left is forgotten.
func TestHeardIsBounded(t *testing.T) {
	t.Parallel()
	s, you, other, b, room := party(t, false, nil)
	ask := func(text string) string {
		return s.Post(you.UserID(), room, "m.room.message", content{"msgtype": "m.text", "body": text, "m.mentions": content{"user_ids": []string{b.UserID()}}})
	}
	var lines []string
	last := ""
	for i := range 50 {
		lines = append(lines, fmt.Sprintf("other: line %d", i))
		last = s.Say(other.UserID(), room, fmt.Sprintf("line %d", i))
	}
	await(t, s, "the lines are not read", func() bool { return b.holds(t, `SELECT count(*) FROM heard WHERE event = ?`, last) == 1 })
	if n := b.holds(t, `SELECT count(*) FROM heard`); n != 20 {
		t.Errorf("%d lines are kept", n)
	}
	ask("and?")
	b.quotes(t, session.QuoteHeard, lines[30:]...)
	for range 6 {
		last = s.Say(other.UserID(), room, strings.Repeat("ä", 2_000))
	}
	ask("and?")
	if got := quoted(b.next(), session.QuoteHeard); len(got) != 3 || len([]rune(got[0])) > 1_020 {
		t.Errorf("%d long lines", len(got))
	}
	s.Redact(other.UserID(), room, last)
	await(t, s, "a quote outlives its message", func() bool { return b.holds(t, `SELECT count(*) FROM inbox WHERE instr(brought, ?)`, last) == 0 })
	if n := b.holds(t, `SELECT count(*) FROM inbox WHERE instr(brought, 'ääää')`); n != 1 {
		t.Errorf("%d messages have quotes", n)
	}
	s.Say(other.UserID(), room, "bye")
	await(t, s, "not heard", func() bool { return b.holds(t, `SELECT count(*) FROM heard WHERE text = 'bye'`) == 1 })
	s.SetState(you.UserID(), room, "m.room.member", b.UserID(), content{"membership": "leave"})
	await(t, s, "what was heard stays", func() bool { return b.holds(t, `SELECT count(*) FROM heard`) == 0 })
}

// TestReplyChain: a message brings what it replies to, as far back as six messages, and
// nothing of another room.
// Holds F39, M29.
func TestReplyChain(t *testing.T) {
	t.Parallel()
	s, you, other, b, room := party(t, false, echo)
	b.set(t, room, session.SettingListen, "off")
	private := chat(t, s, you, b, false)
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
	b.quotes(t, session.QuoteReply, "you: number 2", "other: number 3", "you: number 4", "other: number 5", "you: number 6", "other: number 7")
	first := answer()
	post(you, "go on", first)
	b.quotes(t, session.QuoteReply)
	answer()
	post(you, "no, about that", first) // an older answer of ours, and what it answered
	in := b.quotes(t, session.QuoteReply, "you: number 4", "other: number 5", "you: number 6", "other: number 7", "you: what of it?", "reverie: echo: **what of it?**")
	if len(in.Quotes) > 0 && in.Quotes[5].ID != first {
		t.Errorf("quotes %+v", in.Quotes)
	}
	answer()
	long := post(other, strings.Repeat("word ", 1_000), "")
	for range 4 {
		long = post(other, strings.Repeat("word ", 1_000), long)
	}
	post(you, "too long?", long, at)
	if got := quoted(b.next(), session.QuoteReply); len(got) != 3 || len(got[2]) > 1_520 {
		t.Errorf("%d long quotes", len(got))
	}
	answer()
	gone := post(other, "I regret this", "")
	upon := post(you, "upon it", gone)
	s.Redact(other.UserID(), room, gone)
	post(you, "and?", upon, at)
	b.quotes(t, session.QuoteReply, "you: upon it")
	answer()
	const hidden = ": (this message is not there, or not for you to see)"
	for _, to := range []string{"$nowhere", secret} {
		post(you, "to what?", to, at)
		b.quotes(t, session.QuoteReply, hidden)
		answer()
	}
	picture := post(other, "cat.png", "", content{"msgtype": "m.image", "body": "cat.png"})
	post(you, "nice?", picture, at)
	b.quotes(t, session.QuoteReply, "other: (image) cat.png")
	answer()
}

// TestReplyChainIsFetchedAside: where it takes long, that room waits, in order, and no
// other; after a restart it is fetched anew, and when it is not to be had the message is
// answered without it.
func TestReplyChainIsFetchedAside(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	slow, quick := chat(t, s, you, b, false), chat(t, s, you, b, false)
	b.knows(slow)
	b.knows(quick)
	first := s.Say(you.UserID(), slow, "first")
	b.quotes(t, session.QuoteReply)
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
	if in := b.quotes(t, session.QuoteReply, "you: first"); in.Text != "about that" {
		t.Errorf("heard %+v", in)
	}
	b.hears("and after it")
	s.Fault(matrixtest.On("event").By(b.UserID()), matrixtest.Changed(func(a *httptest.ResponseRecorder, _ *http.Request) {
		a.Body.Reset()
		a.Body.WriteString(`{"event_id":["x"]}`)
	}))
	reply("and of this?")
	b.quotes(t, session.QuoteReply, ": (this message cannot be read)")
}

// TestOpenGroup: where it is set so, everything that an allowed person says is for the
// bot; and a person may say that a room is a direct chat, or none.
// Holds M64.
func TestOpenGroup(t *testing.T) {
	t.Parallel()
	s, you, other, b, room := party(t, false, echo)
	b.set(t, room, session.SettingMention, "off")
	s.Say(other.UserID(), room, "I may not")
	s.Say(you.UserID(), room, "I may")
	if in := b.quotes(t, session.QuoteHeard, "other: I may not"); in.Text != "I may" || in.Private {
		t.Errorf("heard %+v", in)
	}
	two := group(t, s, you, b)
	b.knows(two)
	s.Say(you.UserID(), two, "are we alone?") // nobody said that this is a direct chat
	b.onlyHears(s, you.UserID(), two, "now?")
	b.set(t, two, session.SettingDirect, "on")
	s.Say(you.UserID(), two, "we are alone")
	if in := b.next(); in.Text != "we are alone" || !in.Private {
		t.Errorf("heard %+v", in)
	}
	b.set(t, room, session.SettingDirect, "on")
	s.Say(you.UserID(), room, "not here")
	if in := b.next(); in.Text != "not here" || in.Private {
		t.Errorf("three are alone: %+v", in)
	}
	direct := chat(t, s, you, b, false)
	b.knows(direct)
	b.set(t, direct, session.SettingDirect, "off")
	s.Say(you.UserID(), direct, "hello?")
	b.onlyHears(s, you.UserID(), direct, "hello!")
}
