// Package recall adds conversations to the search index: it converts messages of the history to turns
// of package memory.
package recall

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/chatexport"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/manner"
	"reverie/internal/memory"
	"reverie/internal/store"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// IndexAll indexes the new messages of all conversations. Call it before forgetting a text, so that the
// text is found in all of them and is not indexed afterwards.
func IndexAll(ctx context.Context, h *history.Store, m *memory.Store) error {
	talks, err := h.Rooms(ctx)
	if err != nil {
		return err
	}
	for _, talk := range talks {
		past, err := h.Load(ctx, history.Timeline(talk))
		if err == nil {
			err = IndexNew(ctx, h, m, history.Timeline(talk), past)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// indexedAtOnce is how many messages are indexed in one transaction. Other writers wait for it.
const indexedAtOnce = 100

// IndexNew indexes the messages of past that are newer than the last indexed one. It then applies edits
// and redactions made after past was read, even if ctx ends.
func IndexNew(ctx context.Context, h *history.Store, store *memory.Store, talk history.Timeline, past []history.Message) error {
	cursor, err := store.LastTurnSeq(ctx, string(talk))
	if err != nil {
		return err
	}
	fresh := slices.DeleteFunc(turns(talk, past), func(t memory.Turn) bool { return t.Seq <= cursor })
	for some := range slices.Chunk(fresh, indexedAtOnce) {
		if err := store.IndexTurns(ctx, some...); err != nil {
			return err
		}
		for _, t := range some {
			if err := indexChange(context.WithoutCancel(ctx), h, store, talk, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// indexChange applies to the index what was done to a message since it was read as t.
func indexChange(ctx context.Context, h *history.Store, store *memory.Store, talk history.Timeline, t memory.Turn) error {
	now, found, err := h.Find(ctx, talk, t.Event)
	switch {
	case err != nil || !found:
		return err
	case history.IsRedacted(now):
		_, err = store.RedactTurn(ctx, t.Event)
	case said(now) != t.Text:
		t.Text = said(now)
		err = store.IndexTurns(ctx, t)
	}
	return err
}

// Import stores c, which person exported from another assistant, in the history and the search index. Only
// that person may read it, and it is harvested like messages of a room. added counts the messages
// that were not stored before.
func Import(ctx context.Context, h *history.Store, m *memory.Store, c chatexport.Conversation, person string,
	of trust.Label) (added int, err error) {
	talk := importedTalk(c)
	if _, err := h.StartNew(ctx, talk); err != nil {
		return 0, err
	}
	for _, said := range c.Messages {
		err := h.Append(ctx, &history.Message{Room: talk, Role: llm.User, EventID: ImportedEvent(c, said), Sender: person,
			Text: said.Text, At: said.At, Label: of})
		switch {
		case err == nil:
			added++
		case !errors.Is(err, history.ErrDuplicate):
			return added, err
		}
	}
	past, err := h.Load(ctx, talk)
	if err == nil {
		err = IndexNew(ctx, h, m, talk, past)
	}
	return added, err
}

// ImportedEvent is the event id of a message of c.
func ImportedEvent(c chatexport.Conversation, m chatexport.Message) string {
	return string(importedTalk(c)) + "/" + m.ID
}

// importedTalk is where the conversations of a service are stored. No room's id begins so.
func importedTalk(c chatexport.Conversation) history.Timeline {
	return history.Timeline("import:" + c.Service)
}

// Redact deletes the message event from the history, the search index, and what was remembered and noticed
// of it.
func Redact(ctx context.Context, h *history.Store, store *memory.Store, noticed manner.Store, event string) error {
	if err := h.Redact(ctx, event); err != nil {
		return err
	}
	quotes, err := store.RedactTurn(ctx, event)
	if err != nil {
		return err
	}
	lines, err := noticed.Redact(ctx, event)
	if err == nil {
		err = h.RemoveQuotes(ctx, append(quotes, lines...))
	}
	if err == nil {
		_, err = store.ForgetEvent(ctx, memory.Access{Actor: "redaction", All: true}, event)
	}
	return err
}

// Notice counts what a person's message m shows of how they like to be answered.
func Notice(ctx context.Context, db store.DBTX, noticed manner.Store, m history.Message) error {
	return noticed.Observe(ctx, db, manner.Said{Event: m.EventID, Person: m.Sender, Readers: m.Label.Readers,
		Allowed: tool.AllowsAct(m.Label.Integrity, tool.Manner), Text: m.Text, At: m.At})
}

// What makes a repeated answer count as too long.
const (
	longAnswer = 1200 // characters
	soon       = 5 * time.Minute
)

// NoticeRepeat counts that a reaction or an edit asks again for the answer to asked, because it was long.
func NoticeRepeat(ctx context.Context, noticed manner.Store, in chat.Inbound, asked, answer history.Message, now time.Time) error {
	head, long := chat.HeadOf(in), utf8.RuneCountInString(answer.Text) >= longAnswer
	if _, redaction := in.(chat.Redaction); redaction || !long || now.Sub(answer.At) > soon {
		return nil
	}
	return noticed.ObserveTooLong(ctx, manner.Said{Event: head.ID, Person: head.Sender, Readers: asked.Label.Readers,
		Allowed: tool.AllowsAct(asked.Label.Integrity, tool.Manner), Text: "🔁", At: now})
}

// IndexEdited indexes the edited message m again, if the index has passed it.
func IndexEdited(ctx context.Context, store *memory.Store, talk history.Timeline, m history.Message) error {
	cursor, err := store.LastTurnSeq(ctx, string(talk))
	if err != nil {
		return err
	}
	for _, t := range turns(talk, []history.Message{m}) {
		if t.Seq <= cursor {
			return store.IndexTurns(ctx, t)
		}
	}
	return nil
}

// turns converts messages to turns of the search index. Their scope is the message's readers, whatever
// memory.isolation says.
func turns(talk history.Timeline, past []history.Message) (all []memory.Turn) {
	var scope memory.Scope
	for _, m := range past {
		if m.Role == llm.User {
			if scope = ""; m.EventID != "" && m.Sender != "" { // else a system event
				scope = m.Label.Readers
			}
		}
		text := said(m)
		visible := m.Role == llm.User || m.Role == llm.Assistant && len(m.Calls) == 0
		if scope == "" || !visible || m.EventID == "" || strings.TrimSpace(text) == "" || history.IsRedacted(m) {
			continue
		}
		all = append(all, memory.Turn{Scope: scope, Integrity: m.Label.Integrity, Event: m.EventID, Sender: m.Sender, At: m.At,
			Conversation: string(talk), Seq: int(m.ID), Text: text})
	}
	return all
}

// said returns the text of m without the markers of a model.
func said(m history.Message) string {
	if m.Role == llm.Assistant {
		return agent.WithoutMarkers(m.Text)
	}
	return m.Text
}

// CountUse counts which memories in the request the answer at the end of past used.
func CountUse(ctx context.Context, m *memory.Store, scopes []memory.Scope, past []history.Message, request []llm.Message) error {
	n := len(past)
	if n < 2 || past[n-1].Role != llm.Assistant {
		return nil
	}
	asked := ""
	for i := n - 2; i >= 0 && asked == ""; i-- {
		if past[i].Role == llm.User {
			asked = past[i].Text
		}
	}
	return m.CountUse(ctx, scopes, asked, past[n-1].Text, func(text string) bool {
		return slices.ContainsFunc(request, func(m llm.Message) bool { return strings.Contains(m.Content, text) })
	})
}
