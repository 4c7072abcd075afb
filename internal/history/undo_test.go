package history_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// rows is everything stored of the messages with these ids.
func rows(t testing.TB, db *sql.DB, most int64) string {
	t.Helper()
	var all string
	err := db.QueryRow(`SELECT coalesce(group_concat(concat_ws('|', id, room, conversation, role, event_id, sender, header, text, short, tail, calls, call_id, failed, at, retired, compaction, quoted, integrity, readers, unquoted), char(10) ORDER BY id), '')
		FROM message WHERE id <= ?`, most).Scan(&all)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestUncompact: what a compaction did is taken back to the letter, once.
func TestUncompact(t *testing.T) {
	s, db := open(t)
	if _, err := s.Uncompact(t.Context(), here, noon); !errors.Is(err, history.ErrNotCompacted) {
		t.Errorf("of nothing: %v", err)
	}
	all, compact := compacted(t, s)
	first := rows(t, db, all[5].ID)
	must(compact())(t)
	second := rows(t, db, all[5].ID)
	past := must(s.Load(t.Context(), here))(t)
	past[0].Text = "5" // what was shortened is shortened again
	again := history.Compaction{Room: here, Level: history.Trimmed, Reason: "full", Summary: "They counted on.", At: noon}
	noError(t, s.Compact(t.Context(), &again, past[1:], past[:1]))
	since := say(t, s, here, "since")
	if got := texts(t, s, here); got != "5|since" {
		t.Fatalf("loaded: %s", got)
	}
	back, err := s.Uncompact(t.Context(), here, noon)
	if err != nil || back.ID != again.ID || back.Messages != 1 || back.Shortened != 1 {
		t.Errorf("taken back: %+v, %v", back, err)
	}
	if got := rows(t, db, all[5].ID); got != second {
		t.Errorf("it was\n%s\nand is\n%s", second, got)
	}
	if c, err := s.Compacted(t.Context(), here); err != nil || c.Summary != "They counted." {
		t.Errorf("what counts now: %+v, %v", c, err)
	}
	if got := texts(t, s, here); got != "five|six|since" {
		t.Errorf("loaded: %s", got)
	}
	if _, err := s.Uncompact(t.Context(), here, noon); !errors.Is(err, history.ErrUndone) {
		t.Errorf("twice in a row: %v", err)
	}
	if got := texts(t, s, here); got != "five|six|since" || since.ID == 0 {
		t.Errorf("after it was refused: %s", got)
	}
	if first == second {
		t.Error("nothing was compacted: this test measures nothing")
	}
}

// TestUncompactAny: whatever a compaction does, taking it back leaves no trace in the messages.
func TestUncompactAny(t *testing.T) {
	s, db := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		if _, err := s.StartNew(t.Context(), here); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 6).Draw(rt, "messages") {
			say(t, s, here, "something of some length")
		}
		for round := range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			say(t, s, here, "one more")
			past, err := s.Load(t.Context(), here)
			if err != nil {
				rt.Fatal(err)
			}
			before := rows(t, db, past[len(past)-1].ID)
			loaded := texts(t, s, here)
			at := rapid.IntRange(1, len(past)).Draw(rt, "gone")
			var shorter []history.Message
			for _, m := range past[at:] {
				if rapid.Bool().Draw(rt, "shorter") {
					m.Text = strings.Repeat("s", 1+round)
					shorter = append(shorter, m)
				}
			}
			c := history.Compaction{Room: here, Level: history.Summary, Reason: "full", Summary: "Sum.", At: noon}
			if err := s.Compact(t.Context(), &c, past[:at], shorter); err != nil {
				rt.Fatal(err)
			}
			if rapid.Bool().Draw(rt, "stays") {
				continue
			}
			if _, err := s.Uncompact(t.Context(), here, noon); err != nil {
				rt.Fatal(err)
			}
			if after := rows(t, db, past[len(past)-1].ID); after != before || texts(t, s, here) != loaded {
				rt.Fatalf("it was\n%s\nand is\n%s", before, after)
			}
		}
	})
}

// TestForgetLeavesSummaries: what is forgotten, or taken back, leaves the short forms, the
// summaries and what stands beside them as well; other lines stay.
func TestForgetLeavesSummaries(t *testing.T) {
	s, db := open(t)
	var all []history.Message
	for _, m := range []history.Message{
		{Role: llm.User, Sender: "@ada:x", EventID: "$1", Text: "My locker has the number 4711.\nThe dog is called Bruno."},
		{Role: llm.Tool, CallID: "1", Text: "long long long: the code is 9999 and more"},
		{Role: llm.User, Sender: "@ada:x", EventID: "$2", Text: "A secret: my password is swordfish, and more of it"},
		{Role: llm.User, Sender: "@ada:x", EventID: "$3", Text: "well"},
	} {
		m.Room = here
		noError(t, s.Append(t.Context(), &m))
		all = append(all, m)
	}
	all[1].Text, all[2].Text = "the code is 9999", "A secret: my password is swordfish"
	c := history.Compaction{Room: here, Level: history.Extracted, Reason: "full", At: noon, Summary: "Said since, in short:\n- ada: My locker has the number 4711.\n- ada: hello",
		Details: []string{"ada: The dog is called Bruno.", "ada: My locker has the number 4711.", "tool: the code is 9999"}}
	noError(t, s.Compact(t.Context(), &c, all[:1], all[1:3]))
	noError(t, s.Redact(t.Context(), "$1"))
	noError(t, s.Redact(t.Context(), "$2"))
	forget(t, s, db, "the code is 9999")
	now, err := s.Compacted(t.Context(), here)
	if err != nil || now.Text() != "Said since, in short:\n- ada: hello\n\nWord for word:\n- tool: [forgotten]" {
		t.Errorf("%q, %v", now.Text(), err)
	}
	if got := texts(t, s, here); got != "[forgotten]|[taken back]|well" {
		t.Errorf("loaded: %s", got)
	}
	if _, err := s.Uncompact(t.Context(), here, noon); err != nil { // nor does it come back
		t.Fatal(err)
	}
	if got := rows(t, db, 1<<60); strings.Contains(got, "9999") || strings.Contains(got, "swordfish") || strings.Contains(got, "4711") {
		t.Errorf("left: %s", got)
	}
}
