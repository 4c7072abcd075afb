package matrix_test

import (
	"slices"
	"testing"

	"reverie/internal/matrix/matrixtest"
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
	for _, c := range []struct {
		name, room, text string
		notice           bool
		mention, want    []string
	}{
		{"for nobody", group, "Hello " + you.UserID(), false, nil, nil},
		{"a reminder", group, "⏰ Reminder for " + you.UserID() + ": ask " + friend.UserID(), false, []string{you.UserID()}, []string{you.UserID()}},
		{"for two", group, "for two", false, []string{you.UserID(), friend.UserID()}, []string{you.UserID(), friend.UserID()}},
		{"a notice", group, "paused", true, nil, nil},
		{"alone", alone, "⏰ Reminder: tea", false, []string{you.UserID()}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(mentioned(t, s, c.room, b.UserID()))
			b.says(c.room, session.Outgoing{ID: c.name, Text: c.text, Notice: c.notice, Mention: c.mention})
			await(t, s, "it is not sent", func() bool { return b.Status(t.Context()).Outbox == 0 })
			said := mentioned(t, s, c.room, b.UserID())[before:]
			if len(said) != 1 || !slices.Equal(said[0], c.want) {
				t.Errorf("it mentions %q, want %q", said, c.want)
			}
		})
	}
}

// mentioned lists whom each message of user mentions. Each must say whom, or
// clients would look for names in its text.
func mentioned(t *testing.T, s *matrixtest.Server, room, user string) (all [][]string) {
	t.Helper()
	for _, e := range eventsIn(s, room, user, "m.room.message") {
		if e.Content.Mentions == nil || e.Content.Mentions.Room {
			t.Fatalf("mentions of %+v", e)
		}
		all = append(all, e.Content.users())
	}
	return all
}
