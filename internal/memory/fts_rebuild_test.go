package memory

import (
	"context"
	"fmt"
	"testing"
)

func filled(t *testing.T) *Store {
	t.Helper()
	s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: FTS5})
	for n := range 6 {
		add(t, s, Private(owner), fmt.Sprintf("the heron number %d is grey", n))
		noError(t, s.Hear(t.Context(), Turn{Scope: Private(owner), Event: fmt.Sprint("$", n), Sender: owner, Text: fmt.Sprintf("the boat number %d", n), At: today, Conversation: "c", Seq: n}))
	}
	return s
}

// An index that is cut off while it is made leaves the old one as it was, and others wait
// for it and are in it.
func TestRebuildThatIsCutOff(t *testing.T) {
	s := filled(t)
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.index.Rebuild(ctx, func(int, int) { cancel() }); err == nil {
		t.Error("it was not cut off")
	}
	sound(t, s)
	said := make(chan error, 1)
	if err := s.index.Rebuild(t.Context(), func(done, _ int) {
		if done == 6 { // the messages are still to come
			// go: it ends when the index is made, and is waited for
			go func() {
				said <- s.Hear(t.Context(), Turn{Scope: Private(owner), Event: "$9", Sender: owner, Text: "the pelican is white", At: today, Conversation: "c", Seq: 9})
			}()
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := <-said; err != nil {
		t.Error(err)
	}
	sound(t, s)
	if hits, err := s.index.Search(t.Context(), Query{Text: "pelican", Scopes: []Scope{Private(owner)}, Turns: true}); err != nil || len(hits) == 0 || hits[0].Turn == nil {
		t.Errorf("%+v, %v", hits, err)
	}
}

// An index that an upgrade left empty is made at the start.
func TestEmptyIndexIsMadeAtTheStart(t *testing.T) {
	s := filled(t)
	must(s.db.Exec(`DELETE FROM index_doc`))(t)
	again := must(Open(t.Context(), Config{DB: s.db, Dir: s.dir, Owner: owner}))(t)
	sound(t, again)
}
