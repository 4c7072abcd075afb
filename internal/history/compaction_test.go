package history_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	if c, err := s.LatestCompaction(t.Context(), here); err != nil || c.ID != 0 || c.Text() != "" {
		t.Errorf("of nothing: %+v, %v", c, err)
	}
	say(t, s, there, "other")
	_, compact := compacted(t, s)
	made := expect.Must(compact())(t)
	expect.Equal(t, texts(t, s, here)+" "+texts(t, s, there), "five|six other", "loaded")
	got, err := s.LatestCompaction(t.Context(), here)
	want := history.Compaction{ID: made.ID, Room: here, Conversation: 1, Messages: 4, Shortened: 1, Level: history.Summary,
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
	if again, err := s.LatestCompaction(t.Context(), here); err != nil || !cmp.Equal(again, want) {
		t.Errorf("after a failure: %+v, %v", again, err)
	}
	expect.Must(s.StartNew(t.Context(), here))(t)
	expect.Equal(t, expect.Must(s.LatestCompaction(t.Context(), here))(t).ID, 0, "in a new conversation")
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
	for step, want := range map[string]string{
		"AFTER INSERT ON compaction": whole, "AFTER UPDATE OF retired ON message": whole, "AFTER UPDATE OF short ON message": whole, "": short,
	} {
		dir := t.TempDir()
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
		child.Env = append(os.Environ(), "REVERIE_TEST_KILL_DIR="+dir, "REVERIE_TEST_KILL_AT="+step)
		out := expect.Must(child.StdoutPipe())(t)
		expect.OK(t, child.Start())
		expect.Must(out.Read(make([]byte, 1)))(t) // it is about to compact, or did
		time.Sleep(300 * time.Millisecond)
		expect.OK(t, child.Process.Kill())
		var exit *exec.ExitError
		if err := child.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: the child was not killed: %v", step, err)
		}
		db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
		s := history.NewStore(db)
		expect.Equal(t, texts(t, s, here)+" / "+expect.Must(s.LatestCompaction(t.Context(), here))(t).Summary, want, "killed when %s", step)
		_ = db.Close()
	}
}

// killAt is the program that is killed: it stalls in the midst of a step, or when all is done.
func killAt(t *testing.T, dir, step string) {
	db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	_, compact := compacted(t, history.NewStore(db))
	if step != "" {
		expect.Must(db.Exec(`CREATE TRIGGER stall ` + step + ` BEGIN
			SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n); END`))(t)
		fmt.Print(".")
	}
	expect.Must(compact())(t)
	fmt.Print(".")
	time.Sleep(time.Minute)
}
