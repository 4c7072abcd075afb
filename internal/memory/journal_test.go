package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"reverie/internal/memory/lines"
	"reverie/internal/search"
	"reverie/internal/search/vector"
	"reverie/internal/store"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// as is somebody in a direct chat.
func as(user string) Access { return Access{Actor: user, Scopes: Strict.Visible("!dm", user, true)} }

func noted(t testing.TB, s *Store, scope Scope, text, actor string) Entry {
	t.Helper()
	return added(t, s, Entry{Scope: scope, Text: text, Source: UserExplicit}, actor)
}

// added is e as it is stored on behalf of actor.
func added(t testing.TB, s *Store, e Entry, actor string) Entry {
	t.Helper()
	e, _, err := s.Add(t.Context(), e, actor)
	expect.OK(t, err)
	return e
}

func kinds(all []Op) string {
	var out []string
	for _, o := range all {
		out = append(out, o.Op)
	}
	return strings.Join(out, " ")
}

// TestUndo takes every kind of change back, and that back as well.
// Holds W9.
func TestUndo(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	mine := Private(guest)
	for name, tt := range map[string]struct {
		change       func(s *Store, e Entry) error
		after, again string // what the file and the prompt show; again after the undo, if not "tea"
	}{
		"retire":    {func(s *Store, e Entry) error { return s.Retire(ctx, as(guest), e.ID) }, "", ""},
		"supersede": {func(s *Store, e Entry) error { _, err := s.Supersede(ctx, as(guest), e.ID, "cake"); return err }, "cake", ""},
		"pin":       {func(s *Store, e Entry) error { return s.Pin(ctx, as(guest), e.ID, true) }, "tea", ""},
		"share":     {func(s *Store, e Entry) error { _, err := s.Share(ctx, as(guest), e.ID); return err }, "", ""},
		"add": {func(s *Store, e Entry) error {
			_, _, err := s.Add(ctx, Entry{Scope: mine, Text: "cake", Source: Assistant}, guest)
			return err
		}, "tea|cake", ""},
		"by hand": {func(s *Store, e Entry) error { put(t, s, mine, "# x\ntea with milk\n"); texts(t, s, mine); return nil }, "tea with milk", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, t.TempDir())
			e := noted(t, s, mine, "tea", guest)
			check := func(want string) {
				t.Helper()
				expect.Equal(t, texts(t, s, mine), want, "shows")
				expect.Equal(t, strings.Join(lines.Texts([]byte(onDisk(t, s, mine))), "|"), want, "file shows")
			}
			expect.OK(t, tt.change(s, e))
			check(tt.after)
			undone := expect.Must(s.Undo(ctx, as(guest), ""))(t)
			check("tea")
			if got := expect.Must(s.Get(ctx, everything, e.ID))(t); got.State != Active || got.Pinned || got.Scope != mine || !got.ValidTo.IsZero() {
				t.Errorf("%+v", got)
			}
			expect.False(t, len(undone.Lines()) == 0, "nothing is said about it")
			expect.Must(s.Undo(ctx, as(guest), undone.Batch))(t) // the change holds again
			check(tt.after)
		})
	}
}

// TestUndoRefuses changed, invisible and forgotten entries.
// Holds L4.
func TestUndoRefuses(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	e := noted(t, s, Private(guest), "tea", guest)
	first := expect.Must(s.History(ctx, as(guest), e.ID))(t)[0].Batch
	expect.OK(t, s.Pin(ctx, as(guest), e.ID, true))
	if _, err := s.Undo(ctx, as(guest), first); !errors.Is(err, ErrChanged) {
		t.Errorf("changed since: %v", err)
	}
	pinned := expect.Must(s.History(ctx, as(guest), e.ID))(t)[1].Batch
	expect.Must(s.Undo(ctx, as(guest), pinned))(t)
	expect.OK(t, s.Pin(ctx, as(guest), e.ID, true))
	if _, err := s.Undo(ctx, as(guest), pinned); !errors.Is(err, ErrChanged) {
		t.Errorf("taken back already: %v", err)
	}
	if _, err := s.Undo(ctx, as(owner), first); !errors.Is(err, ErrNotFound) {
		t.Errorf("somebody else's: %v", err)
	}
	if _, err := s.Undo(ctx, as(guest), "nonsense"); !errors.Is(err, ErrNothing) {
		t.Errorf("no batch: %v", err)
	}
	expect.Must(s.Forget(ctx, as(guest), e.ID))(t)
	for _, batch := range []string{first, ""} {
		if _, err := s.Undo(ctx, as(guest), batch); !errors.Is(err, ErrGone) {
			t.Errorf("forgotten, batch %q: %v", batch, err)
		}
	}
}

