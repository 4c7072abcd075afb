package delivery

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reverie/internal/chat"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
)

// world is a bot with one homeserver, and what must be true of both.
type world struct {
	in  *Inbox
	out *Outbox
	db  *store.DB
	now time.Time
	ctx context.Context

	next     int
	waiting  map[string]string // message → room: it came, and is to be answered
	unread   map[string]string // … and cannot be read
	finished map[string]bool   // messages that were handled, redacted, left behind or given up

	said    map[string]string // answer → its newest text; gone when it was removed
	room    map[string]string // answer → its room
	removed map[string]bool
	events  map[string]string // transaction id → the event of it, as long as the homeserver knows it
	late    map[string]string // … that it has forgotten
	texts   map[string]string // event → what people read
	carrier map[string]string // transaction id → the first event of it that the bot learned of
	learned map[string]string // event → its transaction id
	purged  map[string]bool   // events that were redacted in the room
}

func newWorld(t *testing.T, path string) *world {
	w := &world{
		db: expect.Must(storetest.Open(t, path))(t), now: time.UnixMilli(1_700_000_000_000), ctx: t.Context(),
		waiting: map[string]string{}, unread: map[string]string{}, finished: map[string]bool{},
		said: map[string]string{}, room: map[string]string{}, removed: map[string]bool{},
		events: map[string]string{}, late: map[string]string{},
		texts: map[string]string{}, carrier: map[string]string{}, learned: map[string]string{}, purged: map[string]bool{},
	}
	w.in, w.out = New(w.db, func() time.Time { return w.now }, func(string) bool { return false })
	return w
}

// pick is one of the keys, or none.
func pick[V any](t *rapid.T, from map[string]V, what string) (string, bool) {
	keys := slices.Sorted(maps.Keys(from))
	if len(keys) == 0 {
		return "", false
	}
	return rapid.SampledFrom(keys).Draw(t, what), true
}

func (w *world) id(kind string) string {
	w.next++
	return fmt.Sprintf("$%s%d", kind, w.next)
}

func (w *world) message(id, room string) Incoming {
	return Incoming{Event: chat.Message{Head: chat.Head{ID: id, Room: room, Sender: "@you:x", At: w.now}, Text: "text of " + id}}
}

var errCrash = errors.New("the program dies here")

// sync commits a batch, or dies before that: then nothing of it may be there.
func (w *world) sync(t *rapid.T, b *Batch) (stored bool) {
	dies := rapid.IntRange(0, 4).Draw(t, "dies") == 0
	err := w.in.Commit(w.ctx, b, func(*sql.Tx) error {
		if dies {
			return errCrash
		}
		return nil
	})
	if dies != errors.Is(err, errCrash) || !dies && err != nil {
		t.Fatalf("committed: %v", err)
	}
	return !dies
}

// known notes that the bot knows an event of a transaction.
func (w *world) known(txn, event string) {
	w.learned[event] = txn
	if w.carrier[txn] == "" {
		w.carrier[txn] = event
	}
}

// accept is the homeserver, which takes an event once for a transaction id as long as it knows that.
func (w *world) accept(txn, text string) string {
	if w.events[txn] == "" {
		event := w.id("sent")
		w.events[txn], w.texts[event] = event, text
	}
	return w.events[txn]
}

func (w *world) forget() {
	maps.Copy(w.late, w.events)
	clear(w.events)
}

// finish ends a message.
func (w *world) finish(ids ...string) {
	for _, id := range ids {
		delete(w.waiting, id)
		delete(w.unread, id)
		w.finished[id] = true
	}
}

