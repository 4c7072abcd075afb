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
		past, err := h.Load(ctx, history.Timeline(talk))
		if err == nil {
			err = Keep(ctx, h, m, history.Timeline(talk), past)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Keep keeps the messages of a conversation that came after those kept before. What was taken back or
// edited while it did so, after past was read, is kept as it is now, also when the program ends meanwhile.
func Keep(ctx context.Context, h *history.Store, store *memory.Store, talk history.Timeline, past []history.Message) error {
	kept, err := store.LastTurnSeq(ctx, string(talk))
	if err != nil {
		return err
	}
	heard := map[string]memory.Turn{}
	var failed error
	for _, t := range turns(talk, past) {
		if t.Seq <= kept {
			continue
		}
		if failed = store.IndexTurn(ctx, t); failed != nil {
			break
		}
		heard[t.Event] = t
	}
	if len(heard) == 0 {
		return failed
	}
	ctx = context.WithoutCancel(ctx)
	now, err := h.Load(ctx, talk)
	if err != nil {
		return err
	}
	for _, m := range now {
		if _, ok := heard[m.EventID]; ok && history.IsRedacted(m) {
			if _, err := store.RedactTurn(ctx, m.EventID); err != nil {
				return err
			}
		}
	}
	for _, t := range turns(talk, now) {
		if was, ok := heard[t.Event]; ok && was.Text != t.Text {
			if err := store.IndexTurn(ctx, t); err != nil {
				return err
			}
		}
	}
	return failed
}

// Again keeps m, a message of a person that was edited, if those around it are kept already.
func Again(ctx context.Context, store *memory.Store, talk history.Timeline, m history.Message) error {
	kept, err := store.LastTurnSeq(ctx, string(talk))
	if err != nil {
		return err
	}
	for _, t := range turns(talk, []history.Message{m}) {
		if t.Seq <= kept {
			return store.IndexTurn(ctx, t)
		}
	}
	return nil
}

// turns are the messages of a conversation as the search index has them. They belong to those who read
// them, also where memories are for everybody (memory.isolation).
func turns(talk history.Timeline, past []history.Message) (all []memory.Turn) {
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
		if scope == "" || !spoken || m.EventID == "" || strings.TrimSpace(words) == "" || history.IsRedacted(m) {
			continue
		}
		all = append(all, memory.Turn{Scope: scope, Integrity: m.Label.Integrity, Event: m.EventID, Sender: m.Sender, At: m.At,
			Conversation: string(talk), Seq: int(m.ID), Text: words})
	}
	return all
}
