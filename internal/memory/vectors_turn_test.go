package memory

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// spokenTurn are messages of one conversation in scope, the first with seq 1.
func spokenTurn(t *testing.T, f *FTS, scope Scope, talk string, texts ...string) {
	t.Helper()
	for i, text := range texts {
		turn := Turn{Scope: scope, Event: fmt.Sprintf("$%s%d", talk, i+1), Sender: "@x:example.org", At: today.Add(time.Duration(i) * time.Minute), Conversation: talk, Seq: i + 1, Text: text}
		if err := f.Hear(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
	}
}

func soundVectors(t *testing.T, v *Vectors, when string) {
	t.Helper()
	if said, err := v.Verify(t.Context()); err != nil || len(said) > 0 {
		t.Errorf("%s: verify says %q, %v", when, said, err)
	}
}

// TestTurnsFoundByMeaning: a message without a word of the question is found in its
// scope, where messages are asked for, until it is taken back.
func TestTurnsFoundByMeaning(t *testing.T) {
	f := openIndex(t)
	remember(t, f, `{"text":"Tea is in the cupboard","ref":"tea"}`)
	spokenTurn(t, f, Shared, "a", "Good morning to you!", "The car is in the garage for repairs", "I see.")
	spokenTurn(t, f, "private:@b:x", "b", "The car broke down and a workshop has it")
	h := trained(t, f)
	question := Query{Text: "did the mechanic fix my vehicle?", Turns: true, K: 3}
	if words := refs(t, f, question); len(words) > 0 {
		t.Errorf("found by words alone: %q", words)
	}
	if got := refs(t, h, question); len(got) == 0 || got[0] != "$a2" || slices.Contains(got, "$b1") {
		t.Errorf("found %q, want $a2 first and nothing of another's", got)
	}
	want(t, "entries alone", refs(t, h, Query{Text: question.Text}))
	s := h.vectors.Status()
	if s.Done != 1 || s.Total != 1 || s.Turns != 3 || s.TurnsTotal != 3 { // "I see." says too little
		t.Errorf("status %+v", s)
	}
	if err := f.Unhear(t.Context(), Shared, "$a2"); err != nil {
		t.Fatal(err)
	}
	if got := refs(t, h, question); slices.Contains(got, "$a2") {
		t.Errorf("taken back, and found: %q", got)
	}
	if s := h.vectors.Status(); s.Turns != 2 || s.TurnsTotal != 2 {
		t.Errorf("taken back: status %+v", s)
	}
	soundVectors(t, h.vectors, "taken back")
	for _, turns := range []bool{false, true} {
		near, err := h.vectors.nearest(t.Context(), h.vectors.Question(t.Context(), question.Text), wanted{scopes: []Scope{Shared}, turns: turns}, 10)
		if err != nil || len(near) == 0 || slices.ContainsFunc(near, func(l Likeness) bool { return (l.N < 0) != turns }) {
			t.Errorf("messages %v: nearest are %v, %v", turns, near, err)
		}
	}
}

// TestTurnVectorsFollow what happens to the messages, in the database and in memory.
func TestTurnVectorsFollow(t *testing.T) {
	f := openIndex(t)
	v := openVectors(t, f.db, &wordEmbedder{name: "words", dim: 50})
	spokenTurn(t, f, Shared, "a", "apples and pears here", "bananas and grapes there", "cherries and plums again")
	complete(t, v)
	soundVectors(t, v, "read")
	near := func(text string) (n int64) {
		t.Helper()
		found, err := v.nearest(t.Context(), v.Question(t.Context(), text), wanted{scopes: []Scope{Shared}, turns: true}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 1 && found[0].Cosine > .9 {
			return found[0].N
		}
		return 0
	}
	if near("bananas and grapes there") != -2 {
		t.Fatal("a message is not found")
	}
	edited := Turn{Scope: Shared, Event: "$a2", At: today, Conversation: "a", Seq: 2, Text: "walnuts and almonds instead"}
	if err := f.Hear(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	if n := countRows(t, f.db, `SELECT count(*) FROM memory_turn_vector`); n != 2 {
		t.Errorf("%d vectors are stored after an edit, want 2", n)
	}
	if near("bananas and grapes there") != 0 {
		t.Error("an edited message is found by what it said")
	}
	complete(t, v)
	if near("walnuts and almonds instead") != -2 {
		t.Error("an edited message is not found by what it says")
	}
	if _, err := f.db.Exec(`UPDATE memory_turn SET text = '', sender = '' WHERE n = 2`); err != nil { // as silence does
		t.Fatal(err)
	}
	if near("walnuts and almonds instead") != 0 {
		t.Error("a message that was taken back is found")
	}
	if n := countRows(t, f.db, `SELECT count(*) FROM memory_turn_vector`); n != 2 {
		t.Errorf("%d vectors are stored, want 2", n)
	}
	v.mu.RLock()
	if s := v.shelves[Shared]; len(s.rows) != 2 || s.rows[s.at[-3]].before != s.at[-1] {
		t.Errorf("in memory: %+v", s.rows)
	}
	v.mu.RUnlock()
	soundVectors(t, v, "taken back")
	soundVectors(t, openVectors(t, f.db, &wordEmbedder{name: "words", dim: 50}), "opened again")
	if n := countRows(t, f.db, `SELECT count(*) FROM memory_turn_change`); n != 3 {
		t.Errorf("%d changes of 3 messages are kept", n)
	}
}

// TestTurnTakenBackMeanwhile: while the model reads a message it is taken back; no
// vector of it is kept.
func TestTurnTakenBackMeanwhile(t *testing.T) {
	f := openIndex(t)
	started, release := make(chan struct{}), make(chan struct{})
	e := &wordEmbedder{name: "words", dim: 50}
	v := openVectors(t, f.db, e)
	remember(t, f, `{"text":"apples and pears"}`)
	complete(t, v) // the space is known
	spokenTurn(t, f, Shared, "a", "bananas and grapes there")
	e.set(func(e *wordEmbedder) { e.started, e.release = started, release })
	done := make(chan error)
	go func() { done <- v.Complete(t.Context(), nil) }() // go: ends with done
	<-started
	if _, err := f.db.Exec(`UPDATE memory_turn SET text = '' WHERE n = 1`); err != nil {
		t.Fatal(err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := countRows(t, f.db, `SELECT count(*) FROM memory_turn_vector`); n != 0 {
		t.Error("a vector is kept of a message that was taken back")
	}
	soundVectors(t, v, "afterwards")
}

// TestTurnVectorsBounded: the newest messages have vectors, entries come first, and
// those that are too old go.
func TestTurnVectorsBounded(t *testing.T) {
	f := openIndex(t)
	e := &wordEmbedder{name: "words", dim: 50}
	v := openVectors(t, f.db, e)
	v.turnLimit = 10
	for i := range 25 {
		spokenTurn(t, f, Scope(fmt.Sprint("room:!", i, ":x")), "a", fmt.Sprint("message number ", i+1))
	}
	remember(t, f, `{"text":"an entry"}`)
	v.mu.Lock()
	v.clear() // with the limit
	v.mu.Unlock()
	if _, err := v.step(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if _, err := v.step(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	texts, _ := e.asked()
	if len(texts) != 1+turnBatch || texts[0] != "an entry" || !slices.Contains(texts, "message number 25") || slices.Contains(texts, "message number 17") {
		t.Errorf("read first: %q", texts)
	}
	if v.restAfter(time.Second) != 3*time.Second || v.restAfter(time.Hour) != longestTurn {
		t.Error("after messages it does not rest longer")
	}
	complete(t, v)
	stored := func() (all []int64) {
		all, err := numbers(t.Context(), f.db, `SELECT n FROM memory_turn_vector ORDER BY n`)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := stored(); len(got) != 10 || got[0] != 16 {
		t.Errorf("vectors of %v", got)
	}
	if s := v.Status(); s.Turns != 10 || s.TurnsTotal != 10 {
		t.Errorf("status %+v", s)
	}
	soundVectors(t, v, "full")
	for i := range 4 {
		spokenTurn(t, f, Shared, "b", slices.Repeat([]string{"yet another message"}, i+1)...)
	}
	complete(t, v)
	if !v.tidy(t.Context()) {
		t.Fatal("not tidied")
	}
	if got := stored(); len(got) != 10 || got[0] != 20 {
		t.Errorf("after four more, vectors of %v", got)
	}
	soundVectors(t, v, "after four more")
	var n int
	if err := f.db.QueryRow(`SELECT n FROM memory_turn_vector WHERE n = 16`).Scan(&n); !errors.Is(err, sql.ErrNoRows) {
		t.Error("an old one is still stored")
	}
}
