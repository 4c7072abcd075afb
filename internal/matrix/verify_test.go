package matrix_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/matrix/doctor"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// verifiable is a person whose client can verify.
func verifiable(t *testing.T, server *homeserver.Server, localpart string) *peer.Peer {
	t.Helper()
	const password = "a long enough password"
	user := expect.Must(server.Register(t.Context(), localpart, password))(t)
	p := expect.Must(peer.Login(t.Context(), peer.Config{Homeserver: server.URL, User: user, Password: password, DB: filepath.Join(t.TempDir(), localpart+".db")}))(t)
	expect.OK(t, p.EnableVerification(t.Context(), password))
	peertest.Run(t, p)
	return p
}

// commanded answers !verify like the session, and echoes other messages.
func commanded(b *bot, in chat.Message) {
	args, ok := strings.CutPrefix(in.Text, "!verify")
	if !ok {
		echo(b, in)
		return
	}
	ctx := context.Background()
	text, err := b.RunVerifyCommand(ctx, in.Sender, in.Room, args)
	if err != nil {
		b.t.Error(err)
		return
	}
	if err := b.Send(ctx, in.Room, chat.Outgoing{ID: "re-" + in.ID, Text: text, Notice: true, ReplyTo: in.ID}); err != nil {
		b.t.Error(err)
	}
	if err := b.Ack(ctx, in.ID); err != nil {
		b.t.Error(err)
	}
}

func stage(t *testing.T, p *peer.Peer, want peer.Stage) peer.Verification {
	t.Helper()
	select {
	case v := <-p.Verifications():
		if v.Stage != want {
			t.Fatalf("%s: %+v, want %s", p.UserID(), v, want)
		}
		return v
	case <-time.After(peertest.Patience):
		t.Fatalf("%s: no %s", p.UserID(), want)
		panic("unreachable")
	}
}

// notice waits for the bot's next notice in the room with these words.
func notice(t *testing.T, p *peer.Peer, room, words string) string {
	t.Helper()
	return peertest.Next(t, p, func(e peer.Event) bool {
		return e.Room == room && e.Kind == peer.Message && e.Notice && strings.Contains(e.Body, words)
	}).Body
}

func trusts(t *testing.T, you *peer.Peer, b *bot, want bool) {
	t.Helper()
	expect.Equal(t, expect.Must(you.Trusts(t.Context(), b.UserID()))(t), want, "the person trusts the bot")
	expect.Equal(t, expect.Must(b.Trusts(t.Context(), you.UserID()))(t), want, "the bot trusts the person")
}

var yesCode = regexp.MustCompile("`(!verify yes [a-z2-7]{4})`")

// sameEmoji checks that both sides show the same emoji. It returns the answer that confirms them.
func sameEmoji(t *testing.T, you *peer.Peer, room string) (yes string) {
	t.Helper()
	emoji := stage(t, you, peer.Emoji).Emoji
	if len(emoji) != 7 {
		t.Fatalf("the person sees %v", emoji)
	}
	shown := notice(t, you, room, "I see these emoji")
	for _, e := range emoji {
		_, after, ok := strings.Cut(shown, e)
		if !ok {
			t.Fatalf("the person sees %v, the bot says %q", emoji, shown)
		}
		shown = after
	}
	m := yesCode.FindStringSubmatch(shown)
	if m == nil {
		t.Fatalf("no code in %q", shown)
	}
	return m[1]
}

