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
)

var backends = []Backend{FlatFile, FTS5}

func hear(t testing.TB, s *Store, scope Scope, conversation string, said ...string) {
	t.Helper()
	for i, text := range said {
		sender := owner
		if i%2 == 1 {
			sender = ""
		}
		turn := Turn{Scope: scope, Event: fmt.Sprintf("$%s%d", conversation, i+1), Sender: sender, At: time.Unix(1_790_000_000+int64(i)*60, 0),
			Conversation: conversation, Seq: i + 1, Text: text}
		noError(t, s.Hear(t.Context(), turn))
	}
}

func search(t testing.TB, s *Store, text string, scopes ...Scope) (lines []string) {
	t.Helper()
	hits := must(s.Search(t.Context(), Query{Text: text, Scopes: scopes, Turns: true, K: 10}))(t)
	for _, h := range hits {
		lines = append(lines, h.Text())
	}
	return lines
}

func TestBackendUnknown(t *testing.T) {
	s := openAt(t, t.TempDir())
	if _, err := Open(t.Context(), Config{DB: s.db, Dir: t.TempDir(), Backend: "fts4"}); err == nil || !strings.Contains(err.Error(), "flat_file, fts5") {
		t.Errorf("opened: %v", err)
	}
}

// careless is an index that finds everything, whoever asks.
type careless struct{ index }

func (c careless) Search(ctx context.Context, q Query) ([]Hit, error) {
	q.Scopes = append(q.Scopes, Private(owner))
	return c.index.Search(ctx, q)
}

// TestCarelessIndex: an index that minds no scope is no way around them.
func TestCarelessIndex(t *testing.T) {
	s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: FTS5})
	noted(t, s, Private(owner), "the heron nests by the weir", owner)
	hear(t, s, Private(owner), "dm", "I saw the heron today")
	s.finder = careless{s.finder}
	if got := search(t, s, "heron", Shared); len(got) != 0 {
		t.Errorf("found %q", got)
	}
	if got := search(t, s, "heron", Private(owner)); len(got) != 2 {
		t.Errorf("found %q: this test measures nothing", got)
	}
}

// TestUnhear: a message that is taken back goes with the answer to it, leaves no
// trace in the index, and is not heard again.
func TestUnhear(t *testing.T) {
	for _, b := range backends {
		s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: b})
		me := Private(owner)
		hear(t, s, me, "dm", "the heron nests by the weir", "A heron, nice.", "and the otter sleeps", "Otters do.")
		quotes, err := s.Unhear(t.Context(), "$dm1")
		if err != nil || strings.Join(quotes, "|") != " said: the heron nests by the weir| said: the heron nests by the weir| said: A heron, nice.| said: A heron, nice." {
			t.Errorf("%s: %q, %v", b, quotes, err)
		}
		again := Turn{Scope: me, Event: "$dm1", Sender: owner, At: time.Now(), Conversation: "dm", Seq: 1, Text: "the heron nests by the weir"}
		if err := s.Hear(t.Context(), again); err != nil {
			t.Error(err)
		}
		if got := search(t, s, "heron weir nice", me); len(got) != 0 {
			t.Errorf("%s: %q is found", b, got)
		}
		if got := search(t, s, "otter", me); len(got) != 2 {
			t.Errorf("%s: only %q of the rest is found", b, got)
		}
		noError(t, indexIsSound(t, OpenFTS(s.db)))
		if n, err := s.HeardUpTo(t.Context(), "dm"); err != nil || n != 4 {
			t.Errorf("%s: heard up to %d, %v", b, n, err)
		}
		if _, err := s.Unhear(t.Context(), "$unknown"); err != nil {
			t.Error(err)
		}
	}
}

// TestForgottenIsNotHeardOf: what is to be forgotten is not found in the messages
// that told it, or repeat it.
func TestForgottenIsNotHeardOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openWith(t, Config{Dir: dir, Owner: owner, Backend: FTS5})
	me := Private(owner)
	hear(t, s, me, "dm", "My locker opens with HERON-99, mind you.", "Noted, HERON-99.", "And tea?", "Green.", "I said: the locker opens with HERON-99", "Yes.")
	e := added(t, s, Entry{Scope: me, Text: "the locker opens with HERON-99", Source: Assistant, Event: "$dm1", Quote: "My locker opens with HERON-99, mind you."}, owner)
	must(s.Forget(t.Context(), as(owner), e.ID))(t)
	if got := search(t, s, "locker HERON-99 opens", me); len(got) != 0 {
		t.Errorf("found %q", got)
	}
	if got := search(t, s, "tea green", me); len(got) != 2 {
		t.Errorf("only %q of the rest is found", got)
	}
	if found := traces(t, dir, "HERON-99"); len(found) != 0 {
		t.Errorf("traces in %v", found)
	}
}

// TestSearchReportsFaults: a fault of the database is an error, not nothing found.
func TestSearchReportsFaults(t *testing.T) {
	s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: FTS5})
	noted(t, s, Private(owner), "the heron nests by the weir", owner)
	must(s.db.Exec(`DROP TABLE index_term`))(t)
	if _, err := s.Search(t.Context(), Query{Text: "heron", Scopes: []Scope{Private(owner)}}); err == nil || errors.Is(err, sql.ErrNoRows) {
		t.Errorf("error = %v", err)
	}
}

// TestCorrectedTalkStaysAway: a message that repeats what was corrected or put away is
// not found by itself, neither beside another one; it is for whoever asks for the past,
// and once the change is taken back.
// Holds W13.
func TestCorrectedTalkStaysAway(t *testing.T) {
	ctx, s := t.Context(), openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: FTS5})
	me := Private(owner)
	e := noted(t, s, me, "My sister's name is Jana.", owner)
	tea := noted(t, s, me, "green tea", owner)
	for i, text := range []string{"Remember: my sister’s name is Jana, please!", "My sister paints green tea cups.", "I was told that my sister's name is Jana"} {
		turn := Turn{Scope: me, Event: "$" + text[:4], Sender: owner, Text: text, At: today, Conversation: "!r", Seq: i + 1}
		if i == 2 {
			turn.Sender = ""
		}
		noError(t, s.Hear(ctx, turn))
	}
	found := func(past bool) (said []string) {
		for _, h := range must(s.Search(ctx, Query{Text: "sister Jana paints green cups", Scopes: []Scope{me}, Now: today, K: 20, Turns: true, Past: past}))(t) {
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
		if !strings.Contains(got, "paints") || strings.Contains(got, "Jana") != jana {
			t.Errorf("%s: found %q", when, got)
		}
	}
	check("at first", false, true)
	next := must(s.Supersede(ctx, as(owner), e.ID, "My sister's name is Mira."))(t)
	if err := s.Retire(ctx, as(owner), tea.ID); err != nil { // too short to silence what holds it
		t.Fatal(err)
	}
	check("corrected", false, false)
	check("the past", true, true)
	noError(t, s.Retire(ctx, as(owner), next.ID))
	check("put away", false, false)
	noted(t, s, me, "my sister's name is Jana", owner)
	check("true after all", false, true)
}
