package matrix

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/session"
)

func stored(t *testing.T, q *queue, ch ...incoming) {
	t.Helper()
	must(t, q.inTx(t.Context(), func(tx *sql.Tx) error { return q.store(t.Context(), tx, &batch{in: ch}) }))
}

func editOf(id, target, text string) incoming {
	return incoming{addressed: true, Inbound: session.Inbound{ID: id, Room: "!r", Sender: "@you:x", Text: text, At: time.UnixMilli(5), Change: session.Edited, Target: target}}
}

// textOf is what waits to be answered under id.
func textOf(t *testing.T, q *queue, id string) string {
	t.Helper()
	rows, err := q.waiting(t.Context(), 100)
	must(t, err)
	for _, r := range rows {
		if r.ID == id {
			return r.Text
		}
	}
	return ""
}

// A message that waits is edited while it is being completed: the edit is kept, and so is
// what completed it. Of several edits the last one counts, also when an earlier one is
// delivered again.
func TestEditsWhileWaiting(t *testing.T) {
	q := newQueue(t)
	m := session.Inbound{ID: "$1", Room: "!r", Sender: "@you:x", Text: "apple", At: time.UnixMilli(5)}
	must(t, q.inTx(t.Context(), func(tx *sql.Tx) error { return q.put(t.Context(), tx, m, "new") }))
	stored(t, q, editOf("$e1", "$1", "pear"), editOf("$e2", "$1", "plum"))
	m.Quotes = []session.Quote{{ID: "$q", Text: "quoted"}}
	must(t, q.completed(t.Context(), m))
	if got := textOf(t, q, "$1"); got != "plum" {
		t.Errorf("after it was completed it reads %q", got)
	}
	stored(t, q, editOf("$e4", "$1", "fig"))
	stored(t, q, editOf("$e2", "$1", "plum"))
	if got := textOf(t, q, "$1"); got != "fig" {
		t.Errorf("after an edit came twice it reads %q", got)
	}
}

// A message of ours is removed while its event is on its way, and said again later: the
// event that was on its way is taken back, and the new one has a transaction of its own.
// Holds F33.
func TestRemovedWhileSending(t *testing.T) {
	q := newQueue(t)
	ctx := t.Context()
	c := &Client{q: q, drafts: map[string]*draft{}, outWake: make(chan struct{}, 1)}
	row := func() outRow {
		t.Helper()
		r, err := scanOut(q.db.QueryRowContext(ctx, `SELECT `+outColumns+` FROM outbox WHERE id = 're:$1'`))
		must(t, err)
		return r
	}
	say := func(text string) {
		t.Helper()
		must(t, q.say(ctx, "!r", session.Outgoing{ID: "re:$1", Text: text}, text, "", nil))
	}
	say("first")
	sending := row()
	for range 2 {
		must(t, c.Remove(ctx, "!r", "re:$1"))
	}
	if _, err := q.delivered(ctx, sending, "$late", false); err != nil {
		t.Fatal(err)
	}
	say("second")
	must(t, q.sent(ctx, sending))
	if r := row(); r.txn() == sending.txn() || r.eventID != "" || r.state != "pending" || r.text != "second" {
		t.Errorf("said again it is %+v", r)
	}
	must(t, q.inTx(ctx, func(tx *sql.Tx) error { return q.echoed(ctx, tx, echo{txn: sending.txn(), event: "$later"}) }))
	var gone []string
	back, err := q.takebacks(ctx)
	must(t, err)
	for _, b := range back {
		gone = append(gone, b.event)
	}
	if got := strings.Join(gone, " "); got != "$late $later" {
		t.Errorf("taken back: %s", got)
	}
	must(t, c.Remove(ctx, "!r", "re:$never"))
	if r, err := q.draft(ctx, &draft{id: "re:$never", room: "!r"}); err != nil || r.state == "draft" {
		t.Errorf("a draft of what was removed before it was shown: %+v, %v", r, err)
	}
}

// Looking for the parts of an answer does not read all that was ever said.
func TestPartsAreFoundByTheIndex(t *testing.T) {
	q := newQueue(t)
	for _, id := range []string{"re:$a", "re:$a-2", "re:$a+1", "re:$a-10", "re:$ab-2", "re:$a.", "re:$a,2"} {
		must(t, q.say(t.Context(), "!r", session.Outgoing{ID: id, Text: id}, id, "", nil))
	}
	var found, plan string
	must(t, q.db.QueryRowContext(t.Context(), `SELECT group_concat(id, ' ') FROM (SELECT id FROM outbox WHERE `+partsOf+` ORDER BY seq)`, "re:$a").Scan(&found))
	if want := "re:$a-2 re:$a+1 re:$a-10"; found != want {
		t.Errorf("parts %s, want %s", found, want)
	}
	var n int
	must(t, q.db.QueryRowContext(t.Context(), `EXPLAIN QUERY PLAN SELECT id, text FROM outbox WHERE `+partsOf, "re:$a").Scan(&n, &n, &n, &plan))
	if !strings.Contains(plan, "SEARCH") {
		t.Errorf("the plan is %s", plan)
	}
}

// An answer that an earlier version sent in parts is given anew, or taken back: its parts go.
func TestPartsOfEarlierVersions(t *testing.T) {
	q, ctx := newQueue(t), t.Context()
	parts := func(id string) string {
		t.Helper()
		for i, part := range []string{id, id + "-2"} {
			must(t, q.update(ctx, `INSERT INTO outbox (id, room, state, event_id, text, created_at) VALUES (?1, '!r', 'sent', ?1 || '!', 'x', ?2)`, part, i))
		}
		return id
	}
	must(t, q.say(ctx, "!r", out(parts("re:$1"), "anew"), "anew", "", nil))
	must(t, (&Client{q: q, outWake: make(chan struct{}, 1)}).Remove(ctx, "!r", parts("re:$2")))
	back, err := q.takebacks(ctx)
	must(t, err)
	var gone []string
	for _, b := range back {
		gone = append(gone, b.event)
	}
	if got := strings.Join(gone, " "); got != "re:$1-2! re:$2! re:$2-2!" {
		t.Errorf("taken back: %s", got)
	}
}

// Files of messages that are on their way in or out are kept; those of others are nobody's here.
func TestKeptFiles(t *testing.T) {
	q := newQueue(t)
	for id, m := range map[string]session.Inbound{
		"new":  {Files: []session.File{{Name: "a", Path: "media/a"}, {Name: "failed"}, {Name: "b", Path: "media/b"}}, Quotes: []session.Quote{{ID: "$q", Text: "quoted"}}},
		"done": {Files: []session.File{{Name: "c", Path: "media/c"}}}, "bare": {Quotes: []session.Quote{{ID: "$q", Text: "quoted"}}}, "empty": {},
	} {
		m.ID, m.Room, m.Sender = id, "!r", "@you:x"
		must(t, q.inTx(t.Context(), func(tx *sql.Tx) error { return q.put(t.Context(), tx, m, strings.Replace(id, "bare", "new", 1)) }))
	}
	for _, id := range []string{"out", "sent"} {
		must(t, q.say(t.Context(), "!r", session.Outgoing{ID: id}, "", `{"name":"x","path":"media/`+id+`"}`, nil))
	}
	must(t, q.update(t.Context(), `UPDATE outbox SET state = 'sent' WHERE id = 'sent'`))
	got, err := (&Client{q: q}).KeptFiles(t.Context())
	must(t, err)
	slices.Sort(got)
	if want := "media/a media/b media/out"; strings.Join(got, " ") != want {
		t.Errorf("kept %q, want %s", got, want)
	}
}
