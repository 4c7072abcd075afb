package main

import (
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
)

// TestTakenBackIsNotRecalled: a message that its sender takes back is not found
// again, and no request quotes it any more.
// Holds M7.
func TestTakenBackIsNotRecalled(t *testing.T) {
	b := openTest(t, small+"memory: {backend: fts5}\n")
	const secret = "The vault opens with HERON-99."
	me := memory.Private(b.cfg.owner())
	turn := memory.Turn{Scope: me, Event: "$1", Sender: b.cfg.owner(), At: time.Now(), Conversation: "!dm", Seq: 1, Text: secret}
	must(t, b.memory.Hear(t.Context(), turn))
	line := memory.Hit{Turn: &turn}.Line(time.UTC, nil)
	for _, m := range []history.Message{
		{Role: llm.User, EventID: "$1", Text: secret}, {Role: llm.Assistant, EventID: "re:$1", Text: "Good."},
		{Role: llm.User, EventID: "$2", Text: "And now?", Tail: "Recalled: " + line}, {Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "c", Name: "search_memory", Arguments: `{"query":"vault"}`}}},
		{Role: llm.Tool, CallID: "c", Text: "The best first:\n" + line},
	} {
		m.Room, m.At = "!dm", time.Now()
		tail := m.Tail
		must(t, b.history.Append(t.Context(), &m))
		_, err := b.db.Exec(`UPDATE message SET tail = ? WHERE id = ?`, tail, m.ID)
		must(t, err)
	}
	must(t, b.takenBack(t.Context(), "$1"))
	hits, err := b.memory.Search(t.Context(), memory.Query{Text: "vault HERON-99", Scopes: []memory.Scope{me}, Turns: true})
	if err != nil || len(hits) != 0 {
		t.Errorf("found %+v, %v", hits, err)
	}
	past, err := b.history.Load(t.Context(), "!dm")
	if err != nil || len(past) != 5 {
		t.Fatalf("%d messages, %v", len(past), err)
	}
	for _, m := range past {
		if strings.Contains(m.Text+m.Tail, "HERON-99") {
			t.Errorf("%s %s still says it: %q %q", m.Role, m.EventID, m.Text, m.Tail)
		}
	}
	if !b.memory.Recalls() {
		t.Error("fts5 is asked for, and every memory goes into the prompt")
	}
}
