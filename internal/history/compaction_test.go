package history_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/history"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
)

// compacted is a room with six messages, of which the first four are summarised and
// the fifth is shortened.
func compacted(t testing.TB, s *history.Store) (all []history.Message, compact func() (history.Compaction, error)) {
	t.Helper()
	for _, text := range []string{"one", "two", "three", "four", "five is long", "six"} {
		all = append(all, say(t, s, here, text))
	}
	return all, func() (history.Compaction, error) {
		c := history.Compaction{Room: here, Level: history.Summary, Reason: "full", Summary: "They counted.", Details: []string{"ada: one", "ada: two"}, Before: 60, After: 20, At: noon}
		short := all[4]
		short.Text = "five"
		err := s.Compact(t.Context(), &c, all[:4], []history.Message{short})
		return c, err
	}
}

// Holds L10, L12.
func TestCompactKeepsTheOriginals(t *testing.T) {
	s, db := open(t)
	if c, err := s.Compacted(t.Context(), here); err != nil || c.ID != 0 || c.Text() != "" {
		t.Errorf("of nothing: %+v, %v", c, err)
	}
	say(t, s, there, "other")
	all, compact := compacted(t, s)
	made := expect.Must(compact())(t)
	expect.Equal(t, texts(t, s, here)+" "+texts(t, s, there), "five|six other", "loaded")
	got, err := s.Compacted(t.Context(), here)
	want := history.Compaction{ID: made.ID, Room: here, Conversation: 1, From: all[0].ID, To: all[3].ID, Messages: 4, Shortened: 1, Level: history.Summary,
		Reason: "full", Summary: "They counted.", Details: []string{"ada: one", "ada: two"}, Before: 60, After: 20, At: noon}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	expect.Equal(t, got.Text(), "They counted.\n\nWord for word:\n- ada: one\n- ada: two", "text")
	var originals string
	expect.OK(t, db.QueryRow(`SELECT group_concat(text || compaction, ' ' ORDER BY id) FROM message WHERE room = ?`, here).Scan(&originals))
	expect.False(t, originals != strings.ReplaceAll("one# two# three# four# five is long0 six0", "#", string(rune('0'+made.ID))), "kept: %s", originals)
	if _, err := compact(); err == nil { // what it was planned for is gone
		t.Errorf("again: %v", err)
	}
	if again, err := s.Compacted(t.Context(), here); err != nil || !cmp.Equal(again, want) {
		t.Errorf("after a failure: %+v, %v", again, err)
	}
	expect.Must(s.StartNew(t.Context(), here))(t)
	expect.Equal(t, expect.Must(s.Compacted(t.Context(), here))(t).ID, 0, "in a new conversation")
}

// TestKilled ends the program by force at every step of a compaction:
// afterwards the conversation is as it was before, or as it is to be, and never between.
// Holds L12.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("REVERIE_TEST_KILL_DIR"); dir != "" {
		killAt(t, dir, os.Getenv("REVERIE_TEST_KILL_AT"))
		return
	}
	const whole, short = "one|two|three|four|five is long|six / ", "five|six / They counted."
	for step, want := range map[string]string{"stored": whole, "marked": whole, "shortened": whole, "committed": short} {
		dir := t.TempDir()
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
		child.Env = append(os.Environ(), "REVERIE_TEST_KILL_DIR="+dir, "REVERIE_TEST_KILL_AT="+step)
		out, err := child.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: the child was not killed: %v\n%s", step, err, out)
		}
		db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
		s := history.NewStore(db)
		expect.Equal(t, texts(t, s, here)+" / "+expect.Must(s.Compacted(t.Context(), here))(t).Summary, want, "killed when %s", step)
		_ = db.Close()
	}
}

// killAt is the program that is killed.
func killAt(t *testing.T, dir, step string) {
	s := history.NewStore(expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t))
	_, compact := compacted(t, s)
	s.Reached = func(now string) {
		if now == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	expect.Must(compact())(t)
	t.Fatal("not killed")
}
