package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// sayIn says text in a thread.
func (r *running) sayIn(user, room, root, text string) string {
	return r.s.Post(user, room, "m.room.message", map[string]any{"msgtype": "m.text", "body": text,
		"m.relates_to": map[string]any{"rel_type": "m.thread", "event_id": root, "is_falling_back": true, "m.in_reply_to": map[string]any{"event_id": root}}})
}

// With all answers in threads, an edit, a redaction and a reaction find theirs: the answer is
// replaced, deleted or stopped. An older answer is not replaced.
// Holds M4, M12, M17.
func TestChangesInThreads(t *testing.T) {
	r, m, room := alwaysThreads(t)
	r.s.Account("stranger", "a long password")
	root := r.s.Say(you, room, "tell me of #apple")
	was := r.settles(room, "answer 1 to #apple")
	r.edit(you, room, root, "tell me of #plum")
	now := r.settles(room, "answer 2 to #plum")
	if now[0].id != was[0].id || r.threadsOf(room, "#apple")["#apple"] != root {
		t.Errorf("%v became %v, in the threads %v of %s", was, now, r.threadsOf(room, "#apple"), root)
	}
	fig := r.sayIn(you, room, root, "and of #fig")
	r.settles(room, "#plum", "answer 3 to #fig")
	slow := r.sayIn(you, room, root, "slow #kiwi")
	draft := r.showing(room, "#plum", "#fig", "answer 4 to #kiwi")
	r.react(friend, room, draft[2].id, "❌") // may talk to the bot, but did not ask, and owns nothing
	r.react("@stranger:matrix.test", room, draft[2].id, "❌")
	r.react("@stranger:matrix.test", room, was[0].id, "🔁")
	r.react(you, room, draft[2].id, "❌")
	r.until("the request is not given up", func() bool { return m.givenUp() == 1 })
	r.settles(room, "#plum", "#fig", "I stopped working on this")
	m.made(t, 4)
	r.react(you, room, was[0].id, "🔁") // not the newest
	r.settles(room, "answer 2 to #plum", "answer 3 to #fig", "I stopped", "the answer to your last question")
	r.redact(you, room, fig)
	r.redact(you, room, slow)
	r.showing(room, "answer 2 to #plum", "the answer to your last question")
	r.redact(you, room, root)
	r.settles(room, "the answer to your last question")
	r.forgot("#apple", "#plum", "#fig", "#kiwi")
	m.made(t, 4)
}

// An answer of a beginning and a file is one: an action on either applies to both, and both go with the question.
// Holds M6, M11, M12.
func TestPartsOfAnAnswer(t *testing.T) {
	r, m := withEditing(t)
	r.configure("window: 16000", "window: 131072, max_output: 40000")
	room := r.direct()
	asked := r.s.Say(you, room, "huge #apple")
	was := r.settles(room, "answer 1 to #apple", "answer.md")
	r.react(you, room, was[1].id, "🔁")
	again := r.settles(room, "answer 2 to #apple", "answer.md")
	if again[0].id != was[0].id || again[1].id == was[1].id {
		t.Errorf("%s with the file %s became %s with %s", was[0].id, was[1].id, again[0].id, again[1].id)
	}
	r.edit(you, room, asked, "slow huge #plum")
	r.until("not asked", func() bool { return m.calls() == 3 })
	r.react(you, room, again[1].id, "🛑")
	r.until("the request is not given up", func() bool { return m.givenUp() == 1 })
	r.settled()
	r.redact(you, room, asked)
	r.settles(room)
	r.forgot("#apple", "#plum")
	m.made(t, 3)

	r.s.Say(you, room, "huge #kiwi") // the file is taken out of the room by somebody else: the answer goes as a whole
	was = r.settles(room, "answer 4 to #kiwi", "answer.md")
	r.s.Redact(you, room, was[1].id)
	r.showing(room)
	r.s.Say(you, room, "and #melon")
	r.showing(room, "answer 5 to #melon")
	m.assertSent(t, "huge #kiwi")
	m.assertNotSent(t, "answer 4")
}

