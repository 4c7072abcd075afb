package session

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/delivery"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/store"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// working is a world whose model holds back its nth request until release.
func working(t *testing.T, nth int, answers ...string) (w *world, release func()) {
	t.Helper()
	w = newWorld(t, t.TempDir(), answers...)
	w.inGroup()
	held, requests := make(chan struct{}), 0
	w.script.hold = func(string) <-chan struct{} {
		if requests++; requests == nth {
			return held
		}
		return nil
	}
	return w, func() { close(held) }
}

// inRoom is a message in !group.
func inRoom(id, person, text string) chat.Message {
	return chat.Message{Head: chat.Head{ID: id, Room: "!group", Sender: person, At: time.Now()}, Text: text}
}

// during delivers in once the model has n requests.
func (w *world) during(t *testing.T, n int, in ...chat.Inbound) {
	t.Helper()
	waitUntil(t, "the model is asked", func() bool { return len(w.script.asked()) >= n })
	for _, in := range in {
		expect.OK(t, w.Deliver(t.Context(), in))
	}
}

// handles waits until these messages are handled, in this order.
func (w *world) handles(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		select {
		case got := <-w.room.handled:
			expect.Equal(t, got, id)
		case <-time.After(testTimeout):
			t.Fatalf("%s is not handled", id)
		}
	}
}

const harbour = `{"entry":"The harbour opens at seven"}`

// TestMessageJoinsTheTurn: what a person writes while tools run is in the turn's next request, and its answer is
// the only one. Messages of others and commands wait.
func TestMessageJoinsTheTurn(t *testing.T) {
	w, release := working(t, 1, harbour, "Both done.", "To the friend.", "Later.")
	expect.OK(t, w.Deliver(t.Context(), inRoom("$1", owner, "do one")))
	w.during(t, 1, inRoom("$2", friend, "and me?"), inRoom("$3", owner, "do two as well"), inRoom("$4", owner, "and three"),
		inRoom("$5", owner, "!tasks"), inRoom("$6", owner, "after that"))
	release()
	w.handles(t, "$1", "$3", "$4", "$2", "$5", "$6")
	expect.Equal(t, strings.Join(w.room.order, " "), "re:$1 re:$2 re:$5 re:$6")
	answers(t, w.room.said("$1"), "Both done.")
	asked := w.script.asked()
	expect.Has(t, asked[1], "do two as well", "and three")
	expect.Lacks(t, asked[1], "and me?", "after that")
	expect.Equal(t, strings.Join(expect.Must(delivery.QuestionsOf(t.Context(), w.cfg.DB, "re:$1"))(t), " "), "$1 $3 $4")
}

// TestMessageAfterTheLastTool: what comes during the last request waits for a turn of its own.
func TestMessageAfterTheLastTool(t *testing.T) {
	w, release := working(t, 2, harbour, "Done.", "That, too.")
	expect.OK(t, w.Deliver(t.Context(), inRoom("$1", owner, "do one")))
	w.during(t, 2, inRoom("$2", owner, "do two as well"))
	release()
	w.handles(t, "$1", "$2")
	expect.Equal(t, strings.Join(w.room.order, " "), "re:$1 re:$2")
}

// TestJoinedTextIsLabelled: a message with others' text that joins a turn lowers the label from the next request on.
// Holds S2.
func TestJoinedTextIsLabelled(t *testing.T) {
	for _, foreign := range []bool{true, false} {
		w, release := working(t, 1, harbour, addTask, "Well.")
		before := w.left(t)
		expect.OK(t, w.Deliver(t.Context(), inRoom("$1", owner, "do one")))
		more := inRoom("$2", owner, "see this")
		if foreign {
			more.Quotes = []chat.Quote{foreignQuote}
		}
		w.during(t, 1, more)
		release()
		w.handles(t, "$1", "$2")
		past := expect.Must(w.cfg.History.Load(t.Context(), "!group"))(t)
		label := past[len(past)-1].Label.Integrity
		asked, done := len(w.questionsAsked(t)), w.left(t)-before // the note is done in both
		if foreign && (asked != 1 || done != 1 || label >= trust.User) || !foreign && (asked != 0 || done != 2 || label < trust.User) {
			t.Errorf("foreign %v: %d questions, %d done, label %s", foreign, asked, done, label)
		}
	}
}

