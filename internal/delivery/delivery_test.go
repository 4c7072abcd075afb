package delivery

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/chat"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
)

// rows are the inbox and the outbox of an empty database.
type rows struct {
	db  *store.DB
	in  *Inbox
	out *Outbox
}

func newRows(t *testing.T) rows {
	t.Helper()
	db := expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { db.Close() })
	in, out := New(db, time.Now, func(text string) bool { return text == "!retry" })
	return rows{db, in, out}
}

func inbound(id string) chat.Message {
	return chat.Message{Head: chat.Head{ID: id, Room: "!r", Sender: "@me:b", Private: true, At: time.UnixMilli(1_700_000_000_000)}, Text: "text of " + id}
}

func out(id, text string) chat.Outgoing { return chat.Outgoing{ID: id, Text: text} }

// due returns the rows to be sent now.
func due(t *testing.T, q rows) []OutboxRow {
	t.Helper()
	all, _, err := q.out.Due(t.Context(), time.Now(), time.Hour, 100)
	expect.OK(t, err)
	return all
}

// head returns the row to be sent next; the test wants exactly one.
func head(t *testing.T, q rows) OutboxRow {
	t.Helper()
	heads := due(t, q)
	if len(heads) != 1 {
		t.Fatalf("%d heads, want 1: %+v", len(heads), heads)
	}
	return heads[0]
}

func carried(t *testing.T, q rows, id, event string) {
	t.Helper()
	if got, err := q.out.MarkDelivered(t.Context(), OutboxRow{ID: id, Txn: id}, event, false); err != nil || got != event {
		t.Fatalf("delivered(%s, %s) = %s, %v", id, event, got, err)
	}
}

func TestStoreFinalAgain(t *testing.T) {
	q, ctx := newRows(t), t.Context()
	expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!a", Message: out("1", "one"), Text: "one"}))
	r := head(t, q)
	expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!a", Message: out("1", "one"), Text: "one"})) // the same again changes nothing
	expect.Equal(t, head(t, q), r, "row changed")
	// While the first text is being sent, a second one comes: the row must not be taken for sent.
	expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!a", Message: out("1", "uno"), Text: "uno"}))
	carried(t, q, "1", "$1")
	expect.OK(t, q.out.MarkSent(ctx, r))
	newer := head(t, q)
	if newer.Text != "uno" || newer.Revision != 2 || newer.EventID != "$1" {
		t.Errorf("row %+v, want the newer text as an edit of $1", newer)
	}
	expect.OK(t, q.out.MarkSent(ctx, newer))
	expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!a", Message: out("1", "uno"), Text: "uno"}))
	expect.Equal(t, len(due(t, q)), 0, "sent already, but due again")
}

// What a message refers to and brings is there after a restart, and gone when the message is done.
func TestAttachmentsRoundTrip(t *testing.T) {
	q, ctx := newRows(t), t.Context()
	m := inbound("$1")
	m.Thread, m.ReplyTo = "$root", "$said"
	m.Quotes = []chat.Quote{{ID: "$said", Sender: "@you:b", Text: "said before", At: time.UnixMilli(5), Why: chat.QuoteReply}}
	m.Files = []chat.File{{Name: "a.png", Type: "image/png", Size: 3, Path: "media/a"}}
	expect.OK(t, q.in.Commit(ctx, &Batch{In: []Incoming{{Event: m}}}, func(*sql.Tx) error { return nil }))
	rows := expect.Must(q.in.Waiting(ctx, nil, 1))(t)
	expect.Equal(t, cmp.Diff([]InboxRow{{Seq: 1, Incomplete: incomplete(m), Message: m}}, rows, cmp.Comparer(time.Time.Equal)), "", "inbox (-want +got)")
	expect.OK(t, q.in.MarkDone(ctx, q.db, "$1"))
	var left string
	expect.OK(t, q.db.QueryRowContext(ctx, `SELECT attachments FROM inbox WHERE id = '$1'`).Scan(&left))
	expect.Equal(t, left, "", "what a handled message brought is still there")
}

// What is being worked on is not delivered again, and counts for its room's share.
func TestWaitingWithoutWhatIsWorkedOn(t *testing.T) {
	q, ctx := newRows(t), t.Context()
	stored(t, q, Incoming{Event: inbound("$1")}, Incoming{Event: inbound("$2")}, Incoming{Event: inbound("$3")})
	handed := map[int64]bool{}
	look := func() (got string) {
		for _, r := range expect.Must(q.in.Waiting(ctx, handed, 2))(t) {
			got += r.Message.ID
			handed[r.Seq] = true
		}
		return got
	}
	expect.Equal(t, look(), "$1$2", "first look")
	expect.Equal(t, look(), "", "both are being worked on")
	expect.OK(t, q.in.MarkDone(ctx, q.db, "$1"))
	expect.Equal(t, look(), "$3", "one is answered")
	expect.Equal(t, len(handed), 2, "being worked on")
}

