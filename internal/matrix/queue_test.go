package matrix

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"

	"reverie/internal/chat"
	"reverie/internal/settings"
	"reverie/internal/store/storetest"
)

func newQueue(t *testing.T) *queue {
	t.Helper()
	db := sure(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { db.Close() })
	return &queue{db: db, now: time.Now}
}

func inbound(id string) chat.Inbound {
	return chat.Inbound{ID: id, Room: "!r", Sender: "@me:b", SenderName: "Me", Text: "text of " + id, Private: true, At: time.UnixMilli(1_700_000_000_000)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sure returns what there is if there was no error.
func sure[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// equal fails unless got is what is wanted.
func equal[T comparable](t *testing.T, got, want T, what string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", fmt.Sprintf(what, args...), got, want)
	}
}

// Holds F8.
func TestInboxAndTokenGoTogether(t *testing.T) {
	q, ctx := newQueue(t), t.Context()
	must(t, q.take(ctx, "@b:b", "DEV", "s1", &batch{in: []incoming{{Inbound: inbound("$1")}, {Inbound: inbound("$2")}}}))
	rows := sure(q.waiting(ctx, 100))(t)
	want := []inRow{{1, false, inbound("$1")}, {2, false, inbound("$2")}}
	equal(t, cmp.Diff(want, rows, cmp.AllowUnexported(inRow{})), "", "inbox (-want +got)")
	// A sync that cannot be stored whole leaves nothing behind, and no token.
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := q.take(cancelled, "@b:b", "DEV", "s2", &batch{in: []incoming{{Inbound: inbound("$3")}}}); err == nil {
		t.Error("stored with a cancelled context")
	}
	sure(q.db.ExecContext(ctx, `CREATE TRIGGER fail BEFORE UPDATE ON matrix_sync BEGIN SELECT raise(ABORT, 'disk full'); END`))(t)
	if err := q.take(ctx, "@b:b", "DEV", "s2", &batch{in: []incoming{{Inbound: inbound("$3")}}}); err == nil {
		t.Error("stored without its token")
	}
	equal(t, len(sure(q.waiting(ctx, 100))(t)), 2, "messages, none without its token")
	equal(t, sure(q.position(ctx, "@b:b", "DEV"))(t).token, "s1", "the token")
	if p, err := q.position(ctx, "@b:b", "OTHER"); err != nil || p.token != "" || !p.at.IsZero() {
		t.Errorf("another device's position %+v %v, want none", p, err)
	}
}

func out(id, text string) chat.Outgoing { return chat.Outgoing{ID: id, Text: text} }

// head returns the row to be sent next; the test wants exactly one.
func head(t *testing.T, q *queue) outRow {
	t.Helper()
	heads := sure(q.heads(t.Context()))(t)
	if len(heads) != 1 {
		t.Fatalf("%d heads, want 1: %+v", len(heads), heads)
	}
	return heads[0]
}

func carried(t *testing.T, q *queue, id, event string) {
	t.Helper()
	if got, err := q.delivered(t.Context(), outRow{id: id}, event, false); err != nil || got != event {
		t.Fatalf("delivered(%s, %s) = %s, %v", id, event, got, err)
	}
}

func TestSayingAgain(t *testing.T) {
	q, ctx := newQueue(t), t.Context()
	must(t, q.say(ctx, "!a", out("1", "one"), "one", "", nil))
	r := head(t, q)
	must(t, q.say(ctx, "!a", out("1", "one"), "one", "", nil)) // the same again changes nothing
	equal(t, head(t, q), r, "row changed")
	// While the first text is being sent, a second one comes: the row must not be taken for sent.
	must(t, q.say(ctx, "!a", out("1", "uno"), "uno", "", nil))
	carried(t, q, "1", "$1")
	must(t, q.sent(ctx, r))
	newer := head(t, q)
	if newer.text != "uno" || newer.revision != 2 || newer.eventID != "$1" {
		t.Errorf("row %+v, want the newer text as an edit of $1", newer)
	}
	must(t, q.sent(ctx, newer))
	must(t, q.say(ctx, "!a", out("1", "uno"), "uno", "", nil))
	equal(t, len(sure(q.heads(ctx))(t)), 0, "sent already, but due again")
}

func member(who, membership, before string) *event.Event {
	e := &event.Event{Type: event.StateMember, StateKey: &who, Content: event.Content{Raw: map[string]any{"membership": membership}}}
	if before != "" {
		e.Unsigned.PrevContent = &event.Content{Raw: map[string]any{"membership": before}}
	}
	return e
}

// Holds F13.
func TestDropOld(t *testing.T) {
	text := func(id string) *event.Event {
		return &event.Event{ID: "$1", Type: event.EventMessage, Sender: "@me:b", RoomID: "!r", Content: event.Content{Raw: map[string]any{"body": id}}}
	}
	for _, c := range []struct {
		name   string
		fresh  bool
		events []*event.Event
		want   string
	}{
		{"running as usual", false, []*event.Event{text("a"), text("b")}, "a b "},
		{"fresh store", true, []*event.Event{text("a"), member(self, "join", "invite"), text("b")}, ""},
		{"joined in this batch", false, []*event.Event{text("old"), member(self, "join", ""), text("a")}, "a "},
		{"asked between invitation and joining", false, []*event.Event{text("old"), member(self, "invite", ""), text("a"), member(self, "join", "invite"), text("b")}, "a b "},
		{"left and came back", false, []*event.Event{member(self, "invite", ""), text("old"), member(self, "leave", "join"), text("old"), member(self, "join", "leave"), text("a")}, "a "},
		{"our name changed", false, []*event.Event{text("a"), member(self, "join", "join"), text("b")}, "a b "},
		{"joined, then our name changed", false, []*event.Event{text("old"), member(self, "join", "leave"), text("a"), member(self, "join", "join"), text("b")}, "a b "},
		{"somebody else joined", false, []*event.Event{text("a"), member("@x:b", "join", "")}, "a "},
	} {
		t.Run(c.name, func(t *testing.T) {
			room := &mautrix.SyncJoinedRoom{Timeline: mautrix.SyncTimeline{SyncEventsList: mautrix.SyncEventsList{Events: c.events}}}
			states := 0
			for _, e := range c.events {
				if e.StateKey != nil {
					states++
				}
			}
			dropped := dropOld(room, self, c.fresh)
			got := ""
			for _, e := range room.Timeline.Events {
				if e.StateKey != nil {
					states--
					continue
				}
				got += e.Content.Raw["body"].(string) + " "
			}
			equal(t, got, c.want, "kept")
			equal(t, states, 0, "states that were dropped")
			equal(t, dropped, len(c.events)-len(room.Timeline.Events), "dropped, it says")
		})
	}
}

// What a message refers to and brings is there after a restart, and gone when the message is done.
func TestMessageKeepsWhatItBrings(t *testing.T) {
	q, ctx := newQueue(t), t.Context()
	m := inbound("$1")
	m.Thread, m.ReplyTo = "$root", "$said"
	m.Quotes = []chat.Quote{{ID: "$said", Sender: "@you:b", Text: "said before", At: time.UnixMilli(5), Why: chat.QuoteReply}}
	m.Files = []chat.File{{Name: "a.png", Type: "image/png", Size: 3, Path: "media/a"}}
	must(t, q.take(ctx, "@b:b", "DEV", "s1", &batch{in: []incoming{{Inbound: m}}}))
	rows := sure(q.waiting(ctx, 1))(t)
	equal(t, cmp.Diff([]inRow{{1, incomplete(m), m}}, rows, cmp.AllowUnexported(inRow{}), cmp.Comparer(time.Time.Equal)), "", "inbox (-want +got)")
	must(t, handled(ctx, q.db, "$1"))
	var left string
	must(t, q.db.QueryRowContext(ctx, `SELECT brought FROM inbox WHERE id = '$1'`).Scan(&left))
	equal(t, left, "", "what a handled message brought is still there")
}

// TestUnsentInTheLanguage: why a file was not sent is told in the language of the room.
func TestUnsentInTheLanguage(t *testing.T) {
	c := &Client{cfg: Config{Text: func(_ context.Context, _, key string, fill ...string) string {
		return (*settings.Messages)(nil).In("de", key, fill...)
	}}}
	row := outRow{id: "a", room: "!r", file: `{"name":"tee.pdf"}`}
	if got := c.unsent(t.Context(), row, errFileGone).text; got != "tee.pdf konnte nicht gesendet werden: die Datei ist hier nicht mehr aufgehoben." {
		t.Errorf("got %q", got)
	}
	if got := c.unsent(t.Context(), row, context.Canceled).text; !strings.HasSuffix(got, ": der Homeserver nimmt es nicht an.") {
		t.Errorf("got %q", got)
	}
}

// What was read of a room before it was left may be done: it is entered again only after it is read again.
func TestLanesDoNothingTwice(t *testing.T) {
	l, wake := newLanes(), make(chan struct{}, 1)
	var g errgroup.Group
	work := func() bool {
		did := l.work(&g, "a", wake, func() {})
		_ = g.Wait()
		return did
	}
	l.begin()
	if !l.idle() || !work() {
		t.Error("a free room cannot be entered")
	}
	if work() || l.idle() {
		t.Error("entered twice for what was read once")
	}
	<-wake
	done := make(chan struct{})
	l.begin()
	if !l.work(&g, "a", wake, func() { <-done }) {
		t.Error("cannot be entered again")
	}
	l.begin()
	close(done)
	_ = g.Wait()
	if work() || l.idle() {
		t.Error("entered for what was read while it was busy")
	}
	l.begin()
	if !l.idle() || !work() {
		t.Error("a room that was left cannot be entered")
	}
}

func stored(t *testing.T, q *queue, ch ...incoming) {
	t.Helper()
	must(t, q.inTx(t.Context(), func(tx *sql.Tx) error { return q.store(t.Context(), tx, &batch{in: ch}) }))
}

func editOf(id, target, text string) incoming {
	return incoming{addressed: true, Inbound: chat.Inbound{ID: id, Room: "!r", Sender: "@you:x", Text: text, At: time.UnixMilli(5), Change: chat.Edited, Target: target}}
}

// textOf is what waits to be answered under id.
func textOf(t *testing.T, q *queue, id string) string {
	t.Helper()
	rows := sure(q.waiting(t.Context(), 100))(t)
	for _, r := range rows {
		if r.ID == id {
			return r.Text
		}
	}
	return ""
}

// A message that waits is edited while it is being completed: the edit is kept, and so is what completed it. Of several edits the last
// one counts, also when an earlier one is delivered again.
func TestEditsWhileWaiting(t *testing.T) {
	q := newQueue(t)
	m := chat.Inbound{ID: "$1", Room: "!r", Sender: "@you:x", Text: "apple", At: time.UnixMilli(5)}
	must(t, q.inTx(t.Context(), func(tx *sql.Tx) error { return q.put(t.Context(), tx, m, "new") }))
	stored(t, q, editOf("$e1", "$1", "pear"), editOf("$e2", "$1", "plum"))
	m.Quotes = []chat.Quote{{ID: "$q", Text: "quoted"}}
	must(t, q.completed(t.Context(), m))
	equal(t, textOf(t, q, "$1"), "plum", "after it was completed it reads")
	stored(t, q, editOf("$e4", "$1", "fig"))
	stored(t, q, editOf("$e2", "$1", "plum"))
	equal(t, textOf(t, q, "$1"), "fig", "after an edit came twice it reads")
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
		r := sure(scanOut(q.db.QueryRowContext(ctx, `SELECT `+outColumns+` FROM outbox WHERE id = 're:$1'`)))(t)
		return r
	}
	say := func(text string) {
		t.Helper()
		must(t, q.say(ctx, "!r", chat.Outgoing{ID: "re:$1", Text: text}, text, "", nil))
	}
	say("first")
	sending := row()
	for range 2 {
		must(t, c.Redact(ctx, "!r", "re:$1"))
	}
	sure(q.delivered(ctx, sending, "$late", false))(t)
	say("second")
	must(t, q.sent(ctx, sending))
	if r := row(); r.txn() == sending.txn() || r.eventID != "" || r.state != "pending" || r.text != "second" {
		t.Errorf("said again it is %+v", r)
	}
	must(t, q.inTx(ctx, func(tx *sql.Tx) error { return q.echoed(ctx, tx, echo{txn: sending.txn(), event: "$later"}) }))
	var gone []string
	back := sure(q.takebacks(ctx))(t)
	for _, b := range back {
		gone = append(gone, b.event)
	}
	equal(t, strings.Join(gone, " "), "$late $later", "taken back")
	must(t, c.Redact(ctx, "!r", "re:$never"))
	if r, err := q.draft(ctx, &draft{id: "re:$never", room: "!r"}); err != nil || r.state == "draft" {
		t.Errorf("a draft of what was removed before it was shown: %+v, %v", r, err)
	}
}

// Looking for the parts of an answer does not read all that was ever said.
func TestPartsAreFoundByTheIndex(t *testing.T) {
	q := newQueue(t)
	for _, id := range []string{"re:$a", "re:$a-2", "re:$a+1", "re:$a-10", "re:$ab-2", "re:$a.", "re:$a,2"} {
		must(t, q.say(t.Context(), "!r", chat.Outgoing{ID: id, Text: id}, id, "", nil))
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
	must(t, (&Client{q: q, outWake: make(chan struct{}, 1)}).Redact(ctx, "!r", parts("re:$2")))
	back := sure(q.takebacks(ctx))(t)
	var gone []string
	for _, b := range back {
		gone = append(gone, b.event)
	}
	equal(t, strings.Join(gone, " "), "re:$1-2! re:$2! re:$2-2!", "taken back")
}

// Files of messages that are on their way in or out are kept; those of others are nobody's here.
func TestKeptFiles(t *testing.T) {
	q := newQueue(t)
	for id, m := range map[string]chat.Inbound{
		"new":  {Files: []chat.File{{Name: "a", Path: "media/a"}, {Name: "failed"}, {Name: "b", Path: "media/b"}}, Quotes: []chat.Quote{{ID: "$q", Text: "quoted"}}},
		"done": {Files: []chat.File{{Name: "c", Path: "media/c"}}}, "bare": {Quotes: []chat.Quote{{ID: "$q", Text: "quoted"}}}, "empty": {},
	} {
		m.ID, m.Room, m.Sender = id, "!r", "@you:x"
		must(t, q.inTx(t.Context(), func(tx *sql.Tx) error { return q.put(t.Context(), tx, m, strings.Replace(id, "bare", "new", 1)) }))
	}
	for _, id := range []string{"out", "sent"} {
		must(t, q.say(t.Context(), "!r", chat.Outgoing{ID: id}, "", `{"name":"x","path":"media/`+id+`"}`, nil))
	}
	must(t, q.update(t.Context(), `UPDATE outbox SET state = 'sent' WHERE id = 'sent'`))
	got := sure((&Client{q: q}).KeptFiles(t.Context()))(t)
	slices.Sort(got)
	if want := "media/a media/b media/out"; strings.Join(got, " ") != want {
		t.Errorf("kept %q, want %s", got, want)
	}
}
