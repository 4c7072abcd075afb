package session

import (
	"context"
	"strings"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/memory"
)

// recallable puts the messages that are new into the search index. It runs when nobody has said anything
// for a while, and before messages leave the conversation; what fails is done the next time.
func (s *Session) recallable(ctx context.Context) {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err == nil {
		err = s.knowKept(ctx)
	}
	if err == nil {
		s.kept, err = searchable(ctx, s.cfg.History, s.cfg.Memory, s.talk, past, s.kept)
	}
	if err == nil {
		err = s.countUse(ctx, s.newest, past)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("what was said cannot be found again yet; it is tried after the next message", "err", err)
	}
}

// knowKept finds out up to which message the conversation can be found again.
func (s *Session) knowKept(ctx context.Context) (err error) {
	if s.kept == 0 {
		s.kept, err = s.cfg.Memory.HeardUpTo(ctx, string(s.talk))
	}
	return err
}

// Searchable keeps all messages that were not kept yet, of all conversations.
// What is forgotten after that is found in them too, and does not come back later.
func Searchable(ctx context.Context, h *history.Store, m *memory.Store) error {
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
			_, err = searchable(ctx, h, m, history.Talk(talk), past, kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// searchable keeps the messages of a conversation that come after kept, and returns the
// last one that is kept then. What was taken back or edited while it did so, after past was
// read, is kept as it is now, also when the program ends meanwhile.
func searchable(ctx context.Context, h *history.Store, store *memory.Store, talk history.Talk, past []history.Message, kept int) (int, error) {
	heard := map[string]memory.Turn{}
	var failed error
	for _, t := range turnsOf(talk, past) {
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
	for _, t := range turnsOf(talk, now) {
		if was, ok := heard[t.Event]; ok && was.Text != t.Text {
			if err := store.Hear(ctx, t); err != nil {
				return kept, err
			}
		}
	}
	return kept, failed
}

// turnsOf are the messages of a conversation as the search index has them. They belong to those who read
// them, also where memories are for everybody (memory.isolation).
func turnsOf(talk history.Talk, past []history.Message) (turns []memory.Turn) {
	var scope memory.Scope
	for _, m := range past {
		if m.Role == llm.User {
			if scope = ""; m.EventID != "" && m.Sender != "" { // or it is an event, and nobody said it
				scope = m.Label.Readers
			}
		}
		words := m.Text
		if m.Role == llm.Assistant {
			words = agent.Visible(i18n.English, words)
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

// countUse counts the memories that the newest answer made use of, among those
// that the model had before it.
func (s *Session) countUse(ctx context.Context, in chat.Inbound, past []history.Message) error {
	n := len(past)
	if n < 2 || past[n-1].Role != llm.Assistant || past[n-1].EventID != replyID(in.ID) || s.counted >= past[n-1].ID {
		return nil
	}
	s.counted = past[n-1].ID
	asked := ""
	for i := n - 2; i >= 0 && asked == ""; i-- {
		if past[i].Role == llm.User {
			asked = past[i].Text
		}
	}
	return s.cfg.Memory.CountUse(ctx, s.scopes(in), asked, past[n-1].Text, s.read)
}

// reads notes what the model gets to read of a request.
func (s *Session) reads(messages []llm.Message) {
	s.read = func(text string) bool {
		for _, m := range messages {
			if strings.Contains(m.Content, text) {
				return true
			}
		}
		return false
	}
}