// A file sent for an answer goes with a redacted question and stays after its edit. Redacting only
// the file keeps the answer.
// Holds M6.
func TestSentFileGoesWithItsQuestion(t *testing.T) {
	r, m := withEditing(t)
	r.configure("window: 16000", "window: 32000")
	room := r.direct()
	asked := r.s.Say(you, room, "attach #apple")
	was := r.settles(room, "see #apple", "answer 2 to #apple")
	r.edit(you, room, asked, "and #plum")
	now := r.settles(room, "see #apple", "answer 3 to #plum")
	if now[0].id != was[0].id || now[1].id != was[1].id {
		t.Errorf("%v became %v", was, now)
	}
	r.redact(you, room, asked)
	r.settles(room)
	r.forgot("#apple")
	m.made(t, 3)
	r.s.Say(you, room, "attach #fig")
	both := r.settles(room, "see #fig", "answer 5 to #fig")
	r.s.Redact(you, room, both[0].id)
	r.showing(room, "answer 5 to #fig")
	r.s.Say(you, room, "and #kiwi")
	r.showing(room, "answer 5", "to #kiwi")
	m.assertSent(t, "answer 5 to #fig")
}

// After a stopped answer, a redacted later question does not restart it; asking for it does.
// Holds M9.
func TestStoppedNotResumed(t *testing.T) {
	r, m := withEditing(t)
	room := r.direct()
	slow := r.s.Say(you, room, "slow #apple")
	r.showing(room, "answer 1 to #apple")
	r.react(you, room, slow, "❌")
	r.settles(room, "I stopped working on this")
	asked := r.s.Say(you, room, "tell me of #fig")
	r.settles(room, "I stopped", "answer 2 to #fig")
	r.redact(you, room, asked)
	r.settles(room, "I stopped")
	if m.calls() != 2 || m.givenUp() != 1 {
		t.Errorf("%d requests, %d given up", m.calls(), m.givenUp())
	}
	close(m.release)
	r.s.Say(you, room, "!retry")
	r.settles(room, "I stopped", "answer 3 to #apple")
	r.redact(you, room, slow)
	r.showing(room)
}

// The bot is kicked or banned while it answers: the request ends at once, nothing more is said
// there, and other rooms are answered.
// Holds M55.
func TestKickedWhileAnswering(t *testing.T) {
	r, m := withEditing(t)
	other := r.direct()
	for i, membership := range []string{"leave", "ban"} {
		room := r.meetDirect()
		r.s.Say(you, room, "slow #apple")
		r.showing(room, "to #apple")
		said := r.said(room)
		r.s.SetState(you, room, "m.room.member", itself, map[string]any{"membership": membership})
		r.until("the request is not given up", func() bool { return m.givenUp() == i+1 })
		r.settled()
		if now := r.said(room); now != said {
			t.Errorf("%s: %d messages more are said", membership, now-said)
		}
	}
	r.s.Say(you, other, "and #fig")
	r.showing(other, "answer 3 to #fig")
}

// ask sends text as you in a group and returns the bot's reply.
func (r *running) ask(room, text string) string {
	r.t.Helper()
	before := r.said(room)
	r.s.Post(you, room, "m.room.message", map[string]any{"msgtype": "m.text", "body": text, "m.mentions": map[string]any{"user_ids": []string{itself}}})
	r.await("no answer to "+text, func() bool { return r.said(room) > before })
	var content struct {
		Body string `json:"body"`
	}
	for _, send := range r.s.Sends() {
		if send.User == itself && send.Room == room {
			expect.OK(r.t, json.Unmarshal(send.Content, &content))
		}
	}
	return content.Body
}

// tells asks in a group and checks that the answer has want and lacks without; "" = any.
func (r *running) tells(room, text, want, without string) {
	r.t.Helper()
	if got := r.ask(room, text); !strings.Contains(got, want) || without != "" && strings.Contains(got, without) {
		r.t.Errorf("%s is answered %q; want %q, and not %q", text, got, want, without)
	}
}