// TestDuplicates: the same words are one entry, which is known to hold longer;
// what differs in a sign that means something is another.
func TestDuplicates(t *testing.T) {
	s := openAt(t, t.TempDir())
	e := noted(t, s, Shared, "I like C#.", owner)
	for text, want := range map[string]bool{"i like  c#": false, "“I like C#!”": false, "I like C": true, "I like #C": true} {
		again, added, err := s.Append(t.Context(), Shared, text)
		expect.False(t, err != nil || added != want || !added && again.ID != e.ID, "%q: added %v, %v", text, added, err)
	}
	for _, pair := range [][2]string{{"rent rose 5%", "rent rose 5"}, {"it is -5 degrees", "it is 5 degrees"}, {"pi is 3.14", "pi is 314"}, {"mail a@b.c", "mail a b c"}, {"the code is Tiger7", "The code is tiger7."}} {
		expect.False(t, !add(t, s, Shared, pair[0]) || !add(t, s, Shared, pair[1]), "%q is taken for the same", pair)
	}
	for _, pair := range [][2]string{{"rest for 5 min", "Rest for 5 MIN"}, {"the boat is called Tiger", "The boat is called tiger"}} {
		expect.False(t, !add(t, s, Shared, pair[0]) || add(t, s, Shared, pair[1]), "%q is not taken for the same", pair)
	}
	got := expect.Must(s.Get(t.Context(), everything, e.ID))(t)
	expect.False(t, got.Rev < 2 || got.ObservedAt.Before(e.ObservedAt) || got.Text != "I like C#.", "%+v", got)
}

// TestTextsStandOnce: the journal tells the words of an entry, and does not hold them again.
func TestTextsStandOnce(t *testing.T) {
	s := openAt(t, t.TempDir())
	e := added(t, s, Entry{Scope: Shared, Text: "a grey heron", Quote: "I saw a grey heron", Event: "$1", Source: Harvest}, owner)
	expect.OK(t, s.Pin(t.Context(), everything, e.ID, true))
	if n := countRows(t, s.db, `SELECT count(*) FROM memory_op WHERE before LIKE '%heron%' OR after LIKE '%heron%'`); n > 0 {
		t.Errorf("%d operations hold the text", n)
	}
	for _, o := range expect.Must(s.History(t.Context(), everything, e.ID))(t) {
		expect.False(t, o.After.Text != e.Text || o.After.Quote != e.Quote || o.Before != nil && o.Before.Text != e.Text, "%+v", o)
	}
}

// TestStaleChange: a change based on an old revision of an entry is refused.
// Holds L4.
func TestStaleChange(t *testing.T) {
	s := openAt(t, t.TempDir())
	e := noted(t, s, Shared, "tea", owner)
	expect.OK(t, s.Pin(t.Context(), everything, e.ID, true))
	if _, err := s.write(t.Context(), owner, nil, func(c *change) error { return c.retire(e) }); !errors.Is(err, ErrChanged) {
		t.Errorf("error %v", err)
	}
	if got := expect.Must(s.Get(t.Context(), everything, e.ID))(t); got.State != Active || !got.Pinned {
		t.Errorf("%+v", got)
	}
}

// What tests do to entries that the program does in other ways.

// Retire takes an entry out of use. It stays in the journal and can be undone.
func (s *Store) Retire(ctx context.Context, a Access, id string) error {
	return s.change(ctx, a, id, func(c *change, e Entry) error { return c.retire(e) })
}

// Supersede puts a new entry with text in the place of an entry.
func (s *Store) Supersede(ctx context.Context, a Access, id, text string) (next Entry, err error) {
	text, err = clean(text)
	if err != nil {
		return Entry{}, err
	}
	err = s.change(ctx, a, id, func(c *change, e Entry) error {
		next = Entry{Text: text, Scope: e.Scope, Subject: e.Subject, Kind: e.Kind, Pinned: e.Pinned, Source: UserExplicit, Integrity: a.Integrity}
		next, err = c.supersede(e, next)
		return err
	})
	return next, err
}