func (w *world) actions() map[string]func(*rapid.T) {
	all := func() map[string]string {
		known := maps.Clone(w.waiting)
		maps.Copy(known, w.unread)
		for id := range w.finished {
			known[id] = "!a"
		}
		return known
	}
	return map[string]func(*rapid.T){
		"a message comes": func(t *rapid.T) {
			id, room := w.id("in"), rapid.SampledFrom([]string{"!a", "!b"}).Draw(t, "room")
			if w.sync(t, &Batch{In: []Incoming{w.message(id, room)}}) {
				w.waiting[id] = room
			}
		},
		"a message comes again": func(t *rapid.T) {
			if id, ok := pick(t, all(), "message"); ok && w.unread[id] == "" {
				w.sync(t, &Batch{In: []Incoming{w.message(id, "!a")}})
			}
		},
		"a message cannot be read": func(t *rapid.T) {
			id, session := w.id("in"), rapid.SampledFrom([]string{"", "session"}).Draw(t, "session")
			u := Unreadable{ID: id, Room: "!a", Sender: "@you:x", Raw: "{}", Session: session, Wait: time.Minute, Err: errCrash}
			if w.sync(t, &Batch{Unreadable: []Unreadable{u}}) {
				w.unread[id] = "!a"
			}
		},
		"it can be read": func(t *rapid.T) {
			if id, ok := pick(t, w.unread, "message"); ok && w.sync(t, &Batch{Read: id, In: []Incoming{w.message(id, "!a")}}) {
				delete(w.unread, id)
				w.waiting[id] = "!a"
			}
		},
		"it can be read and is for nobody": func(t *rapid.T) {
			if id, ok := pick(t, w.unread, "message"); ok && w.sync(t, &Batch{Read: id}) {
				w.finish(id)
			}
		},
		"it is given up": func(t *rapid.T) {
			if id, ok := pick(t, w.unread, "message"); ok {
				expect.OK(t, w.in.GiveUp(w.ctx, Unreadable{ID: id, Err: errCrash}, Notice{ID: "unread-" + id, Room: "!a", Text: "sorry"}))
				w.finish(id)
				w.said["unread-"+id], w.room["unread-"+id] = "sorry", "!a"
			}
		},
		"it is redacted": func(t *rapid.T) {
			if id, ok := pick(t, all(), "message"); ok && w.sync(t, &Batch{In: []Incoming{{Event: chat.Redaction{Change: chat.Change{Target: id}}}}}) {
				w.finish(id)
			}
		},
		"it is edited": func(t *rapid.T) {
			id, ok := pick(t, w.waiting, "message")
			if !ok || !strings.HasPrefix(id, "$in") {
				return
			}
			edit := chat.Edit{Change: chat.Change{Head: chat.Head{ID: w.id("edit"), Room: w.waiting[id], Sender: "@you:x", At: w.now}, Target: id}, Text: "edited"}
			if w.sync(t, &Batch{In: []Incoming{{Event: edit, Addressed: true}}}) {
				w.waiting[edit.ID] = edit.Room
			}
		},
		"it needs no answer": func(t *rapid.T) {
			if id, ok := pick(t, w.waiting, "message"); ok {
				expect.OK(t, w.in.MarkDone(w.ctx, w.db, id))
				w.finish(id)
			}
		},
		"a draft is shown": func(t *rapid.T) {
			id, ok := pick(t, w.waiting, "message")
			if !ok {
				return
			}
			r, err := w.out.EnsureDraft(w.ctx, w.waiting[id], chat.Outgoing{ID: "re:" + id, ReplyTo: id, Notice: rapid.Bool().Draw(t, "notice")})
			expect.OK(t, err)
			if r.State != "draft" {
				return
			}
			if r.EventID == "" {
				event := w.accept(r.Txn, "draft")
				if rapid.Bool().Draw(t, "response lost") {
					return
				}
				carrier, err := w.out.MarkDelivered(w.ctx, r, event, false)
				expect.OK(t, err)
				w.known(r.Txn, event)
				r.EventID = carrier
			}
			w.texts[r.EventID] = "draft"
			expect.OK(t, w.out.UpdateDraft(w.ctx, r.ID, "draft"))
		},
		"it is answered": func(t *rapid.T) {
			id, ok := pick(t, w.waiting, "message")
			if !ok {
				return
			}
			dies := rapid.IntRange(0, 4).Draw(t, "dies") == 0
			m := chat.Outgoing{ID: "re:" + id, ReplyTo: id, Text: w.id("answer ")}
			err := w.out.StoreFinal(w.ctx, Final{Room: w.waiting[id], Message: m, Text: m.Text}, func(ctx context.Context, tx *sql.Tx) error {
				if err := w.in.MarkDone(ctx, tx, id); err != nil || !dies {
					return err
				}
				return errCrash
			})
			if dies {
				return
			}
			expect.OK(t, err)
			w.said[m.ID], w.room[m.ID] = m.Text, w.waiting[id]
			delete(w.removed, m.ID)
			w.finish(id)
		},
		"an answer changes": func(t *rapid.T) {
			if id, ok := pick(t, w.said, "answer"); ok {
				w.change(t, id)
			}
		},
		"an answer is removed": func(t *rapid.T) {
			if id, ok := pick(t, w.said, "answer"); ok {
				w.remove(t, id)
			}
		},
		"the program starts again": func(t *rapid.T) {
			expect.OK(t, w.out.EndDrafts(w.ctx, func(r OutboxRow) string {
				if r.EventID != "" && r.Kind == "text" {
					w.said[r.ID], w.room[r.ID] = "interrupted", r.Room
				}
				return "interrupted"
			}))
		},
		"messages are sent":       w.sendAll,
		"more messages are sent":  w.sendAll,
		"other messages are sent": w.sendAll, // that is most of a bot's life
		"a question is answered at once": func(t *rapid.T) {
			q := w.id("in")
			if !w.sync(t, &Batch{In: []Incoming{w.message(q, "!a")}}) {
				return
			}
			m := chat.Outgoing{ID: "re:" + q, ReplyTo: q, Text: w.id("answer ")}
			expect.OK(t, w.out.StoreFinal(w.ctx, Final{Room: "!a", Message: m, Text: m.Text}))
			expect.OK(t, w.in.MarkDone(w.ctx, w.db, q))
			w.said[m.ID], w.room[m.ID] = m.Text, "!a"
			w.finish(q)
		},
		"a sync shows an event of ours":       func(t *rapid.T) { w.echo(t, w.events) },
		"a sync shows a late event of ours":   func(t *rapid.T) { w.echo(t, w.late) },
		"the homeserver forgets transactions": func(*rapid.T) { w.forget() },
		"events are redacted": func(t *rapid.T) {
			due, err := w.out.Redactions(w.ctx)
			expect.OK(t, err)
			for _, r := range due {
				w.purged[r.Event] = true
				expect.OK(t, w.out.RedactionDone(w.ctx, r.Event))
			}
		},
		"time passes": func(*rapid.T) { w.now = w.now.Add(2 * maxNoticeAge) },
		"":            w.holds,
	}
}

