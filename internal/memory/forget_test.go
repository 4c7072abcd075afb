package memory

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/search/searchtest"
	"reverie/internal/test/expect"
	"reverie/internal/text"
)

// traces lists the files below dir that hold text, or a part of it that tells.
func traces(t testing.TB, dir, text string) []string {
	t.Helper()
	var found []string
	expect.OK(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			found = append(found, path)
		}
		return err
	}))
	return found
}

// TestForgetLeavesNothing greps the data folder.
// Holds W8.
func TestForgetLeavesNothing(t *testing.T) {
	t.Parallel()
	const canary = `the code is "CANARY-4711" <&> ü`
	ctx, dir := t.Context(), t.TempDir()
	s := openAt(t, dir)
	me := Private(owner)
	// Much around it, so that it lies on pages that were split and emptied.
	for i := range 300 {
		noted(t, s, me, fmt.Sprintf("fact %d %s", i, strings.Repeat("x", i%200)), owner)
	}
	wrong := noted(t, s, me, "CANARY-4711 is the code, or so", owner)
	e := expect.Must(s.Supersede(ctx, as(owner), wrong.ID, canary))(t)
	for i := range 300 {
		noted(t, s, me, fmt.Sprintf("more %d %s", i, strings.Repeat("y", i%300)), owner)
	}
	expect.OK(t, s.Pin(ctx, as(owner), e.ID, true))
	put(t, s, me, "# "+canary+"\n"+onDisk(t, s, me))
	texts(t, s, me)
	other := noted(t, s, me, "learned elsewhere", owner)
	expect.Must(s.db.Exec(`UPDATE memory SET quote = 'I told you CANARY-4711', subject = 'CANARY-4711', event = '$1' WHERE id = ?`, other.ID))(t)
	conn := expect.Must(s.db.Conn(ctx))(t)
	cutOff := filepath.Join(dir, ".MEMORIES.txt12345678")
	expect.OK(t, os.WriteFile(cutOff, []byte(canary), 0o600))
	cutOffProfile := filepath.Join(dir, "memories", "users", "@a=3ax", ".profile.txt12345678")
	expect.OK(t, os.MkdirAll(filepath.Dir(cutOffProfile), 0o700))
	expect.OK(t, os.WriteFile(cutOffProfile, []byte(canary), 0o600))
	// A copy in the free space, as an earlier release may have left one.
	for _, query := range []string{`PRAGMA secure_delete = 0`, `CREATE TABLE junk (a TEXT)`, `INSERT INTO junk VALUES ('` + canary + `')`, `DELETE FROM junk`} {
		expect.Must(conn.ExecContext(ctx, query))(t)
	}
	expect.OK(t, conn.Close())
	before := texts(t, s, me)
	done := expect.Must(s.Forget(ctx, as(owner), e.ID))(t)
	expect.Equal(t, done.Entries, 2, "forgot entries")
	expect.False(t, len(traces(t, dir, "I told you")) == 0, "the search for traces finds nothing at all")
	expect.Must(s.ForgetEvent(ctx, as(owner), "$1"))(t)
	expect.Len(t, traces(t, dir, "CANARY-4711"), 0, "traces in")
	expect.False(t, texts(t, s, me) != strings.ReplaceAll(strings.ReplaceAll(before, "|"+canary, ""), "|learned elsewhere", ""), "something else is gone too")
	for _, id := range []string{wrong.ID, e.ID, other.ID} {
		got := expect.Must(s.Get(ctx, everything, id))(t)
		expect.False(t, got.State != Forgotten || got.Text+got.Quote+got.Subject != "", "%+v", got)
	}
	if all := expect.Must(s.History(ctx, everything, e.ID))(t); !strings.HasSuffix(kinds(all), "forget") || all[0].After != nil {
		t.Errorf("journal: %+v", all)
	}
}

