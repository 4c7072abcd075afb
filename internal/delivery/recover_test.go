package delivery

import (
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// A database is older than what the bot has sent. The rows of what it said since are as if they had been sent from here: nothing
// is sent again, and nothing that was answered is delivered.
func TestRecover(t *testing.T) {
	q, ctx := newRows(t), t.Context()
	stored(t, q, Incoming{Event: inbound("$asked")}, Incoming{Event: inbound("$open")})
	expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!r", Message: out("re:$before", "was sent since"), Text: "was sent since"}))
	expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!r", Message: out("re:$changed", "one"), Text: "one"}))
	expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!r", Message: out("re:$changed", "two"), Text: "two"}))
	said := []OutboxRow{
		{ID: "re:$before", Room: "!r", Kind: "text", EventID: "$1", Revision: 1},
		{ID: "re:$changed", Room: "!r", Kind: "text", EventID: "$2", Revision: 1}, // its second text was not
		{ID: "re:$asked", Room: "!r", Kind: "text", EventID: "$3"},
		{ID: "re:$asked", Room: "!r", Kind: "text", EventID: "$3", Revision: 1},
		{ID: "re:$new", Room: "!r", Kind: "text", EventID: "$4", Revision: 2, Thread: "$root"},
		{ID: "re:$open", Room: "!r", Kind: "text", EventID: "$5"}, // cut off
	}
	answers := map[string][]chat.Head{
		"re:$asked": {{ID: "$asked", Sender: "@me:b", At: time.UnixMilli(5)}},
		"re:$new":   {{ID: "$new", Sender: "@me:b", At: time.UnixMilli(5)}, {ID: "$with", Sender: "@me:b", At: time.UnixMilli(5)}},
	}
	for range 2 { // it may be repeated
		expect.OK(t, q.out.Recover(ctx, said, answers))
	}
	stored(t, q, Incoming{Event: inbound("$new")}, Incoming{Event: inbound("$with")}, Incoming{Event: inbound("$later")}) // as a sync shows them
	var left string
	for _, r := range expect.Must(q.in.Waiting(ctx, nil, 100))(t) {
		left += r.Message.ID
	}
	expect.Equal(t, left, "$open$later", "to be answered")
	if r := head(t, q); r.ID != "re:$changed" || r.EventID != "$2" || r.Text != "two" {
		t.Errorf("to be sent: %+v", r)
	}
	var redacted string
	for _, r := range expect.Must(q.out.Redactions(ctx))(t) {
		redacted += r.Event
	}
	expect.Equal(t, redacted, "$5", "to be redacted")
	expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!r", Message: out("re:$open", "anew"), Text: "anew"}))
	expect.Equal(t, expect.Must(store.Value[string](ctx, q.db, `SELECT event_id FROM outbox WHERE id = 're:$open'`))(t), "", "the event of the new answer")
	if active := expect.Must(q.out.ActiveInThread(ctx, "!r", "$root"))(t); !active {
		t.Error("the thread is forgotten")
	}
	expect.Equal(t, len(expect.Must(RepliesTo(ctx, q.db, "$with"))(t)), 1, "replies to a message that came with another")
}