func stored(t *testing.T, q rows, ch ...Incoming) {
	t.Helper()
	expect.OK(t, q.in.Commit(t.Context(), &Batch{In: ch}, nil))
}

func editOf(id, target, text string) Incoming {
	return Incoming{Addressed: true, Event: chat.Edit{Change: chat.Change{Head: chat.Head{ID: id, Room: "!r", Sender: "@you:x", At: time.UnixMilli(5)}, Target: target}, Text: text}}
}

// textOf is what waits to be answered under id.
func textOf(t *testing.T, q rows, id string) string {
	t.Helper()
	rows := expect.Must(q.in.Waiting(t.Context(), nil, 100))(t)
	for _, r := range rows {
		if r.Message.ID == id {
			return r.Message.Text
		}
	}
	return ""
}

// A message that waits is edited while it is being completed: the edit is kept, and so is what completed it. Of several edits the last
// one counts, also when an earlier one is delivered again.
func TestEditsWhileWaiting(t *testing.T) {
	q := newRows(t)
	m := chat.Message{Head: chat.Head{ID: "$1", Room: "!r", Sender: "@you:x", At: time.UnixMilli(5)}, Text: "apple"}
	expect.OK(t, store.InTx(t.Context(), q.db, func(tx *sql.Tx) error { return q.in.insert(t.Context(), tx, m, "new") }))
	stored(t, q, editOf("$e1", "$1", "pear"), editOf("$e2", "$1", "plum"))
	m.Quotes = []chat.Quote{{ID: "$q", Text: "quoted"}}
	expect.OK(t, q.in.StoreCompleted(t.Context(), m))
	expect.Equal(t, textOf(t, q, "$1"), "plum", "after it was completed it reads")
	stored(t, q, editOf("$e4", "$1", "fig"))
	stored(t, q, editOf("$e2", "$1", "plum"))
	expect.Equal(t, textOf(t, q, "$1"), "fig", "after an edit came twice it reads")
}

// A message of ours is removed while its event is on its way, and said again later: the
// event that was being sent is redacted, and the new one has a transaction id of its own.
// Holds F33.
func TestRemoveWhileSending(t *testing.T) {
	q := newRows(t)
	ctx := t.Context()
	row := func() OutboxRow {
		t.Helper()
		r := expect.Must(scanOut(q.db.QueryRowContext(ctx, `SELECT `+outColumns+` FROM outbox WHERE id = 're:$1'`)))(t)
		return r
	}
	say := func(text string) {
		t.Helper()
		expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!r", Message: chat.Outgoing{ID: "re:$1", Text: text}, Text: text}))
	}
	say("first")
	sending := row()
	for range 2 {
		expect.OK(t, q.out.Remove(ctx, "!r", "re:$1"))
	}
	expect.Must(q.out.MarkDelivered(ctx, sending, "$late", false))(t)
	say("second")
	expect.OK(t, q.out.MarkSent(ctx, sending))
	if r := row(); r.Txn == sending.Txn || r.EventID != "" || r.State != "pending" || r.Text != "second" {
		t.Errorf("said again it is %+v", r)
	}
	expect.OK(t, store.InTx(ctx, q.db, func(tx *sql.Tx) error { return q.out.recordEcho(ctx, tx, Echo{Txn: sending.Txn, Event: "$later"}) }))
	var gone []string
	back := expect.Must(q.out.Redactions(ctx))(t)
	for _, b := range back {
		gone = append(gone, b.Event)
	}
	expect.Equal(t, strings.Join(gone, " "), "$late $later", "taken back")
	expect.OK(t, q.out.Remove(ctx, "!r", "re:$never"))
	if r, err := q.out.EnsureDraft(ctx, "!r", out("re:$never", "")); err != nil || r.State == "draft" {
		t.Errorf("a draft of what was removed before it was shown: %+v, %v", r, err)
	}
}

// Looking for the parts of an answer does not read all that was ever said.
func TestPartsUseIndex(t *testing.T) {
	q := newRows(t)
	var n int
	var plan string
	expect.OK(t, q.db.QueryRowContext(t.Context(), `EXPLAIN QUERY PLAN SELECT id, text FROM outbox WHERE `+partOf, "re:$a").
		Scan(&n, &n, &n, &plan))
	if !strings.Contains(plan, "SEARCH") {
		t.Errorf("the plan is %s", plan)
	}
}

