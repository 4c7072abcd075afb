package matrix_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/chat"
	"reverie/internal/matrix/gate"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/test/expect"
)

const (
	pollBegin = "org.matrix.msc3381.poll.start"
	voteType  = "org.matrix.msc3381.poll.response"
	question  = "May I delete `notes.txt`? Choose, or write `!approve K7QX`."
)

// poll returns a question with an ID.
func poll(name string) chat.Outgoing {
	return chat.Outgoing{ID: name, Text: question, Notice: true, Options: []chat.Option{{ID: "once", Text: "Yes, this once"}, {ID: "no", Text: "No"}}}
}

// asks sends p to room as the bot, and returns the poll as the person sees it.
func (b *bot) asks(you *peer.Peer, room string, p chat.Outgoing) peer.Event {
	b.t.Helper()
	b.says(room, p)
	return peertest.Next(b.t, you, peertest.Kind(room, peer.PollStarted))
}

func (b *bot) nextChange() chat.Inbound {
	b.t.Helper()
	select {
	case in := <-b.changes:
		return in
	case <-time.After(peertest.Patience):
		b.t.Fatal("no change was delivered")
		panic("unreachable")
	}
}

// votes selects an option as the person, and expects the delivered vote.
func (b *bot) votes(you *peer.Peer, asked peer.Event, text string, want chat.Vote) chat.Vote {
	b.t.Helper()
	id := expect.Must(you.Vote(b.t.Context(), asked.Room, asked, text))(b.t)
	got, _ := b.nextChange().(chat.Vote)
	want.ID, want.Room, want.Sender, want.At = id, asked.Room, you.UserID(), got.At
	if got.At.IsZero() || cmp.Diff(want, got) != "" {
		b.t.Errorf("delivered %+v, want %+v", got, want)
	}
	return got
}

// eventsOf lists the events of a type in a room.
func eventsOf(t *testing.T, s *matrixtest.Server, room, kind string) (list []map[string]any) {
	t.Helper()
	for _, raw := range s.Events(room) {
		var e map[string]any
		expect.OK(t, json.Unmarshal(raw, &e))
		if e["type"] == kind {
			list = append(list, e)
		}
	}
	return list
}

// A poll is one event; a vote on it is delivered; it closes once, and then no vote counts. Others cannot
// edit or end it: they get no answer, and the poll stays open.
// Holds M13, M14.
func TestPoll(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{true, false} {
		t.Run(fmt.Sprint("encrypted ", encrypted), func(t *testing.T) {
			s, you, b, room := chatting(t, encrypted, echo)
			asked := b.asks(you, room, poll("ask:1"))
			if asked.Body != question || asked.Encrypted != encrypted || asked.Poll.ID("Yes, this once") == "" || asked.Poll.ID("No") == "" || len(asked.Poll.Options) != 2 {
				t.Errorf("asked %+v %+v", asked, asked.Poll)
			}
			b.says(room, poll("ask:1")) // as after a restart
			changed := poll("ask:1")
			changed.Text = "May I delete everything?"
			b.says(room, changed) // what was asked stays what was asked
			start := map[string]any{
				"kind": "org.matrix.msc3381.poll.disclosed", "max_selections": 2, "question": map[string]any{"org.matrix.msc1767.text": "Tea?"},
				"answers": []any{map[string]any{"id": "maybe", "org.matrix.msc1767.text": "No"}},
			}
			replace := map[string]any{"rel_type": "m.replace", "event_id": asked.ID}
			for kind, content := range map[string]map[string]any{
				pollBegin:                     {pollBegin: start, "m.new_content": map[string]any{pollBegin: start}, "m.relates_to": replace},
				"m.poll.start":                {"m.poll": start, "m.new_content": map[string]any{"m.poll": start}, "m.relates_to": replace},
				"m.room.message":              {"msgtype": "m.text", "body": "* Tea?", "m.new_content": map[string]any{"msgtype": "m.text", "body": "Tea?"}, "m.relates_to": replace},
				"org.matrix.msc3381.poll.end": {"org.matrix.msc3381.poll.end": map[string]any{}, "m.relates_to": map[string]any{"rel_type": "m.reference", "event_id": asked.ID}},
			} {
				expect.Must(you.Post(t.Context(), room, kind, content))(t)
			}
			expect.Must(you.Post(t.Context(), room, voteType, peer.VoteFor(asked.ID, "maybe")))(t)
			b.votes(you, asked, "No", chat.Vote{Change: chat.Change{Head: chat.Head{Private: true}, Target: "ask:1"}, Option: "no"})
			say(t, you, room, "hello")
			comes(t, you, func(e peer.Event) bool { return e.Room == room && e.Kind != peer.Typing }, "echo: **hello**")
			if in := b.next(); in.Text != "hello" || len(b.heard) > 0 || len(b.changes) > 0 {
				t.Errorf("heard %+v and %d more, and %d changes", in, len(b.heard), len(b.changes))
			}
			id, err := you.Post(t.Context(), room, "m.poll.response", map[string]any{ // as the specification has it
				"m.relates_to": map[string]any{"rel_type": "m.reference", "event_id": asked.ID}, "m.selections": []string{asked.Poll.ID("No")},
			})
			expect.OK(t, err)
			if got, _ := b.nextChange().(chat.Vote); got.ID != id || got.Target != "ask:1" || got.Option != "no" {
				t.Errorf("delivered %+v", got)
			}
			closing := chat.Outgoing{ID: "ask:1", Text: "Nothing was deleted.", Notice: true}
			b.says(room, closing)
			if e := peertest.Next(t, you, peertest.Kind(room, peer.PollEnded)); e.ID != asked.ID || e.Body != closing.Text || e.Encrypted != encrypted {
				t.Errorf("closed as %+v", e)
			}
			b.says(room, closing)
			b.says(room, poll("ask:1"))
			expect.Must(you.Vote(t.Context(), room, asked, "No"))(t)
			say(t, you, room, "and now?")
			comes(t, you, func(e peer.Event) bool { return e.Room == room && e.Kind != peer.Typing }, "echo: **and now?**")
			if len(b.changes) > 0 {
				t.Errorf("after the end was delivered %+v", <-b.changes)
			}
			if starts := len(eventsIn(s, room, b.UserID(), pollBegin)); encrypted && starts != 0 || !encrypted && starts != 1 {
				t.Errorf("%d unencrypted polls", starts)
			}
			if encrypted {
				onServer(t, you, room, "notes.txt")
				onServer(t, you, room, "this once")
			}
		})
	}
}