// TestForgottenIsNotLearnedAgain, however it is spelled and wherever it comes
// from, until the person asks for it.
// Holds W8.
func TestForgottenIsNotLearnedAgain(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := openAt(t, dir)
	me := Private(owner)
	e := noted(t, s, me, "I was born in Ulm.", owner)
	noted(t, s, me, "tea", owner)
	old := onDisk(t, s, me)
	expect.Must(s.Forget(ctx, as(owner), e.ID))(t)
	for range 2 {
		for _, source := range []Source{Assistant, Harvest, DreamingMerge, Imported} {
			if _, added, err := s.Add(ctx, Entry{Scope: me, Text: "i was  born in ULM", Source: source}, owner); added || !errors.Is(err, ErrForgotten) {
				t.Errorf("%s: %v, %v", source, added, err)
			}
		}
		put(t, s, me, old) // an editor that still had it
		expect.Equal(t, texts(t, s, me), "tea", "back by the file")
		expect.Len(t, traces(t, dir, "born in Ulm"), 0, "traces in")
		s = openAt(t, dir)
	}
	expect.False(t, !add(t, s, Shared, "I was born in Ulm."), "it is forgotten elsewhere too")
	noted(t, s, me, "I was born in Ulm.", owner)
	expect.Equal(t, texts(t, s, me), "tea|I was born in Ulm.", "asked for again")
	if _, added, err := s.Append(ctx, me, "I was born in Ulm"); added || err != nil {
		t.Errorf("said once more: %v, %v", added, err)
	}
	expect.Must(s.Undo(ctx, as(owner), ""))(t)
	expect.False(t, !add(t, s, me, "I was born in Ulm"), "asked for once, and still not to be learned")
}

// TestForgetRefuses what cannot be seen, and then forgets nothing.
func TestForgetRefuses(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	mine, theirs := noted(t, s, Private(guest), "mine", guest), noted(t, s, Private(owner), "theirs", owner)
	if _, err := s.Forget(ctx, as(guest), mine.ID, theirs.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v", err)
	}
	expect.Equal(t, expect.Must(s.ForgetEvent(ctx, as(guest), "$unknown"))(t).Entries, 0, "forgotten entries")
	expect.Equal(t, texts(t, s, Private(guest), Private(owner)), "mine|theirs", "left")
}

// TestForgetPurgesInItsTransaction: what else quotes it goes with it, or nothing does.
func TestForgetPurgesInItsTransaction(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	var told []string
	var fail error
	s := openWith(t, Config{Dir: dir, Owner: owner, Purge: func(_ context.Context, _ *sql.Tx, texts []string) (int, error) {
		told = append(told, texts...)
		return 3, fail
	}})
	e := noted(t, s, Shared, "tea", owner)
	fail = errors.New("no")
	if _, err := s.Forget(ctx, everything, e.ID); !errors.Is(err, fail) {
		t.Errorf("error %v", err)
	}
	expect.Equal(t, texts(t, s, Shared), "tea", "forgotten in part")
	fail = nil
	if done, err := s.Forget(ctx, everything, e.ID); err != nil || done.StillQuoted != 3 || strings.Join(told, "|") != "tea|tea" {
		t.Errorf("%+v, %v, told %q", done, err, told)
	}
}

// TestInterruptedForget is finished at the next start.
func TestInterruptedForget(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	e := noted(t, s, Private(owner), "CANARY-4711", owner)
	func() {
		defer func() { _ = recover() }()
		s.fault = func(point string) {
			if point == "committed" {
				panic("the end")
			}
		}
		_, _ = s.Forget(t.Context(), everything, e.ID)
	}()
	if found := traces(t, dir, "CANARY-4711"); len(found) == 0 {
		t.Fatal("there is nothing left to do")
	}
	_ = s.db.Close()
	s = openAt(t, dir)
	expect.Len(t, traces(t, dir, "CANARY-4711"), 0, "traces in")
	expect.Equal(t, texts(t, s, Private(owner)), "", "still known")
}