// Pin makes an entry one that is always shown, or not any more.
func (s *Store) Pin(ctx context.Context, a Access, id string, pinned bool) error {
	return s.change(ctx, a, id, func(c *change, e Entry) error {
		if e.Pinned == pinned {
			return nil
		}
		after, op := e, "unpin"
		if after.Pinned = pinned; pinned {
			op = "pin"
		}
		return c.update(e, after, op)
	})
}

// Append notes text in scope as the assistant's own doing, from words of a person who may
// use it; see Add.
func (s *Store) Append(ctx context.Context, scope Scope, text string) (entry Entry, added bool, err error) {
	return s.Add(ctx, Entry{Scope: scope, Text: text, Source: Assistant, Integrity: trust.User}, string(Assistant))
}

// FTS is the index of words, which finds the entries of db.
type FTS struct {
	*search.FTS
	db *store.DB
}

func OpenFTS(db *store.DB) *FTS { return &FTS{search.Open(db), db} }

func (f *FTS) Search(ctx context.Context, q Query) ([]Hit, error) {
	return Search(ctx, f.db, f.FTS.Search, q)
}

// RedactTurn removes a message as if it had never been indexed.
func (f *FTS) Unhear(ctx context.Context, event string) error {
	return store.InTx(ctx, f.db, func(tx *sql.Tx) error {
		_, err := f.RedactTurn(ctx, tx, event)
		return errors.Join(err, f.ClearRedaction(ctx, tx, event), f.Optimize(ctx, tx))
	})
}

// Hybrid is FTS with vectors.
type Hybrid struct {
	*search.Hybrid
	db      *store.DB
	vectors *vector.Vectors
	server  search.Server
}

func OpenHybrid(f *FTS, v *vector.Vectors, s search.Server) *Hybrid {
	return &Hybrid{search.OpenHybrid(f.FTS, v, s), f.db, v, s}
}

func (h *Hybrid) Search(ctx context.Context, q Query) ([]Hit, error) {
	return Search(ctx, h.db, h.Hybrid.Search, q)
}

// index is what finds entries.
type index interface {
	Search(ctx context.Context, q Query) ([]Hit, error)
}

// Complete makes the vectors that are missing, and sends them.
func (h *Hybrid) Complete(ctx context.Context) error {
	if err := h.vectors.Complete(ctx); err != nil || h.server == nil {
		return err
	}
	return h.server.(points).Complete(ctx)
}