// The start and end events have Element's form, with the whole text as fallback.
// Holds M13.
func TestPollContent(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	room := group(t, s, you, b)
	root := say(t, you, room, "a thread")
	p := poll("ask:1")
	p.Thread, p.Mention = root, []string{you.UserID()}
	asked := b.asks(you, room, p)
	expect.Equal(t, asked.Thread, root, "asked in")
	const text = "org.matrix.msc1767.text"
	all := question + "\n1. Yes, this once\n2. No"
	want := map[string]any{
		pollBegin: map[string]any{
			"kind": "org.matrix.msc3381.poll.disclosed", "max_selections": 1.0,
			"question": map[string]any{text: question, "body": question, "msgtype": "m.text"},
			"answers": []any{
				map[string]any{"id": asked.Poll.Options[0].ID, text: "Yes, this once"},
				map[string]any{"id": asked.Poll.Options[1].ID, text: "No"},
			},
		},
		text: all, "body": all,
		"m.mentions": map[string]any{"user_ids": []any{you.UserID()}},
		"m.relates_to": map[string]any{"rel_type": string(gate.ElementThread), "event_id": root, "is_falling_back": true,
			"m.in_reply_to": map[string]any{"event_id": root}},
	}
	expect.NoDiff(t, eventsOf(t, s, room, pollBegin)[0]["content"], want, "the start")
	vote := b.votes(you, asked, "Yes, this once", chat.Vote{Change: chat.Change{Head: chat.Head{Branch: root}, Target: "ask:1"}, Option: "once"})
	b.says(room, chat.Outgoing{ID: "re:" + vote.ID, Text: "As you like.", ReplyTo: vote.ID})
	if e := peertest.Next(t, you, messageIn(room)); e.ReplyTo != asked.ID || e.Thread != root { // clients do not show votes
		t.Errorf("a vote is answered by %+v", e)
	}
	b.says(room, chat.Outgoing{ID: "ask:1", Text: "It is deleted."})
	peertest.Next(t, you, peertest.Kind(room, peer.PollEnded))
	want = map[string]any{
		"org.matrix.msc3381.poll.end": map[string]any{}, text: "It is deleted.", "body": "It is deleted.", "m.mentions": map[string]any{},
		"m.relates_to": map[string]any{"rel_type": "m.reference", "event_id": asked.ID},
	}
	expect.NoDiff(t, eventsOf(t, s, room, "org.matrix.msc3381.poll.end")[0]["content"], want, "the end")
}

