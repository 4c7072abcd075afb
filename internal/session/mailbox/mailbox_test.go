package mailbox

import (
	"context"
	"strings"
	"testing"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

func says(id, sender, text string) chat.Message {
	return chat.Message{Head: chat.Head{ID: id, Sender: sender}, Text: text}
}

func change(id, target string) chat.Change {
	return chat.Change{Head: chat.Head{ID: id}, Target: target}
}

// ids names what is queued, or dequeued.
func ids[I chat.Inbound](all []I) string {
	return strings.Join(store.Map(all, func(in I) string { return chat.HeadOf(in).ID }), " ")
}

// TestPut: what is put into the mailbox while $1 is answered cancels the answer, and takes its place in the queue.
func TestPut(t *testing.T) {
	for name, c := range map[string]struct {
		in      chat.Inbound
		stored  bool // the history has $1
		cause   error
		waiting string
	}{
		"another message":             {says("$3", "@b", "hello"), true, nil, "$2 $3"},
		"!stop":                       {says("$3", "@a", "!stop"), true, agent.ErrStopped, "$3 $2"},
		"an edit":                     {chat.Edit{Change: change("$3", "$1")}, true, ErrChanged, "$2 $3"},
		"an edit before it is stored": {chat.Edit{Change: change("$3", "$1")}, false, nil, "$2 $3"},
		"an edit of another message":  {chat.Edit{Change: change("$3", "$2")}, true, nil, "$2 $3"},
		"a redaction":                 {chat.Redaction{Change: change("$3", "$1")}, false, ErrChanged, "$3 $2"},
		"a redaction of the answer":   {chat.Redaction{Change: change("$3", chat.ReplyID("$1"))}, true, agent.ErrWithdrawn, "$3 $2"},
		"a redaction of another":      {chat.Redaction{Change: change("$3", "$2")}, true, nil, "$3 $2"},
		"a reaction that stops it":    {chat.Reaction{Change: change("$3", "$1"), Action: chat.StopAnswer}, true, agent.ErrStopped, "$2 $3"},
		"a reaction that repeats it":  {chat.Reaction{Change: change("$3", "$1"), Action: chat.RetryAnswer}, true, nil, "$2 $3"},
	} {
		t.Run(name, func(t *testing.T) {
			b := New()
			work, cancel := context.WithCancelCause(t.Context())
			b.SetRunning("@a", cancel)
			b.AddSubjects(c.stored, "$1", chat.ReplyID("$1"))
			b.Put(says("$2", "@b", "hi"))
			b.Put(c.in)
			<-b.Ready()
			expect.Equal(t, context.Cause(work), c.cause)
			expect.Equal(t, b.ClearStopped(), name == "!stop")
			expect.Equal(t, ids(b.waiting), c.waiting)
			if last := b.waiting[1]; name == "a reaction that repeats it" { // it is being written already
				expect.Equal(t, chat.TargetOf(last), "")
			}
			b.SetRunning("", nil)
			b.Put(c.in) // nothing runs: nothing is cancelled
		})
	}
}

// TestNext: the messages of one person are answered together; commands, changes and other people's are not.
func TestNext(t *testing.T) {
	b := New()
	unproven := says("$7", "@b", "me")
	unproven.Unproven = true
	for _, in := range []chat.Inbound{says("$1", "@a", "one"), says("$2", "@a", "two"), says("$3", "@a", "!status"), says("$4", "@a", "three"),
		chat.Edit{Change: change("$5", "$1")}, says("$6", "@b", "four"), unproven} {
		b.Put(in)
	}
	for _, want := range []string{"$1 $2", "$3", "$4", "$5", "$6", "$7", ""} {
		expect.Equal(t, b.Empty(), want == "")
		expect.Equal(t, ids(b.Next()), want)
	}
	for range maxBurst + 1 {
		b.Put(says("$1", "@a", "one"))
	}
	expect.Equal(t, len(b.Next()), maxBurst)
}

// TestJoin: a person's messages pass those of others, up to the first command or change.
func TestJoin(t *testing.T) {
	b := New()
	for _, in := range []chat.Inbound{says("$2", "@b", "hi"), says("$3", "@a", "and"), says("$4", "@a", "!status"), says("$5", "@a", "then")} {
		b.Put(in)
	}
	expect.Equal(t, ids(b.Join(says("$1", "@a", "!retry"))), "$3")
	expect.Equal(t, ids(b.waiting), "$2 $4 $5")
}

// TestRequeue: changes of a message and of its reply are applied before it is answered again.
func TestRequeue(t *testing.T) {
	b := New()
	for _, in := range []chat.Inbound{says("$3", "@b", "hi"), chat.Edit{Change: change("$4", "$1")}, chat.Edit{Change: change("$5", "$3")},
		chat.Reaction{Change: change("$6", chat.ReplyID("$1"))}} {
		b.Put(in)
	}
	expect.False(t, !b.HasEdit("$9", "$1") || b.HasEdit("$2"), "the queued edits are of $1 and $3")
	b.Requeue([]chat.Message{says("$1", "@a", "one"), says("$2", "@a", "two")})
	expect.Equal(t, ids(b.waiting), "$4 $6 $1 $2 $3 $5")
}

// TestStop: only the person for whom the work runs stops it, or anyone for a reason of the program.
func TestStop(t *testing.T) {
	b := New()
	expect.False(t, b.Stop("", agent.ErrStopped), "nothing ran")
	work, cancel := context.WithCancelCause(t.Context())
	b.SetRunning("@a", cancel)
	expect.False(t, b.Stop("@b", agent.ErrStopped), "another person's work is stopped")
	expect.Equal(t, work.Err(), nil)
	expect.False(t, !b.Stop("@a", agent.ErrStopped), "their work goes on")
	expect.Equal(t, context.Cause(work), agent.ErrStopped)
}
