package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Tests of what has been seen to go wrong elsewhere; docs/faults.md lists them.

// The index is made of the entries, not of the file that shows some of them, and
// changes nothing about them.
// Holds L2.
func TestReindexKeepsWhatTheFileDoesNotShow(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), openWith(t, Config{Dir: t.TempDir(), Owner: owner, FileLines: 4})
	for n := range 20 {
		e := noted(t, s, Private(owner), fmt.Sprintf("heron number %d", n), owner)
		noError(t, s.Pin(ctx, as(owner), e.ID, n == 3))
	}
	before := must(s.List(ctx, everything, Filter{}))(t)
	if n := len(lineTexts([]byte(onDisk(t, s, Private(owner))))); n > 6 {
		t.Fatalf("%d lines in the file: that is no working set", n)
	}
	for range 2 {
		noError(t, s.index.Rebuild(ctx, nil))
		texts(t, s, Private(owner))
	}
	if diff := cmp.Diff(before, must(s.List(ctx, everything, Filter{}))(t)); diff != "" {
		t.Error(diff)
	}
	if hits := must(s.index.Search(ctx, Query{Text: "heron", Scopes: []Scope{Private(owner)}, K: 100}))(t); len(hits) != 20 {
		t.Errorf("%d are found", len(hits))
	}
	sound(t, s)
}

// What says a wording anew that was corrected makes an entry of its own: the
// correction stays as it is.
// Holds L14.
func TestOldWordsDoNotOverwriteTheirCorrection(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	e := noted(t, s, Private(owner), "the code is 4711", owner)
	next := must(s.Supersede(ctx, as(owner), e.ID, "the code is 4712"))(t)
	again := noted(t, s, Private(owner), "the code is 4711", owner)
	if again.ID == e.ID || again.ID == next.ID {
		t.Errorf("%s took the place of %s or %s", again.ID, e.ID, next.ID)
	}
	for id, text := range map[string]string{e.ID: "the code is 4711", next.ID: "the code is 4712", again.ID: "the code is 4711"} {
		if got := must(s.Get(ctx, everything, id))(t); got.Text != text {
			t.Errorf("%s says %q, and said %q", id, got.Text, text)
		}
	}
	sound(t, s)
}

// A fact may be short, in any script; and the last word of a long question counts
// as much as the first.
// Holds W3, W4.
func TestShortFactsAndLongQuestions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *FTS, x index) {
		remember(t, f, `{"text":"Has a dog","ref":"dog"}`, `{"text":"我喜欢喝绿茶","ref":"tea"}`, `{"text":"茶","ref":"one"}`, `{"text":"B+","ref":"blood"}`, `{"text":"4711","ref":"code"}`)
		long := strings.Repeat("so tell me please after all this while what was it again that we said ", 4)
		for text, ref := range map[string]string{"a dog?": "dog", "绿茶": "tea", "4711": "code", long + "about the dog": "dog"} {
			if got := refs(t, x, Query{Text: text, K: 1}); len(got) != 1 || got[0] != ref {
				t.Errorf("%q finds %q, want %s", text, got, ref)
			}
		}
	})
	s := openAt(t, t.TempDir())
	for _, text := range []string{"Has a dog", "我喜欢喝绿茶", "茶", "B+", `{"a":1}`} {
		if !add(t, s, Private(owner), text) {
			t.Errorf("%q is not taken", text)
		}
	}
}

// To search writes nothing, waits for no writer and counts nothing as used.
// Holds P1.
func TestSearchOnlyReads(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	e := noted(t, s, Private(owner), "the heron is grey", owner)
	tx, err := s.db.BeginTx(ctx, nil) // somebody writes, and takes long
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var before, after int
	noError(t, s.db.QueryRow(`SELECT count(*) FROM memory_op`).Scan(&before))
	search := func() {
		if hits := must(s.index.Search(ctx, Query{Text: "heron", Scopes: []Scope{Private(owner)}, Turns: true, Past: true}))(t); len(hits) != 1 {
			t.Fatalf("%+v", hits)
		}
	}
	search()
	noError(t, tx.Rollback())
	search()
	got := must(s.Get(ctx, everything, e.ID))(t)
	if err := s.db.QueryRow(`SELECT count(*) FROM memory_op`).Scan(&after); err != nil || after != before {
		t.Errorf("%d operations, and before %d, %v", after, before, err)
	}
	if got.Hits != 0 || got.Rev != e.Rev || !got.LastHit.Equal(time.Time{}) {
		t.Errorf("%+v", got)
	}
}