// TestCanaryIsNeverFound tries every way to get what one person said in private
// to a room with others, or to another person, by looking for it.
// Holds S1, S4.
func TestCanaryIsNeverFound(t *testing.T) {
	t.Parallel()
	const canary, near, guest, room = "zanzibarium", "heron", "@guest:x", "!group:x"
	for _, member := range table {
		t.Run(member.name, func(t *testing.T) {
			ctx, s := t.Context(), openAt(t, t.TempDir())
			me := as(owner)
			places := map[string]Access{
				"group":      {Actor: owner, Scopes: Strict.Visible(room, owner, false)},
				"guest":      {Actor: guest, Scopes: Strict.Visible("!dm:x", guest, true)},
				"group, one": {Actor: owner, Scopes: Common.Visible(room, owner, false)},
				"guest, one": {Actor: guest, Scopes: Common.Visible("!dm:x", guest, true)},
				"an owner":   {Actor: owner, Scopes: Strict.Visible(room, owner, false), Owner: true},
			}
			// The same conversation, and the same words, are open and private.
			open := `{"text":"a heron came by","scope":"room:!group:x","ref":"r1","conversation":"c","seq":1,"observed_at":"2026-03-01"}
{"text":"what did it do?","scope":"room:!group:x","ref":"r3","conversation":"c","seq":3,"observed_at":"2026-03-01"}
{"text":"a heron is a bird","scope":"shared","ref":"s","observed_at":"2026-03-02"}
{"text":"my heron","scope":"private:@guest:x","ref":"g","conversation":"c","seq":2,"observed_at":"2026-03-01"}`
			imported(t, s, Private(owner), open)
			for _, scope := range []Scope{Room(room), Private(guest)} {
				expect.OK(t, s.index.IndexTurns(ctx, Turn{Scope: scope, Event: "$o", Text: "the heron again", At: today, Conversation: "c", Seq: 4}))
			}
			ways := canaryQueries(canary, near)
			ask := func() map[string]string {
				x, got := member.open(t, OpenFTS(s.db)), map[string]string{}
				for place, a := range places {
					for name, q := range ways {
						q.Scopes = a.Scopes
						hits, err := x.Search(ctx, q)
						b, jsonErr := json.Marshal(hits)
						if err != nil || jsonErr != nil {
							t.Fatal(err, jsonErr)
						}
						got[place+": "+name] = string(b)
					}
				}
				return got
			}
			before := ask()
			secret := hide(t, s, canary, near)

			// Not only is it not found: nothing of what is found, no score and no order,
			// tells that it is there.
			after := ask()
			for _, name := range slices.Sorted(maps.Keys(before)) {
				if after[name] != before[name] || strings.Contains(strings.ToLower(after[name]), canary) {
					t.Errorf("%s: found\n%s, and before it was there\n%s", name, after[name], before[name])
				}
			}
			expect.False(t, len(after) < 100, "only %d ways", len(after))
			found, x := 0, member.open(t, OpenFTS(s.db))
			for name, q := range ways {
				q.Scopes = me.Scopes
				hits, err := x.Search(ctx, q)
				if b, _ := json.Marshal(hits); err != nil || strings.Contains(string(b), canary) {
					found++
				} else if strings.Contains(name, "its word") {
					t.Errorf("%s: its owner does not find it: %s", name, b)
				}
			}
			expect.False(t, found < len(ways)/2, "its owner finds it in %d of %d ways", found, len(ways))
			canaryElsewhere(t, s, places, secret, canary)
		})
	}
}

// hide stores the canary in every way that something private is stored.
func hide(t *testing.T, s *Store, canary, near string) Entry {
	t.Helper()
	ctx, me := t.Context(), Private(owner)
	secret := noted(t, s, me, "my word is "+canary, owner)
	old := noted(t, s, me, "my old word is "+canary+" too", owner)
	expect.Must(s.Supersede(ctx, as(owner), old.ID, "no other word than "+canary+" and "+near))(t)
	retired := noted(t, s, me, canary+" was put away", owner)
	expect.OK(t, s.Retire(ctx, as(owner), retired.ID))
	put(t, s, me, onDisk(t, s, me)+"by hand: "+canary+"\n")
	texts(t, s, me)
	lines := fmt.Sprintf(`{"text":"the %s said %s","scope":%q,"ref":"p2","conversation":"c","seq":2,"subject":"Anna","observed_at":"2026-03-01"}
{"text":"%s","scope":%q,"ref":"p3","conversation":"c","seq":3,"subject":"%s","observed_at":"2026-03-01"}`, near, canary, me, canary, me, canary)
	imported(t, s, Private(owner), lines)
	expect.OK(t, s.index.IndexTurns(ctx, Turn{Scope: me, Event: "$o", Sender: owner, Text: "remember " + canary + " and the " + near, At: today, Conversation: "c", Seq: 3}))
	return secret
}

func canaryQueries(canary, near string) map[string]Query {
	ways := map[string]Query{}
	for what, text := range map[string]string{
		"its word": canary, "a question for its word": "what is my word " + canary + "?", "its neighbours": "what did the " + near + " say?", "its neighbour": near,
		"who said it": "what did Anna say about the " + near, "its day": "what was said on 1 March 2026", "its beginning": canary[:6] + "*", "syntax": `body:` + canary + ` OR "` + near + `"`,
		"the scope": "private:" + owner + " " + near, "small words": "my word is no other",
	} {
		for how, q := range map[string]Query{
			"": {K: 50}, ", in context": {K: 50, Context: canary + " " + near}, ", messages too": {K: 50, Turns: true}, ", the past too": {K: 50, Past: true},
			", all of it": {K: 1_000, Turns: true, Past: true}, ", surely": {K: 50, Floor: .9},
		} {
			q.Text, q.Now = text, today
			ways[what+how] = q
		}
	}
	return ways
}