// What is due is the oldest message of each room. A room whose message is postponed waits, and so do its drafts.
func TestDue(t *testing.T) {
	q, ctx, now := newRows(t), t.Context(), time.UnixMilli(1_700_000_000_000)
	for _, m := range []struct{ room, id string }{{"!a", "a1"}, {"!b", "b1"}, {"!a", "a2"}, {"!c", "c1"}, {"!d", "d1"}} {
		expect.OK(t, q.out.StoreFinal(ctx, Final{Room: m.room, Message: out(m.id, "hello"), Text: "hello"}))
	}
	ids := func(limit int) string {
		t.Helper()
		rows, next, err := q.out.Due(ctx, now, time.Hour, limit)
		expect.OK(t, err)
		said := []string{}
		for _, r := range rows {
			said = append(said, r.ID)
		}
		if !next.IsZero() {
			said = append(said, "then", next.Sub(now).String())
		}
		return strings.Join(said, " ")
	}
	row := func(id string) OutboxRow {
		return expect.Must(scanOut(q.db.QueryRowContext(ctx, `SELECT `+outColumns+` FROM outbox WHERE id = ?`, id)))(t)
	}
	expect.Equal(t, ids(9), "a1 b1 c1 d1")
	expect.Equal(t, ids(2), "a1 b1")
	expect.OK(t, q.out.Postpone(ctx, row("a1"), now.Add(time.Minute), errors.New("busy")))
	expect.OK(t, q.out.Postpone(ctx, row("c1"), now.Add(time.Second), errors.New("busy")))
	expect.OK(t, q.out.Postpone(ctx, row("d1"), now.Add(2*time.Hour), errors.New("the clock was ahead")))
	expect.Equal(t, ids(9), "b1 d1 then 1s")
	expect.Equal(t, expect.Must(q.out.EnsureDraft(ctx, "!a", out("a3", "")))(t).Behind, true)
	expect.Equal(t, expect.Must(q.out.EnsureDraft(ctx, "!e", out("e1", "")))(t).Behind, false)
	expect.OK(t, q.out.MarkSent(ctx, row("a1")))
	expect.Equal(t, ids(9), "b1 a2 d1 then 1s")
	now = now.Add(time.Second)
	expect.Equal(t, ids(9), "b1 a2 c1 d1 then 1h59m59s")
}

// A repeated or redacted answer loses its parts; files that a tool sent stay if it is repeated.
func TestPartsOfAnAnswer(t *testing.T) {
	q, ctx := newRows(t), t.Context()
	parts := func(id string) string {
		t.Helper()
		for i, part := range []string{"", "text", "whole", "file"} {
			expect.OK(t, store.Exec(ctx, q.out.db, `INSERT INTO outbox (id, message, part, room, state, event_id, text, created_at)
				VALUES (?1 || ?2, iif(?2 = '', '', ?1), ?2, '!r', 'sent', ?1 || '!' || ?2, 'x', ?3)`, id, part, i))
		}
		return id
	}
	expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!r", Message: out(parts("re:$1"), "anew"), Text: "anew"}))
	expect.OK(t, q.out.Remove(ctx, "!r", parts("re:$2")))
	back := expect.Must(q.out.Redactions(ctx))(t)
	var gone []string
	for _, b := range back {
		gone = append(gone, b.Event)
	}
	slices.Sort(gone)
	expect.Equal(t, strings.Join(gone, " "), "re:$1!text re:$1!whole re:$2! re:$2!file re:$2!text re:$2!whole", "taken back")
}

// Files of unanswered and unsent messages are kept; others are not listed.
func TestKeptFiles(t *testing.T) {
	q := newRows(t)
	for id, m := range map[string]chat.Message{
		"new": {Files: []chat.File{{Name: "a", Path: "media/a"}, {Name: "failed"}, {Name: "b", Path: "media/b"}},
			Quotes: []chat.Quote{{ID: "$q", Text: "quoted"}}},
		"done": {Files: []chat.File{{Name: "c", Path: "media/c"}}}, "bare": {Quotes: []chat.Quote{{ID: "$q", Text: "quoted"}}}, "empty": {},
	} {
		m.ID, m.Room, m.Sender = id, "!r", "@you:x"
		expect.OK(t, store.InTx(t.Context(), q.db, func(tx *sql.Tx) error {
			return q.in.insert(t.Context(), tx, m, strings.Replace(id, "bare", "new", 1))
		}))
	}
	for _, id := range []string{"out", "sent"} {
		expect.OK(t, q.out.StoreFinal(t.Context(), Final{Room: "!r", Message: chat.Outgoing{ID: id}, File: `{"name":"x","path":"media/` + id + `"}`}))
	}
	expect.OK(t, store.Exec(t.Context(), q.out.db, `UPDATE outbox SET state = 'sent' WHERE id = 'sent'`))
	got := expect.Must(q.in.KeptFiles(t.Context()))(t)
	slices.Sort(got)
	if want := "media/a media/b media/out"; strings.Join(got, " ") != want {
		t.Errorf("kept %q, want %s", got, want)
	}
}

