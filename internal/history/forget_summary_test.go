package history_test

import (
	"database/sql"
	"strings"
	"testing"

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
	if got := rows(t, db, 1<<60); strings.Contains(got, "9999") || strings.Contains(got, "swordfish") || strings.Contains(got, "4711") {
		t.Errorf("left: %s", got)
	}
}
