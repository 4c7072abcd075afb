package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/memory/lines"
	"reverie/internal/search"
	"reverie/internal/test/expect"
)

var backends = []string{"flat_file", "fts5"}

func hear(t testing.TB, s *Store, scope Scope, conversation string, said ...string) {
	t.Helper()
	for i, text := range said {
		sender := owner
		if i%2 == 1 {
			sender = ""
		}
		turn := Turn{Scope: scope, Event: fmt.Sprintf("$%s%d", conversation, i+1), Sender: sender, At: time.Unix(1_790_000_000+int64(i)*60, 0),
			Conversation: conversation, Seq: i + 1, Text: text}
		expect.OK(t, s.IndexTurns(t.Context(), turn))
	}
}

func found(t testing.TB, s *Store, text string, scopes ...Scope) (lines []string) {
	t.Helper()
	hits := expect.Must(s.Search(t.Context(), Query{Text: text, Scopes: scopes, Turns: true, K: 10}))(t)
	for _, h := range hits {
		lines = append(lines, h.Text())
	}
	return lines
}

// TestCarelessIndex: Store.Search enforces scopes even if the index does not.
func TestCarelessIndex(t *testing.T) {
	s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: "fts5"})
	noted(t, s, Private(owner), "the heron nests by the weir", owner)
	hear(t, s, Private(owner), "dm", "I saw the heron today")
	find := s.find
	s.find = func(ctx context.Context, q Query) ([]search.Hit, error) {
		q.Scopes = append(q.Scopes, Private(owner))
		return find(ctx, q)
	}
	expect.Len(t, found(t, s, "heron", Shared), 0, "found")
	expect.Len(t, found(t, s, "heron", Private(owner)), 2, "found : this test measures nothing")
}

// TestRedactTurn: a redacted message leaves no trace in the index, with the answer to it, and is
// not indexed again.
func TestRedactTurn(t *testing.T) {
	for _, b := range backends {
		s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: b})
		me := Private(owner)
		hear(t, s, me, "dm", "the heron nests by the weir", "A heron, nice.", "and the otter sleeps", "Otters do.")
		quotes := expect.Must(s.RedactTurn(t.Context(), "$dm1"))(t)
		expect.Equal(t, strings.Join(quotes, "|"), " said: the heron nests by the weir| said: A heron, nice.", b)
		again := Turn{Scope: me, Event: "$dm1", Sender: owner, At: time.Now(), Conversation: "dm", Seq: 1, Text: "the heron nests by the weir"}
		expect.OK(t, s.IndexTurns(t.Context(), again))
		expect.Len(t, found(t, s, "heron weir nice", me), 0, "%s: is found", b)
		expect.Len(t, found(t, s, "otter", me), 2, "%s: only of the rest is found", b)
		expect.OK(t, indexIsSound(t, OpenFTS(s.db)))
		expect.Equal(t, expect.Must(s.LastTurnSeq(t.Context(), "dm"))(t), 4, fmt.Sprintf("%s: heard up to", b))
		expect.Must(s.RedactTurn(t.Context(), "$unknown"))(t)
	}
}

// TestForgottenTurnsNotFound: messages that said or repeat a forgotten fact are not found.
func TestForgottenTurnsNotFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openWith(t, Config{Dir: dir, Owner: owner, Backend: "fts5"})
	me := Private(owner)
	hear(t, s, me, "dm", "My locker opens with HERON-99, mind you.", "Noted, HERON-99.", "And tea?", "Green.", "I said: the locker opens with HERON-99", "Yes.")
	e := added(t, s, Entry{Scope: me, Text: "the locker opens with HERON-99", Source: Assistant, Event: "$dm1", Quote: "My locker opens with HERON-99, mind you."}, owner)
	expect.Must(s.Forget(t.Context(), as(owner), e.ID))(t)
	expect.Len(t, found(t, s, "locker HERON-99 opens", me), 0, "found")
	expect.Len(t, found(t, s, "tea green", me), 2, "only of the rest is found")
	expect.Len(t, traces(t, dir, "HERON-99"), 0, "traces in")
}

// TestSearchReportsFaults: a fault of the database is an error, not nothing found.
func TestSearchReportsFaults(t *testing.T) {
	s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: "fts5"})
	noted(t, s, Private(owner), "the heron nests by the weir", owner)
	expect.Must(s.db.Exec(`DROP TABLE index_term`))(t)
	if _, err := s.Search(t.Context(), Query{Text: "heron", Scopes: []Scope{Private(owner)}}); err == nil || errors.Is(err, sql.ErrNoRows) {
		t.Errorf("error = %v", err)
	}
}

