package main

import (
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/llm/encoder"
	"reverie/internal/memory"
	"reverie/internal/trust"
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

// TestLocalVectorFindsByMeaning: without being asked for anything the bot reads its
// memories for their meaning in the background, and finds them by it.
func TestLocalVectorFindsByMeaning(t *testing.T) {
	if !encoder.BuiltIn() {
		t.Skip("no weights are built in: make weights")
	}
	b := openTest(t, small)
	for _, text := range []string{"Rex is my puppy.", "The kitchen was painted green.", "The train leaves at seven."} {
		if _, _, err := b.memory.Add(t.Context(), memory.Entry{Scope: memory.Shared, Text: text, Source: memory.Assistant, Integrity: trust.User}, "assistant"); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	background(t, b.runVectors)
	status := b.withVectors(nil)
	until(t, "not all memories are read", func() bool {
		if lines := status(ctx, b.messages.For(ctx, "!r")); len(lines) == 1 && !strings.Contains(lines[0], "of 3 memories are read") {
			t.Errorf("meanwhile: %q", lines)
		}
		return b.vectors.Status(ctx).Done == 3
	})
	if lines := status(ctx, b.messages.For(ctx, "!r")); len(lines) != 0 {
		t.Errorf("when there is no news: %q", lines)
	}
	hits, err := b.memory.Search(ctx, memory.Query{Text: "Does anybody own a dog?", Scopes: []memory.Scope{memory.Shared}})
	if err != nil || len(hits) == 0 || hits[0].Entry.Text != "Rex is my puppy." {
		t.Errorf("found %+v, %v; %s", hits, err, status(ctx, b.messages.For(ctx, "!r")))
	}
}