func TestVerification(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		begin  func(t *testing.T, you *peer.Peer, b *bot, room string)
		inRoom bool
		second bool // the person's client confirms after the bot was told
	}{
		{"to-device", func(t *testing.T, you *peer.Peer, b *bot, _ string) {
			txn := expect.Must(you.VerifyUser(t.Context(), b.UserID()))(t)
			stage(t, you, peer.Ready)
			expect.OK(t, you.CompareEmoji(t.Context(), txn))
		}, false, false},
		{"in the room", func(t *testing.T, you *peer.Peer, b *bot, room string) {
			txn := expect.Must(you.VerifyInRoom(t.Context(), room, b.UserID()))(t)
			stage(t, you, peer.Ready)
			expect.OK(t, you.CompareEmoji(t.Context(), txn))
		}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := homeservertest.Start(t)
			register(t, server)
			you := verifiable(t, server, "you")
			dir := t.TempDir()
			b := start(t, server, dir, commanded, you.UserID())
			room := directChat(t, you, b)
			say(t, you, room, "!verify")
			if text := notice(t, you, room, "fingerprint"); !strings.Contains(text, "not verified yet") {
				t.Errorf("before: %q", text)
			}
			b.stop()
			// The signing keys survive a restart, also if recovery.key was moved away.
			expect.OK(t, os.Remove(filepath.Join(dir, "matrix", "recovery.key")))
			b = start(t, server, dir, commanded, you.UserID())
			say(t, you, room, "!verify yes")
			notice(t, you, room, "No verification is in progress")
			c.begin(t, you, b, room)
			yes := sameEmoji(t, you, room)
			trusts(t, you, b, false)
			txn := b.Verifications()[0]
			confirm := []func(){
				func() { expect.OK(t, you.ConfirmEmoji(t.Context(), txn)) },
				func() { say(t, you, room, yes); notice(t, you, room, "Thank you") },
			}
			if c.second {
				slices.Reverse(confirm)
			}
			confirm[0]()
			say(t, you, room, "meanwhile") // what was sent before has arrived when this is answered
			peertest.Next(t, you, func(e peer.Event) bool { return e.Body == "echo: **meanwhile**" })
			trusts(t, you, b, false) // not by one side alone
			confirm[1]()
			stage(t, you, peer.Done)
			notice(t, you, room, "Verified")
			trusts(t, you, b, true)
			expect.Equal(t, len(b.Verifications()), 0, "still open")
			if types := onServer(t, you, room, "m.sas.v1"); c.inRoom == (types["m.room.encrypted"] < 16) || types["m.room.message"] > 0 {
				t.Errorf("events on the server: %v", types)
			}
			say(t, you, room, "!verify")
			if text := notice(t, you, room, "fingerprint"); !strings.Contains(text, "You are already verified") {
				t.Errorf("after: %q", text)
			}
		})
	}
}

// The emoji differ: the verification is cancelled on both sides without trust, even if the person's client has confirmed.
func TestVerificationWithWrongEmoji(t *testing.T) {
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	you, friend := verifiable(t, server, "you"), peertest.Start(t, server, "friend")
	b := start(t, server, t.TempDir(), commanded, you.UserID(), friend.UserID())
	room, theirs := directChat(t, you, b), directChat(t, friend, b)
	txn := expect.Must(you.VerifyInRoom(t.Context(), room, b.UserID()))(t)
	stage(t, you, peer.Ready)
	expect.OK(t, you.CompareEmoji(t.Context(), txn))
	sameEmoji(t, you, room)
	expect.OK(t, you.ConfirmEmoji(t.Context(), txn))
	// Another user's answer has no effect.
	for _, word := range []string{"yes", "no"} {
		say(t, friend, theirs, "!verify "+word)
		notice(t, friend, theirs, "No verification is in progress")
	}
	if open := b.Verifications(); len(open) != 1 {
		t.Fatalf("open: %v", open)
	}
	say(t, you, room, "!verify no")
	notice(t, you, room, "do not match")
	expect.Equal(t, stage(t, you, peer.Cancelled).Code, "m.mismatched_sas", "cancelled")
	expect.Equal(t, len(b.Verifications()), 0, "still open")
	say(t, you, room, "!verify yes")
	notice(t, you, room, "No verification is in progress")
	trusts(t, you, b, false)
}

// Strangers get no answer and cannot affect others' verifications.
func TestVerificationByStrangers(t *testing.T) {
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	you, stranger, friend := verifiable(t, server, "you"), verifiable(t, server, "stranger"), peertest.Start(t, server, "friend")
	b := start(t, server, t.TempDir(), commanded, you.UserID(), friend.UserID())
	room := directChat(t, you, b)
	group := create(t, you, peer.Room{Name: "shared", Encrypted: true, Invite: []string{b.UserID(), stranger.UserID(), friend.UserID()}})
	expect.OK(t, stranger.Join(t.Context(), group))
	expect.OK(t, friend.Join(t.Context(), group))
	joined(t, you, group, b.UserID())
	expect.Must(stranger.VerifyUser(t.Context(), b.UserID()))(t)
	expect.Must(stranger.VerifyInRoom(t.Context(), group, b.UserID()))(t)
	// The person's own verification, in a room with the stranger. It starts after the stranger's events, so those were processed.
	txn := expect.Must(you.VerifyInRoom(t.Context(), group, b.UserID()))(t)
	stage(t, you, peer.Ready)
	if open := b.Verifications(); len(open) != 1 || open[0] != txn {
		t.Errorf("open: %v, want %s alone", open, txn)
	}
	expect.OK(t, stranger.SendCancel(t.Context(), group, txn))
	expect.OK(t, friend.SendCancel(t.Context(), group, txn)) // may talk to the bot, but not for somebody else
	expect.OK(t, you.CompareEmoji(t.Context(), txn))
	yes := sameEmoji(t, you, room) // shown in the direct chat, not in the group
	expect.OK(t, you.ConfirmEmoji(t.Context(), txn))
	say(t, you, room, yes)
	stage(t, you, peer.Done)
	notice(t, you, room, "Verified")
	trusts(t, you, b, true)
	expect.Equal(t, len(stranger.Verifications()), 0, "answers to the stranger")
	expect.Equal(t, expect.Must(b.Trusts(t.Context(), stranger.UserID()))(t), false, "the bot trusts the stranger")
}