// Room IDs have no server since version 12; no code depends on one.
// Holds M57.
func TestRoomWithoutAServerInItsID(t *testing.T) {
	const room = "!31hneApxJ_1o-63DmFrpeqnkFfWppnzWso1JvH3ogLM"
	r := withHomeserver(t)
	stop := r.start()
	r.s.Room(you, matrixtest.NewRoom{ID: room, Invite: []string{itself}, Join: []string{"@friend:matrix.test"}})
	r.await("the invitation is not accepted", func() bool { return r.s.Membership(room, itself) == "join" })
	for _, c := range []struct{ say, want string }{
		{"hello", ""},
		{"!remember Jana lives in Brno", "Brno"},
		{"remind me to water the plants", ""},
		{"!tasks", "ater the plants"},
		{"!memory", "memories/rooms/"},
		{"!config threads off", "`off`"},
		{"!config", "| threads | off | " + you},
		{"!whoami", "a room with other people"},
	} {
		r.tells(room, c.say, c.want, "")
	}
	other := r.enters(you, matrixtest.NewRoom{Join: []string{"@friend:matrix.test"}})
	r.tells(other, "!memory", "", "Brno")
	stop()
	run := func(args ...string) string {
		t.Helper()
		code, text := runBot(t, "", append(args, "--config", r.args[2])...)
		expect.Equal(t, code, 0, "%s: exit\n%s", args, text)
		return text
	}
	if got := run("memory", "list", "--scope", "room:"+room); !strings.Contains(got, "Brno") {
		t.Errorf("the list reads %q", got)
	}
	if got := run("memory", "list", "--scope", "room:"+room+"x"); strings.Contains(got, "Brno") {
		t.Errorf("the list of another room reads %q", got)
	}
	if got := run("task", "list"); !strings.Contains(got, "ater the plants") {
		t.Errorf("the tasks read %q", got)
	}
	files, err := filepath.Glob(filepath.Join(r.dir, "data", "memories", "rooms", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file of the room: %v", err)
	}
	if !slices.ContainsFunc(files, func(f string) bool { return strings.Contains(readFile(t, f), "Brno") }) {
		t.Errorf("it stands in none of %q", files)
	}
}

// threadsOf returns the thread of the bot's newest message about each word.
func (r *running) threadsOf(room string, words ...string) map[string]string {
	in := map[string]string{}
	for _, e := range r.own(room) {
		if e.Content.Relates.Type == "m.replace" {
			continue
		}
		for _, w := range words {
			if strings.Contains(e.Content.Body, w) {
				in[w] = e.Content.Relates.Event
			}
		}
	}
	return in
}

// alwaysThreads is a direct chat with all answers in threads.
func alwaysThreads(t *testing.T) (*running, *echoing, string) {
	t.Helper()
	r, m := withEditing(t)
	room := r.direct()
	db := expect.Must(store.Open(t.Context(), filepath.Join(r.dir, "data", "bot.db"), reverie.Migrations))(t)
	defer db.Close()
	expect.OK(t, (settings.Store{DB: db}).Put(t.Context(), room, settings.Threads, "always", you, time.Now()))
	return r, m, room
}

// moves sends a tombstone into room that names another one.
func (r *running) moves(by, room, to string) string {
	return r.s.SetState(by, room, "m.room.tombstone", "", map[string]any{"replacement_room": to, "body": "x"})
}

// TestTombstoneMakesNoRoomDirect: a tombstone in a guest's own direct chat that names your
// group does not make that group a direct chat.
// Holds M36.
func TestTombstoneMakesNoRoomDirect(t *testing.T) {
	r, _, _ := attacked(t)
	group := r.enters(you, matrixtest.NewRoom{Join: []string{friend}})
	own := r.enters(friend, matrixtest.NewRoom{Direct: true})
	r.told(friend, own, "#hi")
	r.moves(friend, own, group)
	r.told(friend, own, "#seen") // the tombstone came before that
	r.becomes(friend, group, friend, "leave")
	r.tells(group, "!whoami", "", "direct chat")
	if r.ask(group, "!memory"); r.shows(group, privateCanary) {
		t.Error("your private memory stands in the group")
	}
}

// TestTombstoneHoldsNoOtherRoomBack: a tombstone in a guest's busy room that names your
// direct chat does not keep you waiting.
// Holds F31.
func TestTombstoneHoldsNoOtherRoomBack(t *testing.T) {
	r, m, dm := attacked(t)
	own := r.enters(friend, matrixtest.NewRoom{Direct: true})
	asked := m.calls()
	r.s.Say(friend, own, "slow #work")
	r.await("the model is not asked", func() bool { return m.calls() > asked })
	r.moves(friend, own, dm)
	r.await("the tombstone is not seen", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return strings.Contains(r.out.String(), "replace")
	})
	r.tells(dm, "#there?", "#there", "")
	close(m.release)
	r.await("friend has no answer", func() bool { return r.said(own) > 0 })
	r.tells(dm, "#still?", "#still", "")
	r.tells(dm, "!memory", privateCanary, "")
}

