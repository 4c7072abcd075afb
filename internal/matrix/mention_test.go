package matrix_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// TestMention: who a message is for is told so in a room with others, once, and
// nobody else is, whoever the text names.
func TestMention(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you, friend := person(t, s, "you"), person(t, s, "friend")
	b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID())
	group := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID(), friend.UserID()}})
	joined(t, you, group, b.UserID())
	alone := chat(t, s, you, b, false)
	long := strings.Repeat("Water every plant of the house. ", 3000) + "Then rest."
	for _, c := range []struct {
		name, room, text string
		notice           bool
		mention, want    []string // want is of the first event; the others have none
	}{
		{"for nobody", group, "Hello " + you.UserID(), false, nil, nil},
		{"a reminder", group, "⏰ Reminder for " + you.UserID() + ": ask " + friend.UserID(), false, []string{you.UserID()}, []string{you.UserID()}},
		{"for two", group, "for two", false, []string{you.UserID(), friend.UserID()}, []string{you.UserID(), friend.UserID()}},
		{"a notice", group, "paused", true, nil, nil},
		{"in parts", group, long, false, []string{you.UserID()}, []string{you.UserID()}},
		{"alone", alone, "⏰ Reminder: tea", false, []string{you.UserID()}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(mentioned(t, s.Events(c.room), b.UserID()))
			if err := b.Say(t.Context(), c.room, session.Outgoing{ID: c.name, Text: c.text, Notice: c.notice, Mention: c.mention}); err != nil {
				t.Fatal(err)
			}
			await(t, s, "it is not sent", func() bool { return b.Status(t.Context()).Outbox == 0 })
			said := mentioned(t, s.Events(c.room), b.UserID())[before:]
			if c.text == long && len(said) < 2 {
				t.Errorf("%d events, want several", len(said))
			}
			for i, got := range said {
				want := c.want
				if i > 0 {
					want = nil
				}
				if !slices.Equal(got, want) {
					t.Errorf("event %d mentions %q, want %q", i+1, got, want)
				}
			}
			if len(said) == 0 {
				t.Error("nothing was said")
			}
		})
	}
}

// TestMentionEncrypted: in an encrypted group all who read a reminder read whom it
// mentions, and the server learns it from nothing.
func TestMentionEncrypted(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you, friend := person(t, s, "you"), person(t, s, "friend")
	b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID())
	group := s.Room(you.UserID(), matrixtest.NewRoom{Encrypted: true, Invite: []string{b.UserID()}, Join: []string{friend.UserID()}})
	joined(t, you, group, b.UserID())
	for i, mention := range [][]string{{you.UserID()}, nil, {you.UserID(), friend.UserID()}} {
		text := fmt.Sprint("⏰ Reminder ", i)
		if err := b.Say(t.Context(), group, session.Outgoing{ID: fmt.Sprint("job:", i), Text: text, Mention: mention}); err != nil {
			t.Fatal(err)
		}
		for _, reader := range []*peer.Peer{you, friend} {
			if e := peertest.Next(t, reader, messageIn(group)); e.Body != text || !e.Encrypted || e.Mentions != strings.Join(mention, " ") {
				t.Errorf("%s read %+v, want the mentions %q", reader.UserID(), e, mention)
			}
		}
	}
	for _, raw := range s.Events(group) {
		if strings.Contains(string(raw), "m.mentions") {
			t.Errorf("the server reads %s", raw)
		}
	}
}

// TestMentionAfterARestart: what waits to be sent keeps whom it is for.
func TestMentionAfterARestart(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, you.UserID())
	group := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID()}})
	joined(t, you, group, b.UserID())
	broken := s.Fault(matrixtest.On("send").By(b.UserID()), matrixtest.Status(502, ""))
	if err := b.Say(t.Context(), group, session.Outgoing{ID: "job:1", Text: "⏰ Reminder", Mention: []string{you.UserID()}}); err != nil {
		t.Fatal(err)
	}
	await(t, s, "the fault is not met", func() bool { return broken.Hits() > 0 })
	b.stop()
	broken.Remove()
	b = startWith(t, server, dir, echo, hurry, you.UserID())
	peertest.Next(t, you, messageIn(group))
	if got := mentioned(t, s.Events(group), b.UserID()); len(got) != 1 || !slices.Equal(got[0], []string{you.UserID()}) {
		t.Errorf("mentioned %q", got)
	}
}

// mentioned lists whom each message of sender mentions. Each must say whom, or
// clients would look for names in its text.
func mentioned(t *testing.T, events []json.RawMessage, sender string) (all [][]string) {
	t.Helper()
	for _, raw := range events {
		var e struct {
			Type, Sender string
			Content      struct {
				Mentions *struct {
					UserIDs []string `json:"user_ids"`
					Room    bool     `json:"room"`
				} `json:"m.mentions"`
			}
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		if e.Type != "m.room.message" || e.Sender != sender {
			continue
		}
		if e.Content.Mentions == nil || e.Content.Mentions.Room {
			t.Fatalf("mentions of %s", raw)
		}
		all = append(all, e.Content.Mentions.UserIDs)
	}
	return all
}
