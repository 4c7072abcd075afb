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