// A confirmation counts for the verification whose emoji the person saw: each verification has its own code.
func TestVerificationCode(t *testing.T) {
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	you := verifiable(t, server, "you")
	b := start(t, server, t.TempDir(), commanded, you.UserID())
	room := directChat(t, you, b)
	begin := func() string {
		txn := expect.Must(you.VerifyUser(t.Context(), b.UserID()))(t)
		peerStage(t, you, txn, peer.Ready)
		expect.OK(t, you.CompareEmoji(t.Context(), txn))
		return txn
	}
	begin()
	old := sameEmoji(t, you, room)
	txn := begin()
	yes := sameEmoji(t, you, room)
	if old == yes {
		t.Fatalf("both verifications have the code %q", old)
	}
	expect.OK(t, you.ConfirmEmoji(t.Context(), txn))
	for _, wrong := range []string{old, "!verify yes", "!verify yes " + strings.Repeat("a", 40)} {
		say(t, you, room, wrong)
		notice(t, you, room, "Nothing was confirmed")
	}
	trusts(t, you, b, false)
	say(t, you, room, "!verify "+strings.ToUpper(strings.TrimPrefix(yes, "!verify ")))
	peerStage(t, you, txn, peer.Done)
	notice(t, you, room, "Verified")
	trusts(t, you, b, true)
}

// peerStage waits until a verification of the person reaches a stage.
func peerStage(t *testing.T, p *peer.Peer, txn string, want peer.Stage) {
	t.Helper()
	for {
		select {
		case v := <-p.Verifications():
			if v.ID == txn && v.Stage == want {
				return
			}
		case <-time.After(peertest.Patience):
			t.Fatalf("%s: no %s", p.UserID(), want)
		}
	}
}

// verificationRequest is a client's verification request to the bot in a room.
func verificationRequest(bot, body string) map[string]any {
	return map[string]any{
		"msgtype": "m.key.verification.request", "body": body, "to": bot, "from_device": "PHONE", "methods": []string{"m.sas.v1"},
	}
}

// inboxRows returns the IDs of all rows of the inbox, with their state.
func inboxRows(t *testing.T, db *store.DB) map[string]string {
	t.Helper()
	rows := expect.Must(db.QueryContext(t.Context(), `SELECT id, state || ' ' || text FROM inbox`))(t)
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var id, what string
		expect.OK(t, rows.Scan(&id, &what))
		all[id] = what
	}
	expect.OK(t, rows.Err())
	return all
}

