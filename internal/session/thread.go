package session

import (
	"context"
	"slices"
	"strings"
	"time"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/compaction"
	"reverie/internal/history"
	"reverie/internal/llm"
)

// reasonThread is the compaction reason of a thread's first summary. Package history reads it.
const reasonThread = "thread"

// startThread starts a thread's conversation with a summary and a quote. The summary is of the
// room, the quote of the root. in is the thread's first message.
func (s *Session) startThread(ctx context.Context, in chat.Message) error {
	if s.thread == "" {
		return nil
	}
	if begun, err := s.cfg.History.Exists(ctx, s.talk); err != nil || begun {
		return err
	}
	var err error
	if in.Quotes, err = s.readableQuotes(ctx, in); err != nil {
		return err
	}
	past, before, err := s.roomConversation(ctx, in.Head)
	if err != nil {
		return err
	}
	window, _ := s.cfg.Models.Window(chatRole)
	limit := compaction.ThreadLimit(window)
	root := chat.Quote{At: in.At}
	if i := slices.IndexFunc(in.Quotes, func(q chat.Quote) bool { return q.Why == chat.QuoteThread }); i >= 0 {
		root = in.Quotes[i]
	}
	c := history.Compaction{Room: s.talk, Level: history.Extracted, Reason: reasonThread, At: s.cfg.Now()}
	past = compaction.BeforeThread(past, s.thread, root)
	if c.Integrity = history.MinIntegrity(past); before.Text() != "" {
		c.Integrity = min(c.Integrity, before.Integrity)
	}
	if root.Why == chat.QuoteThread {
		c.Details = compaction.RootLines(root, limit/3)
		of, err := s.quoteIntegrity(ctx, in.Head, root)
		if err != nil {
			return err
		}
		c.Integrity = min(c.Integrity, of)
	}
	c.Summary = compaction.RoomContext(before.Text(), past, limit-llm.EstimateTokens(strings.Join(c.Details, "\n")))
	c.After = llm.EstimateTokens(c.Text())
	_, err = s.cfg.History.BeginThread(ctx, &c)
	return err
}

// roomConversation returns the room's own messages and summary for a thread to start from. It returns
// nothing if the thread's readers may not read the room.
func (s *Session) roomConversation(ctx context.Context, in chat.Head) (past []history.Message, before history.Compaction, err error) {
	room := history.NewTimeline(s.room, "")
	readers, err := s.cfg.History.Readers(ctx, room)
	if err != nil || !s.place(in).MayRead(readers) {
		return nil, before, err
	}
	if past, err = s.cfg.History.Load(ctx, room); err != nil {
		return nil, before, err
	}
	before, err = s.cfg.History.LatestCompaction(ctx, room)
	return past, before, err
}

// threadIdle is the silence after which a thread's session ends. A room can have many threads. The
// next message starts the session again from the database.
const threadIdle = 10 * time.Minute

// stopIdleThread ends the session of a thread with an empty mailbox. It reports whether it did.
func (s *Session) stopIdleThread() bool {
	if s.thread == "" {
		return false
	}
	s.Manager.mu.Lock() // so that nothing is delivered meanwhile
	defer s.Manager.mu.Unlock()
	if !s.mail.Empty() {
		return false
	}
	delete(s.sessions, s.talk)
	s.cfg.Prompt.Leave(s.talk)
	return true
}

// stopThreads cancels the work for person in all threads of the room. It is for a !stop outside of
// threads, and reports whether there was any work.
func (s *Session) stopThreads(person string) bool {
	s.Manager.mu.Lock()
	defer s.Manager.mu.Unlock()
	stopped := false
	for _, b := range s.sessions {
		if b.room == s.room && b.thread != "" && b.mail.Stop(person, agent.ErrStopped) {
			stopped = true
		}
	}
	return stopped
}