// TestJoinedMessageChanges: edits and redactions of the messages of a running turn, and !stop, count as for one message.
func TestJoinedMessageChanges(t *testing.T) {
	head := chat.Head{ID: "$3", Room: "!group", Sender: owner, At: time.Now()}
	for name, c := range map[string]struct {
		in         chat.Inbound
		order      string
		has, lacks string // in the last request
	}{
		"an edit":              {chat.Edit{Change: chat.Change{Head: head, Target: "$2"}, Text: "changed"}, "re:$1", "changed", "do two"},
		"an edit of the first": {chat.Edit{Change: chat.Change{Head: head, Target: "$1"}, Text: "changed"}, "re:$1", "changed", "do one"},
		"a redaction":          {chat.Redaction{Change: chat.Change{Head: head, Target: "$2"}}, "re:$1", "do one", "do two"},
		"one of the first":     {chat.Redaction{Change: chat.Change{Head: head, Target: "$1"}}, "re:$2", "do two", "do one"},
		"!stop":                {chat.Message{Head: head, Text: "!stop"}, "re:$1 re:$3", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, release := working(t, 1, harbour, "never")
			w.stop()
			w.cfg.EditDebounce = time.Millisecond
			w.restart(t)
			first := w.script.hold
			w.script.hold = func(body string) <-chan struct{} {
				if strings.Contains(body, "do one") && strings.Contains(body, "do two") && len(w.script.asked()) == 2 {
					return make(chan struct{})
				}
				return first(body)
			}
			expect.OK(t, w.Deliver(t.Context(), inRoom("$1", owner, "do one")))
			w.during(t, 1, inRoom("$2", owner, "do two"))
			release()
			waitUntil(t, "the model is asked again", func() bool { return len(w.script.asked()) == 2 })
			if r, ok := c.in.(chat.Redaction); ok { // as the inbox has it
				w.room.mu.Lock()
				w.room.gone = map[string]bool{r.Target: true}
				w.room.mu.Unlock()
			}
			expect.OK(t, w.Deliver(t.Context(), c.in))
			for range 3 {
				select {
				case <-w.room.handled:
				case <-time.After(testTimeout):
					t.Fatal("messages are not handled")
				}
			}
			expect.Equal(t, strings.Join(w.room.order, " "), c.order)
			if c.has == "" {
				expect.Equal(t, len(w.script.asked()), 2)
				return
			}
			expect.Has(t, w.lastAsked(), c.has)
			expect.Lacks(t, w.lastAsked(), c.lacks)
			answers(t, w.room.said(strings.TrimPrefix(c.order, "re:")), "fine")
		})
	}
}

// TestJoinedBeforeCrash: after a crash the joined messages are answered with the first, under the same reply, once,
// however they are delivered again.
func TestJoinedBeforeCrash(t *testing.T) {
	for _, together := range []bool{true, false} {
		w := newWorld(t, t.TempDir(), "Both done.", "For the friend.")
		call := llm.ToolCall{ID: "c1", Name: "append_memory", Arguments: harbour}
		w.append(t, history.Message{Role: llm.User, EventID: "$1", Sender: owner, Text: "do one"},
			history.Message{Role: llm.Assistant, Calls: []llm.ToolCall{call}}, history.Message{Role: llm.Tool, CallID: "c1", Text: "Noted."},
			history.Message{Role: llm.User, EventID: "$2", Sender: owner, Text: "do two as well"})
		for _, id := range []string{"$1", "$2"} {
			expect.OK(t, delivery.RecordAnswer(t.Context(), w.cfg.DB, id, "re:$1"))
		}
		in := func(id, text string) chat.Inbound {
			return chat.Message{Head: chat.Head{ID: id, Room: "!dm", Sender: owner, Private: true, At: time.Now()}, Text: text}
		}
		s := newSession(w.Manager, "!dm")
		if one, two := in("$1", "do one"), in("$2", "do two as well"); together {
			s.handle(t.Context(), []chat.Inbound{one, two})
		} else {
			s.handle(t.Context(), []chat.Inbound{one})
			s.handle(t.Context(), []chat.Inbound{two})
		}
		expect.Equal(t, strings.Join(w.room.order, " "), "re:$1")
		answers(t, w.room.said("$1"), "Both done.")
		expect.Equal(t, len(w.script.asked()), 1)
	}
}