// In an encrypted room, verification events are accepted unencrypted, as other clients send them. No other
// event is, even a similar one.
func TestPlainEventsInAnEncryptedRoom(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, commanded)
	first := say(t, you, room, "encrypted")
	b.next()
	peertest.Next(t, you, messageIn(room))
	answer := b.sentTo(t, s, room)
	text := func(body string) map[string]any {
		return map[string]any{"msgtype": "m.text", "body": body, "m.mentions": map[string]any{"user_ids": []string{b.UserID()}}}
	}
	with := func(content map[string]any, key string, value any) map[string]any {
		content[key] = value
		return content
	}
	plain := map[string]string{}
	for _, e := range []struct {
		what, kind string
		content    map[string]any
	}{
		{"a message", "m.room.message", text("hello")},
		{"a command", "m.room.message", text("!verify")},
		{"a reply", "m.room.message", with(text("and?"), "m.relates_to", map[string]any{"m.in_reply_to": map[string]any{"event_id": answer}})},
		{"a request to verify that is a command", "m.room.message", verificationRequest("@somebody:else", "!verify")},
		{"a request to verify with a formatted text", "m.room.message", with(with(verificationRequest("@somebody:else", "!new"), "format", "org.matrix.custom.html"), "formatted_body", "!new")},
		{"an edit of an encrypted message", "m.room.message", with(with(text("* !new"), "m.new_content", text("!new")), "m.relates_to", map[string]any{"rel_type": "m.replace", "event_id": first})},
		{"an emote", "m.room.message", with(text("!new"), "msgtype", "m.emote")},
		{"a notice", "m.room.message", with(text("!new"), "msgtype", "m.notice")},
		{"a message without a type", "m.room.message", with(text("!new"), "msgtype", "")},
		{"a reaction", "m.reaction", map[string]any{"m.relates_to": map[string]any{"rel_type": "m.annotation", "event_id": answer, "key": "!new"}}},
		{"a sticker", "m.sticker", map[string]any{"body": "!new", "url": "mxc://a/b", "info": map[string]any{}}},
		{"a sticker that says that it is a text", "m.sticker", text("!new")},
		{"a step of a verification with a text", "m.key.verification.start", with(text("!new"), "m.relates_to", map[string]any{"rel_type": "m.reference", "event_id": first})},
		{"a step of a verification that nobody asked for", "m.key.verification.mac", with(text("!new"), "mac", map[string]any{"ed25519:X": "x"})},
	} {
		plain[s.Post(you.UserID(), room, e.kind, e.content)] = e.what
	}
	last := say(t, you, room, "encrypted, too")
	b.gets(last)
	hears(t, you, room, "echo: **encrypted, too**")
	db := openDB(t, b.dir)
	all := inboxRows(t, db)
	for id, what := range plain {
		if row, there := all[id]; there {
			t.Errorf("%s was taken: %q", what, row)
		}
	}
	expect.Equal(t, len(all), 2, "messages were taken: %v", all)
	expect.Equal(t, len(b.Verifications()), 0, "verifications")
}

// sentTo returns the bot's first event in a room.
func (b *bot) sentTo(t *testing.T, s *matrixtest.Server, room string) string {
	t.Helper()
	for _, sent := range s.Sends() {
		if sent.Room == room && sent.User == b.UserID() {
			return sent.EventID
		}
	}
	t.Fatal("the bot has sent nothing")
	return ""
}

// An unencrypted verification request works like an encrypted one: allowed users have to compare the emoji,
// and other users are ignored.
func TestPlainVerificationRequest(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, commanded)
	stranger := s.Account("stranger", "a long enough password")
	room := metIn(t, s, you, b, true)
	group := roomWith(t, s, you, b, matrixtest.NewRoom{Encrypted: true, Join: []string{stranger}})
	// The allowed person's request is last: once it is open, the others were processed.
	s.Post(stranger, group, "m.room.message", verificationRequest(b.UserID(), "!verify yes"))
	s.Post(you.UserID(), group, "m.room.message", verificationRequest("@somebody:else", "!verify yes"))
	asked := s.Post(you.UserID(), group, "m.room.message", verificationRequest(b.UserID(), "!verify yes"))
	opened(t, b, asked)
	reference := map[string]any{"rel_type": "m.reference", "event_id": asked}
	say(t, you, room, "!verify yes")
	notice(t, you, room, "The emoji are not there yet")
	for _, step := range []map[string]any{
		{"type": "m.key.verification.mac", "mac": map[string]any{"ed25519:PHONE": "x"}, "keys": "x"},
		{"type": "m.key.verification.done"},
	} {
		kind := step["type"].(string)
		delete(step, "type")
		step["m.relates_to"] = reference
		s.Post(stranger, group, kind, step)
		s.Post(you.UserID(), group, kind, step)
	}
	say(t, you, room, "!verify")
	notice(t, you, room, "You are not verified yet")
	for _, who := range []string{you.UserID(), stranger} {
		expect.Equal(t, expect.Must(b.Trusts(t.Context(), who))(t), false, "the bot trusts %s", who)
	}
	for _, sent := range s.Sends() {
		if sent.User == b.UserID() && sent.Room == group && sent.Type != "m.room.encrypted" {
			t.Errorf("said in the clear: %s", sent.Content)
		}
	}
	db := openDB(t, b.dir)
	if all := inboxRows(t, db); len(all) != 2 { // what was said encrypted
		t.Errorf("taken in: %v", all)
	}
}

// opened waits until txn is the only open verification.
func opened(t *testing.T, b *bot, txn string) {
	t.Helper()
	b.becomes("the verification was not opened", func(doctor.Status) bool { return len(b.Verifications()) > 0 })
	if open := b.Verifications(); len(open) != 1 || open[0] != txn {
		t.Fatalf("open: %v, want %s alone", open, txn)
	}
}
