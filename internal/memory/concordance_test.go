package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// warm makes f answer from its concordance, which it has afterwards.
func warm(t testing.TB, f *FTS) {
	t.Helper()
	f.Warm(t.Context())
	if c := f.current(t.Context()); c == nil {
		t.Fatal("there is no concordance of the index")
	}
	f.keeper.mu.RUnlock()
}

// sameAnswers asks f, which has a concordance, and the index itself.
func sameAnswers(t testing.TB, f *FTS, q Query) {
	t.Helper()
	c := f.current(t.Context())
	if c == nil {
		t.Fatal("the concordance is not in use")
	}
	f.keeper.mu.RUnlock()
	got, err := f.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.lookedUp(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var want []Hit
	if len(m.found) > 0 {
		if want, err = finish(t.Context(), f.db, q, rank(m.question, m.known, m.found)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%q (%v): %s", q.Text, q.Scopes, diff)
	}
}

// The concordance finds what the index finds, on the labelled set.
func TestConcordanceFindsTheSame(t *testing.T) {
	t.Parallel()
	f, set := labelled(t)
	warm(t, f)
	for i, q := range set.Questions {
		ask := Query{Text: q.Query, Scopes: []Scope{Scope(q.Scope)}, K: 10 + 190*(i%2), Now: today}
		if i%3 == 0 {
			ask.Context = set.Questions[(i+1)%len(set.Questions)].Query
		}
		if i%7 == 0 {
			ask.Scopes = nil
			for _, l := range set.Lines[:5] {
				ask.Scopes = append(ask.Scopes, Scope(l.Scope))
			}
			for _, l := range set.Questions[:40] {
				ask.Scopes = append(ask.Scopes, Scope(l.Scope))
			}
		}
		sameAnswers(t, f, ask)
	}
}

// More texts have a word than are ranked: the same ones are chosen.
func TestConcordanceChoosesTheSame(t *testing.T) {
	t.Parallel()
	f := openIndex(t)
	random := rand.New(rand.NewPCG(7, 7))
	words := []string{"sea", "boat", "harbour", "lighthouse", "gull", "Müller", "茶を飲む", "2024", "хлеб", "walk", "हिन्दी", "rain"}
	var lines []string
	for i := range 3000 {
		text := ""
		for range 3 + random.IntN(12) {
			text += words[min(random.IntN(len(words)), random.IntN(len(words)))] + " "
		}
		lines = append(lines, fmt.Sprintf(`{"text":"%s%d","scope":%q,"subject":"Anna B","conversation":%q,"seq":%d,"observed_at":%q,"ref":"r%d"}`,
			text, i, []string{"shared", "private:@a:b.c"}[i%2], []string{"", fmt.Sprint("c", i/30)}[random.IntN(2)], i,
			today.Add(-time.Duration(i)*3*time.Hour).Format(time.RFC3339), i))
	}
	remember(t, f, lines...)
	warm(t, f)
	for i := range 200 {
		text := "when did Anna"
		for range 1 + random.IntN(4) {
			text += " " + words[random.IntN(len(words))]
		}
		q := Query{Text: text, Scopes: []Scope{Shared, "private:@a:b.c"}[:1+i%2], K: 200, Now: today}
		if i%5 == 0 {
			q.After, q.Before = today.Add(-2000*time.Hour), today.Add(-100*time.Hour)
		}
		sameAnswers(t, f, q)
	}
}

// Whatever happens to memory, the concordance goes with it, without being read anew.
func TestConcordanceFollowsChanges(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := openIndex(t)
	s := importInto(f).Store
	f = s.index
	me, room := Private("@me:x.y"), Room("!r:x.y")
	random := rand.New(rand.NewPCG(1, 9))
	words := []string{"tea", "garden", "piano", "Lisbon", "train", "cat", "blue", "window"}
	say := func() string {
		text := ""
		for range 2 + random.IntN(5) {
			text += words[random.IntN(len(words))] + " "
		}
		return text + fmt.Sprint(random.IntN(1000))
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	all := Access{Scopes: []Scope{me, room, Shared}, Actor: "@me:x.y", Owner: true}
	_, _, err := s.Append(ctx, me, "the first tea")
	must(err)
	must(s.Hear(ctx, Turn{Scope: room, Event: "$first", At: today, Conversation: "talk", Seq: 0, Text: "tea at last"}))
	warm(t, f)
	first := f.keeper.all
	var ids, events []string
	for i := range 150 {
		switch k := random.IntN(10); {
		case k < 4:
			e, added, err := s.Append(ctx, []Scope{me, Shared}[random.IntN(2)], say())
			must(err)
			if added {
				ids = append(ids, e.ID)
			}
		case k < 7:
			event := fmt.Sprint("$", random.IntN(80))
			events = append(events, event)
			must(s.Hear(ctx, Turn{Scope: room, Event: event, At: today.Add(time.Duration(random.IntN(30)) * time.Hour), Conversation: "talk", Seq: random.IntN(50), Text: say()}))
		case k < 8 && len(events) > 0:
			must(f.Unhear(ctx, room, events[random.IntN(len(events))]))
		case k < 9 && len(ids) > 0:
			at := random.IntN(len(ids))
			_, err := s.Forget(ctx, all, ids[at])
			must(err)
			ids = append(ids[:at], ids[at+1:]...)
		case len(ids) > 0:
			tx, err := f.db.BeginTx(ctx, nil) // a change that fails changes nothing
			must(err)
			must(f.begins(ctx, tx))
			_, err = tx.ExecContext(ctx, `UPDATE memory SET text = 'lost piano' WHERE id = ?`, ids[0])
			must(err)
			must(f.update(ctx, tx, 1))
			must(tx.Rollback())
		}
		for _, q := range []string{"tea in the garden", "which train goes to Lisbon?", "blue cat"} {
			sameAnswers(t, f, Query{Text: q, Scopes: []Scope{me, room, Shared}, Turns: true, Past: i%2 == 0, K: 60, Now: today})
		}
	}
	if f.keeper.all != first {
		t.Error("it was read anew")
	}
	fresh, _, err := f.readConcordance(ctx)
	must(err)
	if fresh.tokens != first.tokens || len(fresh.at) != len(first.at) || len(fresh.numbers) != len(first.numbers) {
		t.Errorf("%d terms of %d texts, %d different; read anew %d of %d, %d", first.tokens, len(first.at), len(first.numbers),
			fresh.tokens, len(fresh.at), len(fresh.numbers))
	}
}

// What another process changed is not overlooked.
func TestConcordanceIsNeverBehind(t *testing.T) {
	t.Parallel()
	f := openIndex(t)
	remember(t, f, `{"text":"the key is under the stone","scope":"shared","ref":"a"}`)
	warm(t, f)
	remember(t, f, `{"text":"the key is in the shed","scope":"shared","ref":"b"}`) // by another store
	if got := refs(t, f, Query{Text: "where is the key?"}); len(got) != 2 {
		t.Errorf("found %q", got)
	}
	if f.keeper.all != nil {
		t.Error("a concordance of another change is kept")
	}
	warm(t, f)
	if err := OpenFTS(f.db).Rebuild(t.Context(), nil); err != nil { // scopes may have other numbers now
		t.Fatal(err)
	}
	if got := refs(t, f, Query{Text: "where is the key?"}); len(got) != 2 || f.keeper.all != nil {
		t.Errorf("after a rebuild: %q", got)
	}
}

// What vectors add is ranked the same, wherever its words come from.
func TestConcordanceOfNamedTexts(t *testing.T) {
	t.Parallel()
	f, set := labelled(t)
	h := OpenHybrid(f, nil)
	warm(t, f)
	docs, err := list[int64](t.Context(), f.db, `SELECT doc FROM index_doc ORDER BY doc % 97, doc LIMIT 300`)
	if err != nil {
		t.Fatal(err)
	}
	added := 0
	for _, q := range set.Questions[:40] {
		ask := Query{Text: q.Query, Scopes: []Scope{Scope(q.Scope)}, Now: today}
		m, err := f.lookedUp(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		got, err := h.added(t.Context(), ask, m, docs)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := h.rows(t.Context(), ask, m.scopes, docs)
		if err != nil {
			t.Fatal(err)
		}
		want, err := h.load(t.Context(), rows)
		if err != nil {
			t.Fatal(err)
		}
		a, b := rank(m.question, m.known, want), rank(m.question, m.known, got)
		if len(a) != len(b) {
			t.Fatalf("%q: %d texts, want %d", q.Query, len(b), len(a))
		}
		for i := range a {
			if a[i].doc != b[i].doc || a[i].score != b[i].score || a[i].covered != b[i].covered {
				t.Fatalf("%q: %d. is %d with %v, want %d with %v", q.Query, i, b[i].doc, b[i].score, a[i].doc, a[i].score)
			}
		}
		added += len(b)
	}
	if added == 0 {
		t.Error("nothing was added")
	}
}

// Whoever makes the concordance ahead of the questions, however often, does not keep
// them from making it anew later.
func TestConcordanceAheadOfQuestions(t *testing.T) {
	t.Parallel()
	f, _ := labelled(t)
	f.Warm(t.Context())
	f.Warm(t.Context())
	if f.keeper.all == nil || f.keeper.reading || f.keeper.asked != 0 {
		t.Fatalf("reading %v, %d questions in vain", f.keeper.reading, f.keeper.asked)
	}
	f.keeper.mu.Lock()
	f.keeper.forget()
	f.keeper.mu.Unlock()
	warm(t, f)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	f.keeper.mu.Lock()
	f.keeper.forget()
	f.keeper.mu.Unlock()
	f.Warm(gone) // in vain
	warm(t, f)
}
