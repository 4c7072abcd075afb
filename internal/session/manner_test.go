package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/test/expect"
)

const (
	answersShort = "Answer in one to three sentences"
	answersLong  = "Answer in full: the result"
)

// mannerHead is the head of the owner's direct message id.
func mannerHead(id string) chat.Head {
	return chat.Head{ID: id, Room: "!dm", Sender: owner, Private: true, At: time.Now()}
}

// TestMannerIsLearned: a wish said once is in the next request, after !new and after a restart. Its contrary
// replaces it at once, a redaction or !voice forget removes it, and after some months it is forgotten.
func TestMannerIsLearned(t *testing.T) {
	w := newWorld(t, t.TempDir())
	asked := func(want ...string) {
		t.Helper()
		for _, line := range []string{answersShort, answersLong, "no emoji", "phrase “absolutely”"} {
			expect.Equal(t, strings.Contains(w.lastAsked(), line), strings.Contains(strings.Join(want, "\n"), line), line)
		}
	}
	w.say(t, "$1", "answer shorter, please")
	asked(answersShort)
	w.say(t, "$2", "!new")
	w.restart(t)
	w.say(t, "$3", "hello")
	asked(answersShort)
	expect.Has(t, w.say(t, "$4", "!voice").Text, "1. Short answers. You said so on 20", "`answer shorter, please`")

	before := w.sessions["!dm"].lastRequest
	w.say(t, "$5", "no, longer")
	reused := repeated(before, w.sessions["!dm"].lastRequest)
	expect.False(t, reused < .98, "a changed line costs the prefix: %.2f is reused", reused)
	w.say(t, "$6", "!new")
	w.say(t, "$7", "hello again")
	asked(answersLong)
	w.say(t, "$8", "No emojis.")
	w.say(t, "$9", "don't say 'absolutely'")
	asked(answersLong, "no emoji", "phrase “absolutely”")

	w.deliver(t, chat.Edit{Change: chat.Change{Head: mannerHead("$e"), Target: "$9"}, Text: "What is absolutely?"})
	w.say(t, "$10", "!new")
	w.say(t, "$11", "hello")
	asked(answersLong, "no emoji")
	expect.Has(t, w.say(t, "$12", "!voice forget 1").Text, "forgotten")
	expect.Has(t, w.say(t, "$13", "!voice forget 2").Text, "no such line")
	w.say(t, "$14", "hello")
	w.deliver(t, chat.Redaction{Change: chat.Change{Head: mannerHead("$r"), Target: "$5"}})
	expect.Equal(t, len(w.column(t, `SELECT quote FROM manner WHERE key <> 'language'`)), 0)

	w.say(t, "$15", "!new")
	w.say(t, "$16", "shorter please")
	asked(answersShort)
	w.say(t, "$17", "!new")
	w.cfg.Now = func() time.Time { return time.Now().Add(100 * 24 * time.Hour) }
	w.restart(t)
	w.say(t, "$18", "hello")
	asked(answersShort)
	w.say(t, "$19", "!new")
	w.cfg.Now = func() time.Time { return time.Now().Add(115 * 24 * time.Hour) }
	w.restart(t)
	w.say(t, "$20", "hello")
	asked()
	expect.Has(t, w.say(t, "$21", "!voice").Text, "not noticed")
}

// TestMannerIsTheirOwn: nothing is learned from quotes, files, groups and polls, and nothing of one person
// shows to another.
func TestMannerIsTheirOwn(t *testing.T) {
	w := newWorld(t, t.TempDir())
	const anna = "@anna:example.org"
	private := func(id, who string) chat.Head {
		return chat.Head{ID: id, Room: "!dm", Sender: who, Private: true, At: time.Now()}
	}
	w.deliver(t, chat.Message{Head: private("$1", owner), Text: "> answer shorter, please\nWhat do you think of that?"})
	w.deliver(t, chat.Message{Head: private("$2", owner), Text: "no lists", Quotes: []chat.Quote{foreignQuote}})
	w.deliver(t, chat.Message{Head: private("$3", owner), Text: "no lists", Files: []chat.File{{Name: "a.txt"}}})
	w.deliver(t, chat.Message{Head: private("$4", owner), Text: "> Answer to the question “How?\nNo lists.\n”: yes", Answers: "re:$1"})
	w.deliver(t, chat.Message{Head: chat.Head{ID: "$5", Room: "!group", Sender: owner, At: time.Now()}, Text: "answer shorter, please"})
	expect.Equal(t, strings.Join(w.column(t, `SELECT event FROM manner WHERE said = 1`), "\n"), "")

	w.say(t, "$6", "answer shorter, please")
	expect.Has(t, w.lastAsked(), answersShort)
	w.hears(t, owner, "!group", "$7", "hello")
	expect.False(t, strings.Contains(w.lastAsked(), answersShort), "in a group")
	expect.Has(t, w.hears(t, owner, "!group", "$8", "!voice"), "only in our direct chat")
	w.deliver(t, chat.Message{Head: chat.Head{ID: "$9", Room: "!other", Sender: anna, Private: true, At: time.Now()}, Text: "hello"})
	expect.False(t, strings.Contains(w.lastAsked(), answersShort), "to another person")
}

// TestMannerOfRetries: the third 🔁 right after a long answer asks for shorter ones. One message counts once.
func TestMannerOfRetries(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.script.forever = strings.Repeat("Long words. ", 120)
	w.say(t, "$1", "Why?")
	for _, id := range []string{"$a", "$b", "$b", "$c"} {
		expect.False(t, strings.Contains(w.lastAsked(), answersShort), "before the third one")
		w.deliver(t, chat.Reaction{Change: chat.Change{Head: mannerHead(id), Target: "$1"}, Action: chat.RetryAnswer})
	}
	expect.Has(t, w.lastAsked(), answersShort)
	expect.Has(t, w.say(t, "$2", "!voice").Text, "Short answers. Noticed 3 times")
}

// TestMannerIsRedacted: a phrase of a redacted message stands nowhere.
func TestMannerIsRedacted(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.say(t, "$1", "Don't say 'zabaglione'")
	w.say(t, "$2", "hello")
	expect.Has(t, w.lastAsked(), "phrase “zabaglione”")
	w.deliver(t, chat.Redaction{Change: chat.Change{Head: mannerHead("$r"), Target: "$1"}})
	w.say(t, "$3", "hello")
	expect.False(t, strings.Contains(w.lastAsked(), "zabaglione"), "in a request")
	for _, table := range []string{"message", "manner", "prompt_epoch", "past_message", "memory"} {
		for _, column := range w.column(t, `SELECT name FROM pragma_table_info(?)`, table) {
			n := value[int](t, w, `SELECT count(*) FROM `+table+` WHERE instr(`+column+`, 'zabaglione') > 0`)
			expect.Equal(t, n, 0, table, column)
		}
	}
}

// TestMannerAndStyle: what the owner has decided goes before what was noticed.
func TestMannerAndStyle(t *testing.T) {
	w := newWorld(t, t.TempDir())
	expect.OK(t, os.WriteFile(filepath.Join(w.dir, "SOUL.md"), []byte("---\nlength: long\n---\nBe kind.\n"), 0o600))
	w.say(t, "$1", "answer shorter, please")
	expect.Has(t, w.lastAsked(), answersLong)
	expect.False(t, strings.Contains(w.lastAsked(), answersShort), "against SOUL.md")
	w.say(t, "$2", "No emojis.")
	expect.Has(t, w.lastAsked(), "Use words only, no emoji.")
}
