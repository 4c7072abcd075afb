package session

import (
	"path/filepath"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
)

// A new message needs the last turn only; one that an interrupted run has stored may be older.
func TestPastBefore(t *testing.T) {
	db := expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	h := history.NewStore(db)
	for _, m := range []history.Message{
		{Role: llm.User, Sender: "@me:x", EventID: "$a"}, {Role: llm.Assistant, EventID: "re$a"},
		{Role: llm.User, Sender: "@me:x", EventID: "$b"}, {Role: llm.User, EventID: "$job"},
	} {
		m.Room, m.Text, m.At = "!r", "hello", time.Unix(1, 0)
		expect.OK(t, h.Append(t.Context(), &m))
	}
	for event, want := range map[string]string{"$new": "$b", "$a": "$a"} {
		past := expect.Must(pastBefore(t.Context(), h, "!r", []chat.Message{{Head: chat.Head{ID: event}}}))(t)
		expect.Equal(t, past[0].EventID, want, event)
		expect.Equal(t, past[len(past)-1].EventID, "$job", event)
	}
}