// A vote counts only if an allowed sender votes for one option of this poll.
// Holds M14.
func TestInvalidVotes(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{true, false} {
		t.Run(fmt.Sprint("encrypted ", encrypted), func(t *testing.T) {
			s, server := fakeHomeserver(t)
			you, friend, stranger := person(t, s, "you"), person(t, s, "friend"), person(t, s, "stranger")
			dir := t.TempDir()
			b := startWith(t, server, dir, echo, hurry, you.UserID(), friend.UserID())
			group := func() string {
				return roomWith(t, s, you, b, matrixtest.NewRoom{Encrypted: encrypted, Join: []string{stranger.UserID(), friend.UserID()}})
			}
			room, elsewhere := group(), group()
			asked := b.asks(you, room, poll("ask:1"))
			other := b.asks(you, room, poll("ask:2"))
			far := b.asks(you, elsewhere, poll("ask:3"))
			b.says(room, chat.Outgoing{ID: "words", Text: "no poll"})
			words := peertest.Next(t, you, messageIn(room))
			own, err := you.Post(t.Context(), room, pollBegin, map[string]any{pollBegin: map[string]any{
				"question": map[string]any{"org.matrix.msc1767.text": "Tea?"}, "answers": []any{map[string]any{"id": asked.Poll.ID("No")}}}})
			expect.OK(t, err)
			no, yes := asked.Poll.ID("No"), asked.Poll.ID("Yes, this once")
			related := func(kind string) map[string]any {
				content := peer.VoteFor(asked.ID, no)
				content["m.relates_to"].(map[string]any)["rel_type"] = kind
				return content
			}
			for _, c := range []struct {
				what    string
				who     *peer.Peer
				room    string
				content map[string]any
			}{
				{"an option that there is not", you, room, peer.VoteFor(asked.ID, "maybe")},
				{"an option as the program calls it", you, room, peer.VoteFor(asked.ID, "no")},
				{"an option of another poll", you, room, peer.VoteFor(asked.ID, other.Poll.ID("No"))},
				{"an option of the poll for another poll", you, room, peer.VoteFor(other.ID, no)},
				{"two options", you, room, peer.VoteFor(asked.ID, no, yes)},
				{"the same option twice", you, room, peer.VoteFor(asked.ID, no, no)},
				{"no option", you, room, peer.VoteFor(asked.ID)},
				{"in another room", you, elsewhere, peer.VoteFor(asked.ID, no)},
				{"for a poll of another room", you, room, peer.VoteFor(far.ID, far.Poll.ID("No"))},
				{"for a poll of a person", you, room, peer.VoteFor(own, no)},
				{"for a message", you, room, peer.VoteFor(words.ID, no)},
				{"for nothing", you, room, peer.VoteFor("", no)},
				{"a thread", you, room, related("m.thread")},
				{"an edit", you, room, related("m.replace")},
				{"a stranger's", stranger, room, peer.VoteFor(asked.ID, no)},
			} {
				if _, err := c.who.Post(t.Context(), c.room, voteType, c.content); err != nil {
					t.Fatalf("%s: %v", c.what, err)
				}
			}
			vote := peer.VoteFor(asked.ID, no)
			s.SetState(friend.UserID(), room, "m.room.member", friend.UserID(), map[string]any{"membership": "leave"})
			s.Post(friend.UserID(), room, voteType, vote) // who is not in the room
			s.Post(b.UserID(), room, voteType, vote)      // our own account
			if encrypted {
				expect.Must(you.PostPlain(t.Context(), room, voteType, vote))(t)
				s.Vote(you.UserID(), room, asked.ID, no)
				s.Post(you.UserID(), room, "m.poll.response", map[string]any{"m.relates_to": vote["m.relates_to"], "m.selections": []string{no}})
			}
			for _, key := range []string{"👍", "✅", "No", "no", no} {
				expect.OK(t, you.React(t.Context(), room, asked.ID, key))
			}
			good := b.votes(you, asked, "Yes, this once", chat.Vote{Change: chat.Change{Target: "ask:1"}, Option: "once"})
			expect.OK(t, s.Redeliver(room, good.ID))
			again := b.votes(you, other, "No", chat.Vote{Change: chat.Change{Target: "ask:2"}, Option: "no"})
			b.stop()
			before := b.log
			expect.OK(t, s.Redeliver(room, good.ID))
			b = b.again(echo)
			last := b.votes(you, far, "No", chat.Vote{Change: chat.Change{Target: "ask:3"}, Option: "no"})
			db := openDB(t, dir)
			for id, row := range inboxRows(t, db) {
				if !slices.Contains([]string{good.ID, again.ID, last.ID}, id) {
					t.Errorf("taken in: %s %q", id, row)
				}
			}
			if n := strings.Count(before.String(), "a vote that is not encrypted is ignored"); encrypted && n != 4 {
				t.Errorf("the log tells of %d votes that were not encrypted", n)
			}
		})
	}
}

