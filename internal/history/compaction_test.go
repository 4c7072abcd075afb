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

	"github.com/google/go-cmp/cmp"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/store/storetest"
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
	made := must(compact())(t)
	if got := texts(t, s, here) + " " + texts(t, s, there); got != "five|six other" {
		t.Errorf("loaded: %s", got)
	}
	got, err := s.Compacted(t.Context(), here)
	want := history.Compaction{ID: made.ID, Room: here, Conversation: 1, From: all[0].ID, To: all[3].ID, Messages: 4, Shortened: 1, Level: history.Summary,
		Reason: "full", Summary: "They counted.", Details: []string{"ada: one", "ada: two"}, Before: 60, After: 20, At: noon}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	if got.Text() != "They counted.\n\nWord for word:\n- ada: one\n- ada: two" {
		t.Errorf("text: %q", got.Text())
	}
	var originals string
	noError(t, db.QueryRow(`SELECT group_concat(text || compaction, ' ' ORDER BY id) FROM message WHERE room = ?`, here).Scan(&originals))
	if id := string(rune('0' + made.ID)); originals != strings.ReplaceAll("one# two# three# four# five is long0 six0", "#", id) {
		t.Errorf("kept: %s", originals)
	}
	if _, err := compact(); err == nil { // what it was planned for is gone
		t.Errorf("again: %v", err)
	}
	if again, err := s.Compacted(t.Context(), here); err != nil || !cmp.Equal(again, want) {
		t.Errorf("after a failure: %+v, %v", again, err)
	}
	must(s.StartNew(t.Context(), here))(t)
	if c, err := s.Compacted(t.Context(), here); err != nil || c.ID != 0 {
		t.Errorf("in a new conversation: %+v, %v", c, err)
	}
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
		"stored": whole, "marked": whole, "shortened": whole, "committed": short,
	} {
		dir := t.TempDir()
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
		child.Env = append(os.Environ(), "REVERIE_TEST_KILL_DIR="+dir, "REVERIE_TEST_KILL_AT="+step)
		out, err := child.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: the child was not killed: %v\n%s", step, err, out)
		}
		db := must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
		s := history.NewStore(db)
		if got := texts(t, s, here) + " / " + must(s.Compacted(t.Context(), here))(t).Summary; got != want {
			t.Errorf("killed when %s: %s", step, got)
		}
		_ = db.Close()
	}
}

// killAt is the program that is killed.
func killAt(t *testing.T, dir, step string) {
	s := history.NewStore(must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t))
	_, compact := compacted(t, s)
	s.Reached = func(now string) {
		if now == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	must(compact())(t)
	t.Fatal("not killed")
}

