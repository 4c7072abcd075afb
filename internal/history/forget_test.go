package history_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/store"
)

func forget(t *testing.T, s *history.Store, db *sql.DB, texts ...string) (kept int) {
	t.Helper()
	noError(t, store.InTx(t.Context(), db, func(tx *sql.Tx) (err error) {
		kept, err = s.Forget(t.Context(), tx, texts)
		return err
	}))
	return kept
}

// TestForget: what is to be forgotten leaves everything but what people wrote.
func TestForget(t *testing.T) {
	const text = `Jana's "code" is 4711 <ü>`
	s, db := open(t)
	for i, m := range []history.Message{
		{Role: llm.User, Sender: "@a:b", Text: "remember: " + text, Tail: "[note]\n" + text + "\n[/note]", EventID: "$1"},
		{Role: llm.Assistant, Calls: []llm.ToolCall{
			{ID: "1", Name: "append_memory", Arguments: fmt.Sprintf(`{"entry": %q}`, strings.ReplaceAll(text, " ", "  "))},
			{ID: "2", Name: "task", Arguments: `{"content":"water the plants"}`},
			{ID: "3", Name: "odd", Arguments: `not JSON: ` + text}}},
		{Role: llm.Tool, CallID: "1", Text: "Remembered:\n" + text},
		{Role: llm.Assistant, Text: "I know: " + text + "! And tea."},
		{Role: llm.User, Text: "a sub-session found:\n> " + text, EventID: "ended:1"},
		{Role: llm.User, Sender: "@a:b", Text: "thanks", EventID: "$2"},
	} {
		m.Room = here
		if err := s.Append(t.Context(), &m); err != nil {
			t.Fatal(i, err)
		}
	}
	if kept := forget(t, s, db, text, ""); kept != 1 {
		t.Errorf("%d messages of people are said to hold it", kept)
	}
	all, err := s.Load(t.Context(), here)
	if err != nil || len(all) != 6 {
		t.Fatalf("%v, %v", all, err)
	}
	if all[0].Text != "remember: "+text || all[0].Tail != "[note]\n[forgotten]\n[/note]" {
		t.Errorf("%+v", all[0])
	}
	if got := fmt.Sprintf("%+v", all[1:]); strings.Contains(got, "4711") {
		t.Errorf("left: %s", got)
	}
	if got := all[1].Calls[1].Arguments; got != `{"content":"water the plants"}` {
		t.Errorf("another call became %s", got)
	}
	if got := all[3].Text; got != "I know: [forgotten]! And tea." {
		t.Errorf("answer: %s", got)
	}
	for range 2 {
		noError(t, s.Redact(t.Context(), "$1"))
	}
	noError(t, s.Redact(t.Context(), ""))
	if all, err = s.Load(t.Context(), here); err != nil || all[0].Text != "[taken back]" || all[0].Tail != "" || all[5].Text != "thanks" || all[3].Text == "[taken back]" {
		t.Errorf("%+v, %v", all, err)
	}
	if kept := forget(t, s, db, text, ""); kept != 0 {
		t.Errorf("%d messages are said to hold it still", kept)
	}
}

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