// A poll whose send was interrupted is one event, also if it was closed meanwhile.
// Holds M13.
func TestPollIsSentOnce(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, echo)
	lost := s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), matrixtest.DropAnswer())
	b.says(room, poll("ask:1"))
	await(t, s, "the fault is not met", func() bool { return lost.Hits() > 0 })
	b.stop()
	db := openDB(t, b.dir)
	execute(t, db, `UPDATE outbox SET text = 'Too late.', closed = 1, revision = 2, state = 'pending' WHERE id = 'ask:1'`)
	expect.OK(t, db.Close())
	b.again(echo)
	asked := peertest.Next(t, you, peertest.Kind(room, peer.PollStarted))
	if e := peertest.Next(t, you, peertest.Kind(room, peer.PollEnded)); e.ID != asked.ID || e.Body != "Too late." {
		t.Errorf("closed as %+v", e)
	}
	say(t, you, room, "and now?")
	comes(t, you, func(e peer.Event) bool { return e.Room == room && e.Kind != peer.Typing }, "echo: **and now?**")
}

// A redaction of a poll is delivered like that of a message, and no vote on it counts. A vote that is
// redacted in time does not count either.
// Holds M15.
func TestPollRedacted(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, echo)
	first, second := b.asks(you, room, poll("re-$x-ask")), b.asks(you, room, poll("ask:2"))
	b.says(room, chat.Outgoing{ID: "re-$x", Text: "The answer."}) // whose name begins that of the poll
	peertest.Next(t, you, messageIn(room))
	by := s.Redact(you.UserID(), room, first.ID)
	if got, _ := b.nextChange().(chat.Redaction); got.ID != by || got.Target != "re-$x-ask" || got.Sender != you.UserID() {
		t.Errorf("delivered %+v", got)
	}
	expect.Must(you.Vote(t.Context(), room, first, "No"))(t)
	b.stop()
	vote := expect.Must(you.Vote(t.Context(), room, second, "No"))(t)
	s.Redact(you.UserID(), room, vote)
	b = b.again(echo)
	b.votes(you, second, "Yes, this once", chat.Vote{Change: chat.Change{Head: chat.Head{Private: true}, Target: "ask:2"}, Option: "once"})
	await(t, s, "the answer is not sent", func() bool { return b.Status(t.Context()).Outbox == 0 })
	for _, e := range eventsOf(t, s, room, "m.room.redaction") {
		if e["sender"] == b.UserID() {
			t.Errorf("the bot took back %v", e)
		}
	}
}

// A question too long for one event is an ordinary message.
// Holds M16.
func TestLongPollQuestion(t *testing.T) {
	t.Parallel()
	_, you, b, room := chatting(t, false, echo)
	p := poll("ask:1")
	p.Text = strings.Repeat("Every word of it. ", 1000) + question
	for range 2 {
		b.says(room, p)
	}
	if e := peertest.Next(t, you, messageIn(room)); e.Body != p.Text || !e.Notice {
		t.Errorf("said %+v", e)
	}
	b.says(room, chat.Outgoing{ID: "ask:1", Text: "It is deleted.", Notice: true})
	if e := peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && e.Kind != peer.Typing }); e.Kind != peer.Edit || e.Body != "It is deleted." {
		t.Errorf("then came %+v", e)
	}
}

// On a real homeserver with encryption: a person sees the question and its options, selects one, and sees that the poll has closed.
// Holds M13, M14.
func TestPollOnTheHomeserver(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
	dir := t.TempDir()
	b := start(t, server, dir, echo, you.UserID())
	room := directChat(t, you, b)
	asked := b.asks(you, room, poll("ask:1"))
	if asked.Body != question || !asked.Encrypted || asked.Poll.ID("Yes, this once") == "" || asked.Poll.ID("No") == "" {
		t.Errorf("asked %+v %+v", asked, asked.Poll)
	}
	expect.Must(you.PostPlain(t.Context(), room, voteType, peer.VoteFor(asked.ID, asked.Poll.ID("No"))))(t)
	b.votes(you, asked, "Yes, this once", chat.Vote{Change: chat.Change{Head: chat.Head{Private: true}, Target: "ask:1"}, Option: "once"})
	b.stop()
	id := expect.Must(you.Vote(t.Context(), room, asked, "No"))(t)
	b = start(t, server, dir, echo, you.UserID())
	if got, _ := b.nextChange().(chat.Vote); got.ID != id || got.Target != "ask:1" || got.Option != "no" {
		t.Errorf("delivered %+v", got)
	}
	b.says(room, chat.Outgoing{ID: "ask:1", Text: "Nothing was deleted.", Notice: true})
	if e := peertest.Next(t, you, peertest.Kind(room, peer.PollEnded)); e.ID != asked.ID || e.Body != "Nothing was deleted." || !e.Encrypted {
		t.Errorf("closed as %+v", e)
	}
	types := onServer(t, you, room, "notes.txt")
	if types[pollBegin] != 0 || types["org.matrix.msc3381.poll.end"] != 0 || types[voteType] != 1 {
		t.Errorf("events on the server: %v", types)
	}
	if len(b.changes) > 0 {
		t.Errorf("delivered %+v, too", <-b.changes)
	}
}