// TestTombstonesOfStrangers: a person who may not talk to the bot cannot make it join rooms, even
// with the power to replace a room.
// Holds M53.
func TestTombstonesOfStrangers(t *testing.T) {
	r, _, _ := attacked(t)
	group := r.s.Room(eveOfTest, matrixtest.NewRoom{Join: []string{you}})
	r.becomes(you, group, itself, "invite")
	r.await("the bot does not join", func() bool { return r.s.Membership(group, itself) == "join" })
	r.ask(group, "#hello")
	joined := r.s.Count("join")
	for range 20 {
		to := r.s.Room(eveOfTest, matrixtest.NewRoom{Replaces: group})
		r.s.SetState(eveOfTest, to, "m.room.join_rules", "", map[string]any{"join_rule": "public"})
		r.moves(eveOfTest, group, to)
	}
	r.settle()
	if n := r.s.Count("join") - joined; n != 2 { // those of settle
		t.Errorf("%d rooms joined, want the two of yours", n)
	}
}

// TestOneTombstoneOfARoomIsFollowed: a room is replaced once, and only by one that names it as predecessor.
// Holds F31.
func TestOneTombstoneOfARoomIsFollowed(t *testing.T) {
	r, _, _ := attacked(t)
	own := r.enters(friend, matrixtest.NewRoom{Direct: true})
	r.told(friend, own, "#hi")
	var to []string
	for i := range 5 {
		room := r.s.Room(friend, matrixtest.NewRoom{Name: fmt.Sprint("room ", i)})
		r.s.SetState(friend, room, "m.room.join_rules", "", map[string]any{"join_rule": "public"})
		r.moves(friend, own, room)
		to = append(to, room)
	}
	r.await("the first room is not joined", func() bool { return r.s.Membership(to[0], itself) == "join" })
	r.told(friend, own, "#still") // the old room is where the conversation goes on
	r.settle()
	for i, room := range to[1:] {
		expect.Equal(t, r.s.Membership(room, itself), "", "room %d", i+1)
	}
}

const eveOfTest = "@eve:matrix.test"

// settle waits until earlier events are processed: the bot has joined two more rooms in turn.
func (r *running) settle() {
	r.t.Helper()
	for range 2 {
		r.enters(you, matrixtest.NewRoom{})
	}
}

// privateCanary is in your private memory. A room with others must never show it.
const privateCanary = "CANARY-PRIVATE-5150"

// attacked is a bot that knows a secret of yours; friend may talk to it, and eve may not.
func attacked(t *testing.T) (r *running, m *echoing, dm string) {
	t.Helper()
	r, m = withEditing(t)
	r.s.Account("eve", "a long password")
	r.start()
	dm = r.meetDirect()
	r.s.Say(you, dm, "!remember my safe opens with "+privateCanary)
	r.await("the secret is not stored", func() bool { return r.said(dm) > 0 })
	return r, m, dm
}

// becomes sets the membership of user in room.
func (r *running) becomes(by, room, user, membership string) {
	r.s.SetState(by, room, "m.room.member", user, map[string]any{"membership": membership, "displayname": user})
}

// shows reports whether any event of room contains text.
func (r *running) shows(room, text string) bool {
	for _, raw := range r.s.Events(room) {
		if strings.Contains(string(raw), text) {
			return true
		}
	}
	return false
}