// TestForgetDeletesVector, however the text was spelled, and leaves that of a text
// that somebody else still remembers. It goes from every space, and with it what was asked.
func TestForgetDeletesVector(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := openAt(t, dir)
	gone := noted(t, s, Private(owner), "The code is 4711.", owner)
	noted(t, s, Private("@other:x"), "we keep bees", "@other:x")
	both := noted(t, s, Private(owner), "We keep bees!", owner)
	complete(t, openVectors(t, s.db, &searchtest.Embedder{Model: "words", Dim: 300}))
	e := &searchtest.Embedder{Model: "other", Dim: 200}
	v := openVectors(t, s.db, e)
	complete(t, v)
	v.EmbedQuery(ctx, "the code is 4711")
	var code []byte
	expect.OK(t, s.db.QueryRow(`SELECT vec FROM embedding WHERE hash = ? AND length(vec) = 300`, text.Hash("The code is 4711.")).Scan(&code))
	expect.OK(t, checkpoint(ctx, s.db))
	part := string(code[:64])
	if len(traces(t, dir, part)) == 0 {
		t.Fatal("the vector is not found to begin with")
	}
	expect.Must(s.Forget(ctx, as(owner), gone.ID))(t)
	expect.Must(s.Forget(ctx, as(owner), both.ID))(t)
	expect.Equal(t, countRows(t, s.db, `SELECT count(*) FROM embedding WHERE hash = ?`, text.Hash("the code is 4711")), 0, "vectors of what was forgotten")
	expect.Equal(t, countRows(t, s.db, `SELECT count(*) FROM embedding`), 2, "vectors, want those of the bees")
	expect.OK(t, v.Follow(ctx))
	_, before := e.Asked()
	v.EmbedQuery(ctx, "the code is 4711")
	_, after := e.Asked()
	expect.Equal(t, after-before, 1, "requests, as a question with the forgotten words is not kept")
	if got := near10(t, v, "the code is 4711", Private(owner)); got != nil {
		t.Errorf("forgotten, and found: %v", got)
	}
	expect.Len(t, near10(t, v, "bees", Private("@other:x")), 1, "what somebody else remembers")
	expect.Len(t, traces(t, dir, part), 0, "the vector is still in")
}

// TestForgetAfterAnUndo: what a text was corrected to or merged into goes with it
// although that was undone; what was merged with it stays.
func TestForgetAfterAnUndo(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := openAt(t, dir)
	mine := Private(guest)
	secret, tea := notedBy(t, s, Assistant, mine, "Jana lives in Xyloburg"), notedBy(t, s, Assistant, mine, "Jana has 2 cats")
	putTogether(t, s, []string{secret.ID, tea.ID}, "Jana in Xyloburg has 2 cats")
	expect.Must(s.Undo(ctx, as(guest), ""))(t)
	expect.Must(s.Supersede(ctx, as(guest), secret.ID, "Jana does not live in Xyloburg"))(t)
	expect.Must(s.Undo(ctx, as(guest), ""))(t)
	expect.Equal(t, expect.Must(s.Forget(ctx, as(guest), secret.ID))(t).Entries, 3, "forgot entries")
	expect.Len(t, traces(t, dir, "Xyloburg"), 0, "traces in")
	expect.Equal(t, texts(t, s, mine), "Jana has 2 cats", "known")
	sound(t, s)
}

func notedBy(t testing.TB, s *Store, source Source, scope Scope, text string) Entry {
	t.Helper()
	return added(t, s, Entry{Scope: scope, Text: text, Source: source}, guest)
}

// putTogether puts one entry in the place of others, as a model could have it done in
// earlier releases: what they left is in people's databases.
func putTogether(t testing.TB, s *Store, ids []string, text string) (merged Entry) {
	t.Helper()
	first := expect.Must(s.Get(t.Context(), everything, ids[0]))(t)
	expect.Must(s.write(t.Context(), guest, []Scope{first.Scope}, func(c *change) (err error) {
		if merged, err = c.add(Entry{Scope: first.Scope, Text: text, Source: DreamingMerge}); err != nil {
			return err
		}
		for _, id := range ids {
			old := expect.Must(s.Get(t.Context(), everything, id))(t)
			after := old
			after.State, after.By = Merged, merged.ID
			if err := c.updateWithMembers(old, after, "merge"); err != nil {
				return err
			}
		}
		return nil
	}))(t)
	return merged
}