// echo has a sync show an event of ours.
func (w *world) echo(t *rapid.T, of map[string]string) {
	txn, ok := pick(t, of, "transaction")
	if event := of[txn]; ok && w.sync(t, &Batch{Echoes: []Echo{{Txn: txn, Event: event}}}) {
		w.known(txn, event)
	}
}

// change gives an answer another text.
func (w *world) change(t *rapid.T, id string) {
	m := chat.Outgoing{ID: id, Text: w.id("answer "), Notice: strings.HasPrefix(id, "unread-")}
	expect.OK(t, w.out.StoreFinal(w.ctx, Final{Room: w.room[id], Message: m, Text: m.Text}))
	w.said[id] = m.Text
}

// remove takes an answer out of its room.
func (w *world) remove(t *rapid.T, id string) {
	expect.OK(t, w.out.Remove(w.ctx, w.room[id], id))
	delete(w.said, id)
	w.removed[id] = true
}

func (w *world) sendAll(t *rapid.T) {
	heads, _, err := w.out.Due(w.ctx, w.now, time.Hour, 100)
	expect.OK(t, err)
	for _, r := range heads {
		w.send(t, r)
	}
}

// send is what a transport does with the next row of a room.
func (w *world) send(t *rapid.T, r OutboxRow) {
	if r.Text != w.said[r.ID] {
		t.Fatalf("%s is sent as %q, and says %q", r.ID, r.Text, w.said[r.ID])
	}
	whole := !r.Drafted && r.Revision <= 1
	meanwhile := rapid.SampledFrom([]string{
		"nothing", "nothing", "it changes", "it is removed", "a late event is shown",
	}).Draw(t, "meanwhile")
	if meanwhile == "it changes" {
		w.change(t, r.ID)
	}
	if r.EventID == "" {
		event := w.accept(r.Txn, r.Text)
		switch meanwhile {
		case "it is removed":
			w.remove(t, r.ID)
		case "a late event is shown":
			if late := w.late[r.Txn]; late != "" {
				w.echo(t, map[string]string{r.Txn: late})
			}
		}
		switch rapid.SampledFrom([]string{"response", "response", "response lost", "restarts", "failed"}).Draw(t, "the homeserver") {
		case "restarts":
			w.forget()
			return
		case "response lost":
			return
		case "failed":
			expect.OK(t, w.out.Postpone(w.ctx, r, w.now.Add(time.Second), errCrash))
			return
		}
		var err error
		r.EventID, err = w.out.MarkDelivered(w.ctx, r, event, whole)
		expect.OK(t, err)
		w.known(r.Txn, event)
		if meanwhile == "it is removed" {
			return
		}
		if r.EventID != w.carrier[r.Txn] {
			t.Fatalf("%s is carried by %s, and was by %s", r.ID, r.EventID, w.carrier[r.Txn])
		}
	} else if whole {
		expect.OK(t, w.out.MarkSent(w.ctx, r))
	}
	if !whole { // an edit of the event
		w.texts[r.EventID] = r.Text
		expect.OK(t, w.out.MarkSent(w.ctx, r))
	}
}

