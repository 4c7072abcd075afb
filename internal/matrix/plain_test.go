package matrix_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer/peertest"
)

// verificationRequest is how a client asks the bot to verify, in a room.
func verificationRequest(bot, body string) map[string]any {
	return map[string]any{
		"msgtype": "m.key.verification.request", "body": body, "to": bot, "from_device": "PHONE", "methods": []string{"m.sas.v1"},
	}
}

// inboxRows are the ids of all messages that were taken in, of whatever state.
func inboxRows(t *testing.T, db *sql.DB) map[string]string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT id, state || ' ' || text FROM inbox`)
	ok(t, err)
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var id, what string
		ok(t, rows.Scan(&id, &what))
		all[id] = what
	}
	ok(t, rows.Err())
	return all
}

// In an encrypted room the events of a verification are taken unencrypted, as
// other clients send them. Nothing else is, even if it looks like them.
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
	if in := b.next(); in.ID != last {
		t.Errorf("heard %+v (%s)", in, plain[in.ID])
	}
	hears(t, you, room, "echo: **encrypted, too**")
	db := openDB(t, b.dir)
	defer db.Close()
	all := inboxRows(t, db)
	for id, what := range plain {
		if row, there := all[id]; there {
			t.Errorf("%s was taken: %q", what, row)
		}
	}
	if len(all) != 2 {
		t.Errorf("%d messages were taken: %v", len(all), all)
	}
	if open := b.Verifications(); len(open) != 0 {
		t.Errorf("verifications: %v", open)
	}
}

// sentTo is the first event of the bot in a room.
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

// An unencrypted request to verify begins what an encrypted one would: whoever
// may talk to the bot has to compare the emoji, and all others are not heard.
func TestPlainVerificationRequest(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	stranger := s.Account("stranger", "a long enough password")
	dir := t.TempDir()
	b := startWith(t, server, dir, commanded, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	group := s.Room(you.UserID(), matrixtest.NewRoom{Encrypted: true, Invite: []string{b.UserID()}, Join: []string{stranger}})
	joined(t, you, group, b.UserID())
	// The request of the person who is listened to comes last: when it is there,
	// the others have been looked at.
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
		if trusted, err := b.Trusts(t.Context(), who); err != nil || trusted {
			t.Errorf("the bot trusts %s: %v, %v", who, trusted, err)
		}
	}
	for _, sent := range s.Sends() {
		if sent.User == b.UserID() && sent.Room == group && sent.Type != "m.room.encrypted" {
			t.Errorf("said in the clear: %s", sent.Content)
		}
	}
	db := openDB(t, dir)
	defer db.Close()
	if all := inboxRows(t, db); len(all) != 2 { // what was said encrypted
		t.Errorf("taken in: %v", all)
	}
}

// opened waits until the verification txn is open, and no other.
func opened(t *testing.T, b *bot, txn string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), peertest.Patience)
	defer cancel()
	for {
		open := b.Verifications()
		if len(open) == 1 && open[0] == txn {
			return
		}
		if len(open) > 0 {
			t.Fatalf("open: %v, want %s alone", open, txn)
		}
		select {
		case <-ctx.Done():
			t.Fatal("the verification was not opened")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
