package session

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"reverie/internal/store"
)

// asksOwner is a world in which the owner's message $1 has led to a question.
func asksOwner(t *testing.T, answers ...string) (*world, approval) {
	t.Helper()
	w := newWorld(t, t.TempDir(), append([]string{addTask, "Well."}, answers...)...)
	w.inGroup()
	w.deliver(t, askingMessage)
	return w, w.approvalOf(t, "$1")
}

var askingMessage = Inbound{ID: "$1", Room: "!group", Sender: owner, Text: "do what they say", At: time.Now(), Quotes: []Quote{foreignQuote}}

// TestAnsweredButNotAsked: the program died between an answer and the question that belongs
// to it. The next start asks.
func TestAnsweredButNotAsked(t *testing.T) {
	w, a := asksOwner(t)
	w.stop()
	w.exec(t, `UPDATE approval SET state = 'gathering', expires = 0`)
	w.room.final = map[string]Outgoing{}
	w.restart(t)
	w.deliver(t, askingMessage)
	if _, poll := w.polled(t, "$1"); len(poll.Options) != 3 || w.approvalOf(t, "$1").state != open {
		t.Errorf("after the restart %s is %s: %+v", a.code, w.approvalOf(t, "$1").state, poll)
	}
}

// TestStoppedTurnAsksNothing: what a stopped turn wanted to do is not asked later.
func TestStoppedTurnAsksNothing(t *testing.T) {
	w := newWorld(t, t.TempDir(), addTask)
	w.inGroup()
	reached := make(chan struct{})
	requests := 0
	w.script.hold = func(string) <-chan struct{} {
		if requests++; requests == 2 {
			close(reached)
			return make(chan struct{})
		}
		return nil
	}
	must(t, w.Deliver(t.Context(), askingMessage))
	<-reached
	must(t, w.Deliver(t.Context(), Inbound{ID: "$2", Room: "!group", Sender: owner, Text: "!stop", At: time.Now()}))
	<-w.room.handled
	<-w.room.handled
	if a := w.approvalOf(t, "$1"); a.state != void {
		t.Errorf("it is %s", a.state)
	}
}

// TestVoidQuestionIsClosed: who is asked sees that a question is over.
func TestVoidQuestionIsClosed(t *testing.T) {
	w, _ := asksOwner(t)
	w.deliver(t, Inbound{ID: "$2", Room: "!group", Sender: owner, Change: Edited, Target: "$1", Text: "say hello", At: time.Now()})
	if _, poll := w.polled(t, "$1"); len(poll.Options) != 0 || !strings.Contains(poll.Text, "withdrawn") {
		t.Errorf("the question is %+v", poll)
	}
}

// TestOldQuestionsEnd: a start asks nothing again that has expired, and deletes what ended
// long ago.
func TestOldQuestionsEnd(t *testing.T) {
	w, a := asksOwner(t)
	later := time.Duration(0)
	again := func() {
		w.stop()
		later += 31 * 24 * time.Hour
		at := later
		w.cfg.Now = func() time.Time { return time.Now().Add(at) }
		w.restart(t)
	}
	again()
	until(t, "it has expired", func() bool { return w.approvalOf(t, "$1").state == expired })
	until(t, "its poll is closed", func() bool { _, poll := w.polled(t, "$1"); return len(poll.Options) == 0 })
	again()
	until(t, "it is deleted", func() bool {
		all, err := w.approvals(t.Context(), w.cfg.DB, `WHERE code = ?`, a.code)
		return err == nil && len(all) == 0
	})
}

// TestApprovalsForget: neither a redaction nor !forget leaves the words in a question, and
// what is forgotten is not done.
func TestApprovalsForget(t *testing.T) {
	for name, forget := range map[string]func(t *testing.T, w *world){
		"the words of an act": func(t *testing.T, w *world) { w.forgets(t, "Pay Mallory a hundred euros") },
		"a part of them":      func(t *testing.T, w *world) { w.forgets(t, "hundred") },
		"the message":         func(t *testing.T, w *world) { w.forgets(t, "do what they say") },
		"a redaction": func(t *testing.T, w *world) {
			w.deliver(t, Inbound{ID: "$r", Room: "!group", Sender: owner, Change: TakenBack, Target: "$1", At: time.Now()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := asksOwner(t)
			skills := w.left(t)
			forget(t, w)
			w.deliver(t, Inbound{ID: "$v", Room: "!group", Sender: owner, Change: Voted, Target: askPrefix + a.code, Text: optionOnce, At: time.Now()})
			now := w.approvalOf(t, "$1")
			if now.state != void || now.quote != "" || len(now.acts)+len(now.seen) != 0 || w.left(t) != skills {
				t.Errorf("what is left is %+v, and %d were done", now, w.left(t)-skills)
			}
		})
	}
}

func (w *world) forgets(t *testing.T, text string) {
	t.Helper()
	must(t, store.InTx(t.Context(), w.cfg.DB, func(tx *sql.Tx) error { return ForgetApprovals(t.Context(), tx, []string{"", "unrelated", text}) }))
}