const joinKilled = "REVERIE_TEST_JOIN_IN"

// TestAskAndJoinSurviveKills: after kills at any moment each message is answered once, the question is asked once
// and the vote counts once.
func TestAskAndJoinSurviveKills(t *testing.T) {
	if dir := os.Getenv(joinKilled); dir != "" {
		askUntilKilled(t, dir)
		return
	}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 7))
	for kills, joined := 10, 0; kills > 0; {
		w := newWorld(t, t.TempDir())
		w.stop()
		w.exec(t, `CREATE TABLE seen (what TEXT, id TEXT, PRIMARY KEY (what, id))`)
		for done, lives := false, 1; !done; lives++ {
			killed, within := false, 0
			if kills > 0 {
				within = 40 * lives
			}
			if done, killed = live(t, "TestAskAndJoinSurviveKills", joinKilled+"="+w.dir, within, random); killed && !done {
				kills--
			}
		}
		rows := strings.Join(w.column(t, `SELECT role || ' ' || event_id || ' ' || text FROM message WHERE event_id <> '' AND room = '!dm' ORDER BY id`), "\n")
		const asks = "Which day suits you?\n\n1. Saturday\n2. Sunday"
		vote := "\nuser $v > Answer to the question “Which day suits you?”: Sunday\nassistant re:$v Booked."
		switch rows {
		case "user $1 work\nuser $2 and more\nassistant re:$1 " + asks + vote:
			joined++
		case "user $1 work\nassistant re:$1 Done.\nuser $2 and more\nassistant re:$2 " + asks + vote:
		default:
			t.Fatalf("the conversation is\n%s", rows)
		}
		if twice := w.column(t, `SELECT what FROM seen WHERE what LIKE 'said %' GROUP BY what HAVING count(*) > 1`); len(twice) > 0 {
			t.Fatalf("said differently: %v", twice)
		}
		t.Log("kills left:", kills, "joined:", joined)
	}
}