// TestForgetPart: what one part of a merged entry said is gone, and the other
// parts are known again; to forget the merged entry forgets its parts.
func TestForgetPart(t *testing.T) {
	dir, mine := t.TempDir(), Private(guest)
	s := openAt(t, dir)
	var parts []string
	for i, text := range []string{"the heron nests by the weir", "the otter sleeps by the weir"} {
		parts = append(parts, added(t, s, Entry{Scope: mine, Text: text, Source: Assistant, Event: fmt.Sprint("$", i)}, guest).ID)
	}
	putTogether(t, s, parts, "heron and otter sleep by the weir, nests")
	expect.Equal(t, expect.Must(s.ForgetEvent(t.Context(), as(guest), "$0"))(t).Entries, 2, "forgotten entries")
	expect.Equal(t, texts(t, s, mine), "the otter sleeps by the weir", "known")
	m := putTogether(t, s, parts[1:], "an otter by the weir")
	expect.Must(s.Forget(t.Context(), as(guest), m.ID))(t)
	expect.Equal(t, texts(t, s, mine), "", "known")
	expect.Len(t, append(traces(t, dir, "heron"), traces(t, dir, "otter")...), 0, "left in")
	sound(t, s)
}

// TestForgottenInOtherWords: messages that say a forgotten fact in other words are not found.
func TestForgottenInOtherWords(t *testing.T) {
	for _, tt := range []struct {
		fact        string
		same, other []string
	}{
		{"the door code is HERON-4711", []string{"press heron and then 4711 to get in", "was it 4711, heron?"}, []string{"the door is green", "the code of the shed is 4712", "a heron sat there"}},
		{"Anna is allergic to peanuts", []string{"peanuts again! you know how allergic Anna is"}, []string{"Anna sells peanuts", "Ben is allergic to peanuts", "Anna sings"}},
		{"my sister Clara collects old stamps", []string{"stamps, old ones: Clara collects them"}, []string{"Clara sings in the choir", "the post sells stamps"}},
		{"ich habe Diabetes und spritze Insulin", []string{"Insulin spritzen muss ich wegen der Diabetes"}, []string{"Diabetes ist häufig", "das Insulin ist teuer"}},
	} {
		s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: "fts5"})
		me, theirs := Private(owner), Private(guest)
		for i, text := range tt.same {
			heardFrom(t, s, me, "a", 10*i, text)
			heardFrom(t, s, theirs, "b", 10*i, text)
		}
		for i, text := range tt.other {
			heardFrom(t, s, me, "a", 10*i+5, text)
		}
		question := Query{Text: tt.fact + " " + strings.Join(tt.same, " "), Scopes: []Scope{me}, K: 50, Turns: true}
		if got := turnTexts(t, s, question); len(got) != len(tt.same)+len(tt.other) {
			t.Fatalf("%s: before, %q is found", tt.fact, got)
		}
		fact := noted(t, s, me, tt.fact, owner)
		done := expect.Must(s.Forget(t.Context(), as(owner), fact.ID))(t)
		expect.Equal(t, done.Unindexed, len(tt.same), "%s: messages said to be found no more", tt.fact)
		for i, text := range tt.same { // as when the conversation is heard again
			heardFrom(t, s, me, "a", 10*i, text)
		}
		got := turnTexts(t, s, question)
		expect.Equal(t, len(got), len(tt.other), "%s: afterwards %q is found", tt.fact, got)
		for _, text := range tt.same {
			expect.False(t, strings.Contains(strings.Join(got, "|"), text), "%s: there is %q in\n%s", tt.fact, text, strings.Join(got, "|"))
		}
		question.Scopes = []Scope{theirs}
		expect.Len(t, turnTexts(t, s, question), len(tt.same), "%s: of another's conversation is found", tt.fact)
	}
}

func heardFrom(t *testing.T, s *Store, scope Scope, talk string, seq int, text string) {
	t.Helper()
	turn := Turn{Scope: scope, Event: fmt.Sprint("$", talk, seq), Sender: "@x:example.org", At: today.Add(time.Duration(seq) * time.Minute), Conversation: talk, Seq: seq + 1, Text: text}
	expect.OK(t, s.IndexTurns(t.Context(), turn))
}

func turnTexts(t *testing.T, s *Store, q Query) []string {
	t.Helper()
	hits := expect.Must(s.Search(context.Background(), q))(t)
	var out []string
	for _, h := range hits {
		if h.Turn != nil {
			out = append(out, h.Turn.Text)
		}
	}
	return out
}