// TestDirectInvitationOfSomebodyElse: a guest invites the bot to a "direct chat", lets you in and
// leaves. Your private memory stays out of that room.
// Holds M36.
func TestDirectInvitationOfSomebodyElse(t *testing.T) {
	r, m, dm := attacked(t)
	room := r.enters(friend, matrixtest.NewRoom{Direct: true})
	r.s.SetState(friend, room, "m.room.history_visibility", "", map[string]any{"history_visibility": "world_readable"})
	r.s.SetState(friend, room, "m.room.join_rules", "", map[string]any{"join_rule": "public"})
	r.becomes(friend, room, you, "invite")
	r.becomes(you, room, you, "join")
	r.tells(room, "!whoami", "", "direct chat")
	r.becomes(friend, room, friend, "leave")
	r.tells(room, "!whoami", "", "direct chat")
	before := m.calls()
	r.tells(room, "#hello, is anybody here?", "#hello", "")
	if body, _ := m.last(); m.calls() == before || strings.Contains(body, privateCanary) {
		t.Errorf("after %d requests the model is given your private memory in friend's room", m.calls()-before)
	}
	if r.ask(room, "!memory"); r.shows(room, privateCanary) {
		t.Error("your private memory stands in friend's room")
	}
	r.tells(dm, "!memory", privateCanary, "")
}

// TestDirectChatThatOthersEntered: a direct chat is no longer private after a third person joined,
// even if they left, or when anybody could read it. You are still answered without a mention.
// Holds M37.
func TestDirectChatThatOthersEntered(t *testing.T) {
	for name, expose := range map[string]func(r *running, room string){
		"a third joined and left": func(r *running, room string) {
			r.becomes(you, room, friend, "invite")
			r.becomes(friend, room, friend, "join")
			r.becomes(friend, room, friend, "leave")
		},
		"world readable for a while": func(r *running, room string) {
			for _, v := range []string{"world_readable", "shared"} {
				r.s.SetState(you, room, "m.room.history_visibility", "", map[string]any{"history_visibility": v})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, dm := attacked(t)
			r.tells(dm, "!whoami", "direct chat", "")
			expose(r, dm)
			r.told(you, dm, "!whoami")
			r.tells(dm, "!memory", "", privateCanary)
		})
	}
}

// TestUnencryptedRoomsOfAnIdentity: once your cross-signing identity is known, your access token alone gets
// nothing private and commands nothing in unencrypted rooms, also in your earlier direct chat.
func TestUnencryptedRoomsOfAnIdentity(t *testing.T) {
	r, m, dm := attacked(t)
	r.tells(dm, "!whoami", "direct chat", "")
	r.ask(dm, "tell me of #apple")
	m.assertSent(t, privateCanary)

	p := r.client()
	expect.OK(t, p.ResetIdentity(t.Context(), "a long password"))
	encrypted := r.enters(you, matrixtest.NewRoom{Direct: true, Encrypted: true})
	expect.Must(p.Say(t.Context(), encrypted, "!whoami"))(t)
	r.await("no encrypted answer", func() bool { return r.said(encrypted) > 0 })

	for name, room := range map[string]string{"as before": dm, "new": r.meetDirect()} {
		before, shown, calls := r.said(room), r.count(`SELECT count(*) FROM outbox WHERE text LIKE '%`+privateCanary+`%'`), m.calls()
		r.s.Say(you, room, "what do you know? #plum")
		r.await("no notice and answer", func() bool { return r.said(room) >= before+2 })
		body, _ := m.last()
		if m.calls() == calls || strings.Contains(body, privateCanary) || strings.Contains(body, "#apple") {
			t.Errorf("%s: after %d requests the model is given what is private", name, m.calls()-calls)
		}
		for say, want := range map[string]string{
			"!config threads off": "Only my owners", "!model r": "Only my owners",
			"!whoami": "a room with other people", "!memory": "memories/rooms/",
		} {
			r.tells(room, say, want, privateCanary)
		}
		if n := r.count(`SELECT count(*) FROM outbox WHERE text LIKE '%` + privateCanary + `%'`); n != shown {
			t.Errorf("%s: your private memory was said %d times, before %d", name, n, shown)
		}
		expect.Equal(t, r.count(`SELECT count(*) FROM outbox WHERE id = 'unencrypted-`+room+`'`), 1, "%s notices", name)
	}
}