// holds looks whether all is true that must be true always.
func (w *world) holds(t *rapid.T) {
	rows, err := w.in.Waiting(w.ctx, nil, 1000)
	expect.OK(t, err)
	waits := map[string]bool{}
	for _, r := range rows {
		waits[r.Message.ID] = true
		if w.finished[r.Message.ID] {
			t.Fatalf("%s is delivered again", r.Message.ID)
		}
	}
	for id := range w.waiting {
		if !waits[id] {
			t.Fatalf("%s is lost", id)
		}
	}
	unread, err := store.Column[string](w.ctx, w.db, `SELECT id FROM inbox WHERE state IN ('utd', 'failed')`)
	expect.OK(t, err)
	if len(unread) != len(w.unread) {
		t.Fatalf("unread are %v, want %v", unread, w.unread)
	}
	due, err := w.out.Redactions(w.ctx)
	expect.OK(t, err)
	gone := maps.Clone(w.purged)
	for _, r := range due {
		gone[r.Event] = true
	}
	all, err := store.List(w.ctx, w.db, scanOut, `SELECT `+outColumns+` FROM outbox`)
	expect.OK(t, err)
	carries := map[string]string{}
	for _, r := range all {
		switch {
		case r.EventID == "":
		case r.State == "dead" && !w.removed[r.ID]: // a draft that was interrupted; what it showed may stay
			gone[r.EventID] = true
		default:
			carries[r.EventID] = r.ID
		}
		if r.State == "sent" && (r.EventID == "" || w.texts[r.EventID] != r.Text || gone[r.EventID]) {
			t.Fatalf("%s is sent, and people read %q of %s", r.ID, w.texts[r.EventID], r.EventID)
		}
		if _, said := w.said[r.ID]; said && r.State != "sent" && r.State != "pending" {
			t.Fatalf("%s is %s, and was not sent", r.ID, r.State)
		}
	}
	for event, txn := range w.learned { // of all events that we know one is seen, or none
		if carries[event] == "" && !gone[event] {
			t.Fatalf("%s of %s stays in the room, and carries nothing", event, txn)
		}
		if carries[event] != "" && gone[event] {
			t.Fatalf("%s of %s is redacted, and carries %s", event, txn, carries[event])
		}
	}
}

// Whatever happens in whatever order, and wherever the program dies: a message that was handled is
// never delivered again, none is lost, people read the newest text of an answer, and never twice.
func TestTransitions(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		w := newWorld(t, filepath.Join(dir, fmt.Sprint(n, ".db")))
		defer w.db.Close()
		rt.Repeat(w.actions())
	})
}
