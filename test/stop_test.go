package test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"reverie/internal/matrix/matrixtest"
)

// TestSignalInTurn: asked to end in the middle of a turn, the bot finishes it
// if that takes seconds, and else leaves it for the next start. Either way it
// is no longer shown as typing, exits with 0, and the question has one answer.
// Holds F50.
func TestSignalInTurn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs the real binary: left out with -short")
	}
	for _, c := range []struct {
		name     string
		slow     string
		finishes bool
	}{
		{"finished", "1500ms", true},
		{"left for the next start", "14s", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := matrixtest.Start(t)
			s := &storm{town: &fake{home}, hits: map[string]int{}, changed: make(chan struct{}), seen: map[string]map[string]said{}}
			you := s.person(t, "you")
			s.botID = home.Account("reverie", password("reverie"))
			m := newModel(t)
			s.start(t, m.url, you.UserID())
			room := home.Room(you.UserID(), matrixtest.NewRoom{Direct: true, Encrypted: true, Invite: []string{s.botID}})
			until(t, "the bot does not join", func() bool { return home.Membership(room, s.botID) == "join" })
			_, err := you.Say(t.Context(), room, "rehearse: slow "+c.slow)
			must(t, err)
			until(t, "the model is not asked, or the bot is not typing", func() bool { return m.calls.Load() == 1 && home.Typing(room, s.botID) })
			must(t, s.bot.cmd.Process.Signal(syscall.SIGTERM))
			select {
			case <-s.bot.exited:
			case <-time.After(time.Minute):
				t.Fatal("the bot did not end")
			}
			if code := s.bot.cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			if home.Typing(room, s.botID) {
				t.Error("still shown as typing")
			}
			if log := s.bot.log.String(); strings.Contains(log, "level=WARN") {
				t.Errorf("the end is something to warn of:\n%s", log)
			}
			if c.finishes {
				until(t, "the answer did not leave before the end", func() bool { return s.answers(you.UserID(), room) == 1 })
			} else if n := s.answers(you.UserID(), room); n != 0 {
				t.Errorf("%d answers before the restart", n)
			}
			s.bot.start(t, "")
			if !c.finishes {
				until(t, "no answer after the restart", func() bool { return s.answers(you.UserID(), room) == 1 })
			}
			_, err = you.Say(t.Context(), room, "rehearse: long 5")
			must(t, err)
			until(t, "no second answer", func() bool { return s.answers(you.UserID(), room) >= 2 })
			if n := s.answers(you.UserID(), room); n != 2 {
				t.Errorf("%d answers to two questions", n)
			}
			if len(s.faults) > 0 {
				t.Error(strings.Join(s.faults, "\n"))
			}
			if log := s.bot.log.String(); c.finishes == strings.Contains(log, "taken up again") {
				t.Errorf("the log says the wrong thing about the turn:\n%s", log)
			}
		})
	}
}

// answers counts the bot's finished messages in a room, as a person sees them.
func (s *storm) answers(person, room string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.seen[person] {
		if m.room == room && !m.live {
			n++
		}
	}
	return n
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}