// canaryElsewhere is what reads entries beside searching.
func canaryElsewhere(t *testing.T, s *Store, places map[string]Access, secret Entry, canary string) {
	t.Helper()
	ctx := t.Context()
	journal := expect.Must(s.History(ctx, everything, secret.ID))(t)
	numbered := expect.Must(s.Get(ctx, everything, secret.ID))(t)
	has := func(outline []Entry) bool {
		return slices.ContainsFunc(outline, func(e Entry) bool { return e.N == numbered.N })
	}
	expect.False(t, !has(expect.Must(s.Outline(ctx, numbered.Scope))(t)), "the outline of its own scope lacks it")
	search := func(a Access) any {
		hits, err := OpenFTS(s.db).Search(ctx, Query{Text: canary, Scopes: a.Scopes, K: 50, Turns: true, Past: true})
		return []any{hits, err}
	}
	for place, a := range places {
		states := Filter{States: []State{Active, Merged, Superseded, Archived, Forgotten}}
		for name, way := range map[string]func() (any, error){
			"export": func() (any, error) { return s.List(ctx, a, states) },
			"list":   func() (any, error) { return s.List(ctx, a, Filter{Words: canary}) },
			"prompt": func() (any, error) { return s.WorkingSet(ctx, a.Scopes...) },
			"outline": func() (any, error) {
				outline, err := s.Outline(ctx, a.Scopes...)
				if has(outline) {
					return canary, nil
				}
				return outline, err
			},
			"find":       func() (any, error) { all, _, err := s.Find(ctx, a, canary); return all, err },
			"find by id": func() (any, error) { all, _, err := s.Find(ctx, a, secret.ID); return all, err },
			"get":        func() (any, error) { return s.Get(ctx, a, secret.ID) },
			"history":    func() (any, error) { return s.History(ctx, a, secret.ID) },
			"undo":       func() (any, error) { return s.Undo(ctx, a, journal[0].Batch) },
			"share":      func() (any, error) { return s.Share(ctx, a, secret.ID) },
			"withdraw":   func() (any, error) { return s.Unshare(ctx, a, secret.ID) },
			"supersede":  func() (any, error) { return s.Supersede(ctx, a, secret.ID, "x") },
			"retire":     func() (any, error) { return nil, s.Retire(ctx, a, secret.ID) },
			"pin":        func() (any, error) { return nil, s.Pin(ctx, a, secret.ID, true) },
			"forget":     func() (any, error) { return s.Forget(ctx, a, secret.ID) },
			"add": func() (any, error) {
				e, _, err := s.Add(ctx, Entry{Scope: a.Scopes[0], Text: "my word", Source: Assistant}, a.Actor)
				return e, err
			},
		} {
			got, err := way()
			if b, _ := json.Marshal(got); strings.Contains(string(b), canary) || strings.Contains(fmt.Sprint(err), canary) {
				t.Errorf("%s, %s: %s, %v", place, name, b, err)
			}
		}
	}
	if e := expect.Must(s.Get(ctx, everything, secret.ID))(t); e.State != Active || e.Pinned || e.Scope != Private(owner) {
		t.Errorf("it was changed from elsewhere: %+v", e)
	}
	// Shared on purpose, everybody finds it, until it is made private again.
	expect.Must(s.Share(ctx, as(owner), secret.ID))(t)
	for place, a := range places {
		if b, _ := json.Marshal(search(a)); strings.Count(string(b), `"text":"my word is `+canary) != 1 || strings.Count(string(b), canary) != 1 {
			t.Errorf("%s, shared: %s", place, b)
		}
	}
	expect.Must(s.Unshare(ctx, as(owner), secret.ID))(t)
	expect.Must(s.Share(ctx, as(owner), secret.ID))(t)
	expect.Must(s.Undo(ctx, as(owner), ""))(t)
	for place, a := range places {
		if b, _ := json.Marshal(search(a)); strings.Contains(string(b), canary) {
			t.Errorf("%s, taken back: %s", place, b)
		}
		if b, _ := json.Marshal(expect.Must(s.History(ctx, everything, secret.ID))(t)); !strings.Contains(string(b), `"move"`) {
			t.Errorf("the journal: %s", b)
		}
		if _, err := s.History(ctx, a, secret.ID); err == nil {
			t.Errorf("%s: the history can still be read", place)
		}
	}
	sound(t, s)
}
