package matrix_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/session"
)

// notices are what the bot has told a room by the way, in the clear.
func notices(t *testing.T, s *matrixtest.Server, b *bot, room string) (all []string) {
	t.Helper()
	for _, sent := range s.Sends() {
		var content struct {
			Type string `json:"msgtype"`
			Body string `json:"body"`
		}
		ok(t, json.Unmarshal(sent.Content, &content))
		if sent.User == b.UserID() && sent.Room == room && !sent.Repeat && content.Type == "m.notice" {
			all = append(all, content.Body)
		}
	}
	return all
}

// More was written than is fetched: what is near is answered, and a direct chat
// is told once that there was more. A group is not bothered with it.
// Holds F14.
func TestGapBeyondTheBounds(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	quietly := func(b *bot, in session.Inbound) {
		b.done(in)
	}
	b := startWith(t, server, dir, quietly, hurry, you.UserID())
	room := chat(t, s, you, b, false)
	group := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID()}})
	joined(t, you, group, b.UserID())
	for _, r := range []string{room, group} {
		s.Post(you.UserID(), r, "m.room.message", text("before, "+b.UserID(), nil)) // without m.mentions, the id counts
		b.next()
	}
	b.stop()
	s.Fault(matrixtest.On("sync").By(b.UserID()), matrixtest.Cut(2))
	const n = matrix.GapEvents + 100
	var want []string
	for i := range n {
		id := s.Say(you.UserID(), room, fmt.Sprint("number ", i))
		if i >= n-2-matrix.GapEvents {
			want = append(want, id)
		}
		said := "not for the bot"
		if i == 10 || i == n-10 {
			said = b.UserID() + ": what about it?"
		}
		if id := s.Post(you.UserID(), group, "m.room.message", text(said, nil)); i == n-10 {
			want = append(want, id)
		}
	}
	b = b.again(quietly)
	var got []string
	for range want {
		got = append(got, b.next().ID)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("heard %d messages, among them others than the %d that were near", len(got), len(want))
	}
	told := func() bool { return len(notices(t, s, b, room)) > 0 }
	await(t, s, "the room is not told", told)
	b = b.again(quietly)
	last := s.Say(you.UserID(), room, "and now?")
	if in := b.next(); in.ID != last {
		t.Errorf("heard %+v", in)
	}
	b.stop()
	if all := notices(t, s, b, room); len(all) != 1 || !strings.Contains(all[0], "I have not seen all that was written meanwhile") {
		t.Errorf("told %q", all)
	}
	if all := notices(t, s, b, group); len(all) != 0 {
		t.Errorf("the group was told %q", all)
	}
}