// askUntilKilled is the process to kill. Like a transport, it delivers messages until they are handled.
func askUntilKilled(t *testing.T, dir string) {
	w := newWorld(t, dir)
	w.stop()
	w.who.directWith = func(context.Context, string) (string, error) { return owner, nil }
	note := func(what, id string) {
		if _, err := w.cfg.DB.ExecContext(context.Background(), `INSERT INTO seen (what, id) VALUES (?, ?) ON CONFLICT DO NOTHING`, what, id); err != nil {
			t.Error(err)
		}
	}
	noted := func(what string) string {
		all, _ := store.Column[string](context.Background(), w.cfg.DB, `SELECT id FROM seen WHERE what = ?`, what)
		return strings.Join(all, " ")
	}
	w.script.reply = func(body string) (string, bool) { return answerOf(t, body), true }
	w.script.hold = func(string) <-chan struct{} {
		slow := make(chan struct{})
		time.AfterFunc(time.Duration(2+rand.IntN(6))*time.Millisecond, func() { close(slow) })
		return slow
	}
	w.room.onSay = func(m chat.Outgoing) {
		switch {
		case m.Draft || m.Closed:
		case len(m.Options) > 0:
			note("asked", m.ID)
			fallthrough
		default:
			note("said "+m.ID, fmt.Sprint(m.Text, m.Options))
		}
	}
	go func() {
		for id := range w.room.handled {
			note("handled "+id, id)
		}
	}()
	fmt.Println("begins")
	w.restart(t)
	head := chat.Head{Room: "!dm", Sender: owner, Private: true, At: time.Now()}
	deliver := func(id string, in chat.Inbound) {
		if noted("handled "+id) == "" {
			_ = w.Deliver(context.Background(), in)
		}
	}
	of := func(id string) chat.Head { head.ID = id; return head }
	deliver("$1", chat.Message{Head: of("$1"), Text: "work"})
	waitUntil(t, "it works", func() bool { return len(w.script.asked()) > 0 || noted("handled $1") != "" || noted("asked") != "" })
	deliver("$2", chat.Message{Head: of("$2"), Text: "and more"})
	waitUntil(t, "it is asked", func() bool { return noted("asked") != "" && noted("handled $2") != "" })
	deliver("$v", chat.Vote{Change: chat.Change{Head: of("$v"), Target: noted("asked")}, Option: "b"})
	waitUntil(t, "all is handled", func() bool { return noted("handled $v") != "" && noted("handled $1") != "" })
	fmt.Println("done")
}

// answerOf is the model: it notes something for "work", asks for "and more", and books after a vote.
func answerOf(t *testing.T, body string) string {
	var r struct {
		Messages []struct{ Role, Content string }
	}
	expect.OK(t, json.Unmarshal([]byte(body), &r))
	last, tools := "", 0
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			last, tools = m.Content, 0
		case "tool":
			tools++
		}
	}
	switch {
	case strings.Contains(last, "Answer to the question"):
		return "Booked."
	case strings.Contains(last, "and more"):
		return askDay
	case tools == 0:
		return harbour
	}
	return "Done."
}

// TestInterruptedAnsweringAgain: a question is redacted while its answer is made again, and nothing has
// joined that work. The conversation goes on.
func TestInterruptedAnsweringAgain(t *testing.T) {
	w, release := working(t, 2, "First.", "Second.", "Third.")
	defer release()
	expect.OK(t, w.Deliver(t.Context(), inRoom("$1", owner, "do one")))
	w.handles(t, "$1")
	by := chat.Head{ID: "$again", Room: "!group", Sender: owner, At: time.Now()}
	expect.OK(t, w.Deliver(t.Context(), chat.Reaction{Change: chat.Change{Head: by, Target: "$1"}, Action: chat.RetryAnswer}))
	gone := chat.Head{ID: "$gone", Room: "!group", Sender: owner, At: time.Now()}
	w.during(t, 2, chat.Redaction{Change: chat.Change{Head: gone, Target: "$1"}}, inRoom("$2", owner, "do two"))
	w.handles(t, "$again", "$gone", "$2")
	answers(t, w.room.said("$2"), "Third.")
}

// TestMessageDuringAnotherAnswer: what is written while an earlier answer is made again gets an answer of its own.
// The new version of an old message is not where people look for it.
func TestMessageDuringAnotherAnswer(t *testing.T) {
	w, release := working(t, 2, "First.", harbour, "Again.", "Third.")
	expect.OK(t, w.Deliver(t.Context(), inRoom("$1", owner, "do one")))
	w.handles(t, "$1")
	by := chat.Head{ID: "$again", Room: "!group", Sender: owner, At: time.Now()}
	expect.OK(t, w.Deliver(t.Context(), chat.Reaction{Change: chat.Change{Head: by, Target: "$1"}, Action: chat.RetryAnswer}))
	w.during(t, 2, inRoom("$2", owner, "do two"))
	release()
	w.handles(t, "$again", "$2")
	answers(t, w.room.said("$1"), "Again.")
	answers(t, w.room.said("$2"), "Third.")
}
