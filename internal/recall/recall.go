// Package recall puts what was said into the search index: messages of the history become
// turns of the memory.
package recall

import (
	"context"
	"strings"

	"reverie/internal/agent"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
)

// All keeps all messages that were not kept yet, of all conversations.
// What is forgotten after that is found in them too, and does not come back later.
func All(ctx context.Context, h *history.Store, m *memory.Store) error {
	talks, err := h.Rooms(ctx)
	if err != nil {
		return err
	}
	for _, talk := range talks {
		kept, err := m.HeardUpTo(ctx, talk)
		if err != nil {
			return err
		}
		past, err := h.Load(ctx, history.Talk(talk))
		if err == nil {
			_, err = Keep(ctx, h, m, history.Talk(talk), past, kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Keep keeps the messages of a conversation that come after kept, and returns the
// last one that is kept then. What was taken back or edited while it did so, after past was
// read, is kept as it is now, also when the program ends meanwhile.
func Keep(
	ctx context.Context, h *history.Store, store *memory.Store, talk history.Talk, past []history.Message, kept int,
) (int, error) {
	heard := map[string]memory.Turn{}
	var failed error
	for _, t := range Turns(talk, past) {
		if t.Seq <= kept {
			continue
		}
		if failed = store.Hear(ctx, t); failed != nil {
			break
		}
		kept, heard[t.Event] = t.Seq, t
	}
	if len(heard) == 0 {
		return kept, failed
	}
	ctx = context.WithoutCancel(ctx)
	now, err := h.Load(ctx, talk)
	if err != nil {
		return kept, err
	}
	for _, m := range now {
		if _, ok := heard[m.EventID]; ok && history.TakenBack(m) {
			if _, err := store.Unhear(ctx, m.EventID); err != nil {
				return kept, err
			}
		}
	}
	for _, t := range Turns(talk, now) {
		if was, ok := heard[t.Event]; ok && was.Text != t.Text {
			if err := store.Hear(ctx, t); err != nil {
				return kept, err
			}
		}
	}
	return kept, failed
}

// Turns are the messages of a conversation as the search index has them. They belong to those who read
// them, also where memories are for everybody (memory.isolation).
func Turns(talk history.Talk, past []history.Message) (turns []memory.Turn) {
	var scope memory.Scope
	for _, m := range past {
		if m.Role == llm.User {
			if scope = ""; m.EventID != "" && m.Sender != "" { // or it is an event, and nobody said it
				scope = m.Label.Readers
			}
		}
		words := m.Text
		if m.Role == llm.Assistant {
			words = agent.Visible(words)
		}
		spoken := m.Role == llm.User || m.Role == llm.Assistant && len(m.Calls) == 0
		if scope == "" || !spoken || m.EventID == "" || strings.TrimSpace(words) == "" || history.TakenBack(m) {
			continue
		}
		turns = append(turns, memory.Turn{Scope: scope, Integrity: m.Label.Integrity, Event: m.EventID, Sender: m.Sender, At: m.At,
			Conversation: string(talk), Seq: int(m.ID), Text: words})
	}
	return turns
}