// What was sent is a copy; what waits to be sent is a promise.
func TestForgetSentMessages(t *testing.T) {
	db := newRows(t).db
	for _, state := range []string{"sent", "dead", "pending"} {
		if _, err := db.Exec(`INSERT INTO outbox (id, room, text, poll, state, created_at)
			VALUES (?1, '!r', 'I know that tea is hot.', ?2, ?1, 0)`,
			state, `{"Text":"May I note \"tea is hot\"?"}`); err != nil {
			t.Fatal(err)
		}
	}
	tx := expect.Must(db.BeginTx(t.Context(), nil))(t)
	expect.OK(t, Forget(t.Context(), tx, []string{"tea is hot", `"[forgotten]"?`, ""}))
	expect.OK(t, tx.Commit())
	for state, want := range map[string]string{
		"sent": "I know that [forgotten].", "dead": "I know that [forgotten].", "pending": "I know that tea is hot.",
	} {
		var got string
		var poll string
		if err := db.QueryRow(`SELECT text, poll FROM outbox WHERE id = ?`, state).Scan(&got, &poll); err != nil || got != want {
			t.Errorf("%s: %q, %v", state, got, err)
		}
		if gone := poll == `{"Text":"May I note [forgotten]"}`; gone != (state != "pending") { // also across what JSON escapes
			t.Errorf("%s: the poll is %s", state, poll)
		}
	}
}

// TestPollInPlaceOfAnAnswer: an event cannot become a poll or stop being one, so another event carries the message;
// the old one is redacted. Options of an old poll do not count in the new one. Only an open poll is closed.
func TestPollInPlaceOfAnAnswer(t *testing.T) {
	q, ctx := newRows(t), t.Context()
	poll := func(question string) string {
		return `{"question":"` + question + `","options":[{"id":"a","text":"x"}]}`
	}
	final := func(text, poll string) OutboxRow {
		t.Helper()
		expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!r", Message: out("re:1", text), Text: text, Poll: poll}))
		return head(t, q)
	}
	vote := func(event, option string) int {
		t.Helper()
		v := chat.Vote{Change: chat.Change{Head: chat.Head{ID: "$v" + event + option, Room: "!r", Sender: "@me:b", At: time.Now()}, Target: event}, Option: option}
		expect.OK(t, q.in.Commit(ctx, &Batch{In: []Incoming{{Event: v}}}, nil))
		return len(expect.Must(q.in.Waiting(ctx, nil, 9))(t))
	}
	sent := func(r OutboxRow, event string) {
		t.Helper()
		expect.Must(q.out.MarkDelivered(ctx, r, event, true))(t)
	}
	expect.Must(q.out.EnsureDraft(ctx, "!r", out("re:1", "")))(t)
	carried(t, q, "re:1", "$draft")
	one := final("one?", poll("one?"))
	expect.False(t, one.Poll != poll("one?") || one.EventID != "" || one.Txn == "re:1" || one.Closed || one.Drafted, "%+v", one)
	sent(one, "$one")
	expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!r", Message: out("re:1", "one?"), Text: "one?", Poll: poll("one?")}))
	expect.Equal(t, len(due(t, q)), 0) // sent again: nothing
	two := final("two?", poll("two?"))
	sent(two, "$two")
	expect.Equal(t, vote("$one", AnswerID(one.Txn, "a")), 0)
	expect.Equal(t, vote("$two", AnswerID(one.Txn, "a")), 0)
	expect.Equal(t, vote("$two", AnswerID(two.Txn, "a")), 1)
	closing := chat.Outgoing{ID: "re:1", Text: "Answered.", Closed: true}
	for range 2 {
		expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!r", Message: closing, Text: closing.Text}))
	}
	r := head(t, q)
	expect.False(t, !r.Closed || r.Text != closing.Text || r.EventID != "$two" || r.Revision != two.Revision+1, "%+v", r)
	expect.Equal(t, vote("$two", AnswerID(two.Txn, "a")+" "), 1)
	expect.OK(t, q.out.MarkSent(ctx, r))
	words := final("In words.", "")
	expect.False(t, words.Poll != "" || words.Closed || words.EventID != "" || words.Revision != 1, "%+v", words)
	sent(words, "$words")
	expect.OK(t, q.out.StoreFinal(ctx, Final{Room: "!r", Message: closing, Text: closing.Text}))
	expect.Equal(t, len(due(t, q)), 0) // no poll: nothing to close
	gone := expect.Must(q.out.Redactions(ctx))(t)
	expect.False(t, len(gone) != 3 || gone[0].Event != "$draft" || gone[1].Event != "$one" || gone[2].Event != "$two", "%+v", gone)
}
