package session

import (
	"context"
	"testing"
	"time"
)

// TestDirectChatIsNotShownLater: who comes into a direct chat reads nothing of it through the
// bot: not when they want an answer again, not by a thread, and not when they quote a command.
func TestDirectChatIsNotShownLater(t *testing.T) {
	const secret = "CANARY-3301"
	later := func(id string) Inbound {
		return Inbound{ID: id, Room: "!dm", Sender: bob, Text: "what is that?", At: time.Now()}
	}
	quote := func(why QuoteKind, id, text string) []Quote {
		return []Quote{{ID: id, Sender: owner, Text: text, At: time.Now().Add(-time.Minute), Why: why}}
	}
	for name, attack := range map[string]func() Inbound{
		"answered again": func() Inbound {
			in := later("$b")
			in.Change, in.Target = AskAgain, "$1"
			return in
		},
		"a thread": func() Inbound {
			in := later("$b")
			in.Thread, in.Branch, in.Quotes = "$1", "$1", quote(QuoteThread, "$1", secret)
			return in
		},
		"a reply": func() Inbound {
			in := later("$b")
			in.ReplyTo, in.Quotes = "$1", quote(QuoteReply, "$1", "my word is "+secret)
			return in
		},
		"a command": func() Inbound {
			in := later("$b")
			in.ReplyTo, in.Quotes = "$2", quote(QuoteReply, "$2", "!remember "+secret)
			return in
		},
		"what a command said": func() Inbound {
			in := later("$b")
			in.ReplyTo, in.Quotes = "$out", quote(QuoteReply, "$out", "I remember "+secret)
			in.Quotes[0].Ours = "re:$2"
			return in
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, t.TempDir())
			w.cfg.Settle = time.Microsecond
			w.say(t, "$1", "my word is "+secret)
			w.say(t, "$2", "!remember my word is "+secret)
			w.cfg.DirectWith = alwaysOpen
			lacks(t, w.asksWhile(func() { w.deliver(t, attack()) }), secret)
		})
	}
}

// alwaysOpen is of rooms that are no direct chats.
func alwaysOpen(context.Context, string) (string, error) { return "", nil }