func TestDetails(t *testing.T) {
	for _, tt := range []struct {
		name, summary string
		before        []string
		said          []string
		most          int
		want          string
		earlier       string
	}{
		{"codes and numbers", "They spoke of the flat.", nil, []string{"u Hello there. The door code is 4711-K. How are you?", "a Fine. I noted it."}, 100, "ada: The door code is 4711-K.", ""},
		{"what the summary has", "The code of the door is 4711-K.", nil, []string{"u The door code is 4711-K."}, 100, "", ""},
		{"a number alone says nothing", "They paid 17 dollars.", nil, []string{"u My locker is 17."}, 100, "ada: My locker is 17.", ""},
		{"a number in another", "The locker room has 417 shelves.", nil, []string{"u My locker is 17."}, 100, "ada: My locker is 17.", ""},
		{"addresses, paths, names", "Nothing.", nil, []string{"u see https://example.org/a?b=c for it", "u it is in /etc/hosts or so", "u ask Jana about it", "u nothing here at all"}, 100,
			"ada: see https://example.org/a?b=c for it|ada: it is in /etc/hosts or so|ada: ask Jana about it", ""},
		{"decisions are kept first", "Nothing.", nil, []string{"u DECISION_LOCKED: we ship on a friday", "u The door code is 4711-K."}, 16, "ada: DECISION_LOCKED: we ship on a friday", ""},
		{"the newest is kept, in the order it was said", "Nothing.", []string{"ada: my first car was a T4"}, []string{"u my second car was a T5", "u my third car was a T6"}, 26, "ada: my second car was a T5|ada: my third car was a T6", ""},
		{"earlier ones are kept", "Nothing.", []string{"ada: my first car was a T4"}, []string{"u yes"}, 34, "ada: my first car was a T4", ""},
		{"said twice", "Nothing.", []string{"ada: The door code is 4711-K."}, []string{"u The door code is 4711-K."}, 100, "ada: The door code is 4711-K.", ""},
		{"tools last, and not many", "Nothing.", nil, []string{"u look", "c1 ", "r1 port 8080 is open\nport 8081 is open\nport 8082 is open", "u my port is 22"}, 50, "tool: port 8082 is open|ada: my port is 22", ""},
		{"of the earlier summary", "Nothing.", []string{"ada: yes, on 12 May"}, []string{"u yes"}, 100, "Ada has the code 4711-K.|ada: yes, on 12 May", "They met. Ada has the code 4711-K."},
		{"codes before numbers", "Nothing.", nil, []string{"u The code is 4711-K.", "u I am 42."}, 14, "ada: The code is 4711-K.", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(history.Details(talk(tt.said...), history.Compaction{Summary: tt.earlier, Details: tt.before}, tt.summary, tt.most), "|"); got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// Holds L10.
func TestCheckSummary(t *testing.T) {
	source := "ada: I like tea, and would like some more of it now.\nassistant: Here you are."
	for text, ok := range map[string]bool{
		"Ada likes tea, and got some.":     true,
		"Ada mag Tee; 茶はおいしいと言った。もっと飲みたい。": true,
		"Tea.":    false,
		"   \n  ": false,
		"I like tea,  and would like some more of it now.":               false, // an echo
		strings.Repeat("Ada likes tea. ", 25):                            false, // in circles
		"<html><body>502 Bad Gateway from the server</body>":             false,
		"{[}{]}{[}{]}{[}{]}{[}{]}{[}{]}{[}{]}":                           false,
		"Ada likes " + strings.Repeat("\xff\xff\xff", 20):                false,
		"Ada said: " + strings.Join(strings.Split(words(400), ","), " "): false, // too long
	} {
		if err := history.Check(text, source, 100); (err == nil) != ok {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// words is n different words.
func words(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(string(rune('a'+i%26)), 1+i/26) + ",")
	}
	return b.String()
}

func TestExtract(t *testing.T) {
	said := talk("u I have a dog\nand more", "u I have a dog", "a nice", "c1 ", "r1 x", "u I have a cat", "a nice")
	if got, want := history.Extract("Before.", said, 200), "Before.\n\nSaid since, in short:\n- ada: I have a dog\n- ada: I have a cat"; got != want {
		t.Errorf("got %q", got)
	}
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf("u I have %d dogs ", i)+strings.Repeat("and ", 50))
	}
	if got, want := history.Extract("Before.\n\nSaid since, in short:\n- (earlier messages are not listed)\n- ada: I have a dog", talk("u I have a cat"), 200),
		"Before.\n\n- ada: I have a dog\n\nSaid since, in short:\n- ada: I have a cat"; got != want {
		t.Errorf("after another extract: %q", got)
	}
	got := history.Extract(strings.Repeat("Before.\n", 500), talk(many...), 300)
	if n := llm.EstimateTokens(got); n > 300 || n < 150 || !strings.Contains(got, "earlier messages are not listed") || !strings.Contains(got, "Before.") {
		t.Errorf("%d tokens: %s", n, got)
	}
	if got := history.Extract("Before.", talk("c1 ", "r1 x"), 100); got != "Before." {
		t.Errorf("without anything new: %q", got)
	}
	if got := history.Extract("", talk("c1 ", "r1 x"), 100); got == "" {
		t.Error("nothing at all is left of it")
	}
}

func TestTranscript(t *testing.T) {
	all := talk("u hello", "c1 ", "r1 "+strings.Repeat("word ", 5000), "a done")
	all[0].Header = "[Sat 12:00]"
	got := history.Transcript(all, 500)
	if n := llm.EstimateTokens(got); n > 500 {
		t.Errorf("%d tokens", n)
	}
	for _, want := range []string{"ada [Sat 12:00]: hello\n", "assistant calls read_file: {\"path\":\"a.txt\"}\n", "tool: word word", "characters left out here", "assistant: done"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
}