// TestOutdatedTurnsHidden: a message that repeats a corrected or archived entry is not found, nor
// shown beside another one. Queries for the past find it, and so do others after an undo.
// Holds W13.
func TestOutdatedTurnsHidden(t *testing.T) {
	ctx, s := t.Context(), openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: "fts5"})
	me := Private(owner)
	e := noted(t, s, me, "My sister's name is Jana.", owner)
	tea := noted(t, s, me, "green tea", owner)
	for i, text := range []string{"Remember: my sister’s name is Jana, please!", "My sister paints green tea cups.", "I was told that my sister's name is Jana"} {
		turn := Turn{Scope: me, Event: "$" + text[:4], Sender: owner, Text: text, At: today, Conversation: "!r", Seq: i + 1}
		if i == 2 {
			turn.Sender = ""
		}
		expect.OK(t, s.IndexTurns(ctx, turn))
	}
	found := func(past bool) (said []string) {
		for _, h := range expect.Must(s.Search(ctx, Query{Text: "sister Jana paints green cups", Scopes: []Scope{me}, Now: today, K: 20, Turns: true, Past: past}))(t) {
			if h.Turn == nil {
				continue
			}
			said = append(said, h.Turn.Text)
			for _, a := range h.Around {
				said = append(said, a.Text)
			}
		}
		slices.Sort(said)
		return slices.Compact(said)
	}
	check := func(when string, past, jana bool) {
		t.Helper()
		got := strings.Join(found(past), " | ")
		expect.False(t, !strings.Contains(got, "paints") || strings.Contains(got, "Jana") != jana, "%s: found %q", when, got)
	}
	check("at first", false, true)
	next := expect.Must(s.Supersede(ctx, as(owner), e.ID, "My sister's name is Mira."))(t)
	if err := s.Retire(ctx, as(owner), tea.ID); err != nil { // too short to silence what holds it
		t.Fatal(err)
	}
	check("corrected", false, false)
	check("the past", true, true)
	expect.OK(t, s.Retire(ctx, as(owner), next.ID))
	check("put away", false, false)
	noted(t, s, me, "my sister's name is Jana", owner)
	check("true after all", false, true)
}

// Tests of what has been seen to go wrong elsewhere; faults.txt lists them.

// The index is made of the entries, not of the file that shows some of them, and
// changes nothing about them.
// Holds L2.
func TestReindexKeepsWhatTheFileDoesNotShow(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), openWith(t, Config{Dir: t.TempDir(), Owner: owner, FileLines: 4})
	for n := range 20 {
		e := noted(t, s, Private(owner), fmt.Sprintf("heron number %d", n), owner)
		expect.OK(t, s.Pin(ctx, as(owner), e.ID, n == 3))
	}
	before := expect.Must(s.List(ctx, everything, Filter{}))(t)
	if n := len(lines.Texts([]byte(onDisk(t, s, Private(owner))))); n > 6 {
		t.Fatalf("%d lines in the file: that is no working set", n)
	}
	for range 2 {
		expect.Must(s.index.Rebuild(ctx))(t)
		texts(t, s, Private(owner))
	}
	expect.NoDiff(t, expect.Must(s.List(ctx, everything, Filter{}))(t), before, "other than wanted")
	expect.Len(t, expect.Must(OpenFTS(s.db).Search(ctx, Query{Text: "heron", Scopes: []Scope{Private(owner)}, K: 100}))(t), 20, "are found")
	sound(t, s)
}

// What says a wording anew that was corrected makes an entry of its own: the
// correction stays as it is.
// Holds L14.
func TestOldWordsDoNotOverwriteTheirCorrection(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	e := noted(t, s, Private(owner), "the code is 4711", owner)
	next := expect.Must(s.Supersede(ctx, as(owner), e.ID, "the code is 4712"))(t)
	again := noted(t, s, Private(owner), "the code is 4711", owner)
	expect.False(t, again.ID == e.ID || again.ID == next.ID, "%s took the place of %s or %s", again.ID, e.ID, next.ID)
	for id, text := range map[string]string{e.ID: "the code is 4711", next.ID: "the code is 4712", again.ID: "the code is 4711"} {
		expect.Equal(t, expect.Must(s.Get(ctx, everything, id))(t).Text, text, "%s says, and said", id)
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
		expect.False(t, !add(t, s, Private(owner), text), "%q is not taken", text)
	}
}

// To search writes nothing, waits for no writer and counts nothing as used.
// Holds P1.
func TestSearchOnlyReads(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	e := noted(t, s, Private(owner), "the heron is grey", owner)
	tx, err := s.db.BeginTx(ctx, nil) // somebody writes, and takes long
	expect.OK(t, err)
	defer tx.Rollback()
	var before, after int
	expect.OK(t, s.db.QueryRowContext(t.Context(), `SELECT count(*) FROM memory_op`).Scan(&before))
	search := func() {
		if hits := expect.Must(OpenFTS(s.db).Search(ctx, Query{Text: "heron", Scopes: []Scope{Private(owner)}, Turns: true, Past: true}))(t); len(hits) != 1 {
			t.Fatalf("%+v", hits)
		}
	}
	search()
	expect.OK(t, tx.Rollback())
	search()
	got := expect.Must(s.Get(ctx, everything, e.ID))(t)
	if err := s.db.QueryRow(`SELECT count(*) FROM memory_op`).Scan(&after); err != nil || after != before {
		t.Errorf("%d operations, and before %d, %v", after, before, err)
	}
	expect.False(t, got.Hits != 0 || got.Rev != e.Rev || !got.LastHit.Equal(time.Time{}), "%+v", got)
}
