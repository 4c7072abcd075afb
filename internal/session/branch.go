package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/history/compact"
	"reverie/internal/llm"
)

// becauseThread is why a thread has a summary from the beginning on; history knows the word.
const becauseThread = "thread"

// branch begins the conversation of a thread with a summary of the room up to the root, and the root itself.
// in is the thread's first message.
func (s *Session) branch(ctx context.Context, in chat.Message) error {
	if s.thread == "" {
		return nil
	}
	if begun, err := s.cfg.History.Begun(ctx, s.talk); err != nil || begun {
		return err
	}
	var err error
	if in.Quotes, err = s.readable(ctx, in); err != nil {
		return err
	}
	past, before, err := s.roomBefore(ctx, in.Head)
	if err != nil {
		return err
	}
	window, _ := s.cfg.Models.Window(chatRole)
	most := min(max(window/contextShare, leastContext), mostContext)
	root := chat.Quote{At: in.At}
	if i := slices.IndexFunc(in.Quotes, func(q chat.Quote) bool { return q.Why == chat.QuoteThread }); i >= 0 {
		root = in.Quotes[i]
	}
	c := history.Compaction{Room: s.talk, Level: history.Extracted, Reason: becauseThread, At: s.cfg.Now()}
	past = upTo(past, s.thread, root)
	if c.Integrity = history.Least(past); before.Text() != "" {
		c.Integrity = min(c.Integrity, before.Integrity)
	}
	if root.Why == chat.QuoteThread {
		c.Details = rootLines(root, most/3)
		of, err := s.quoteIntegrity(ctx, in.Head, root)
		if err != nil {
			return err
		}
		c.Integrity = min(c.Integrity, of)
	}
	c.Summary = roomContext(before.Text(), past, most-llm.EstimateTokens(strings.Join(c.Details, "\n")))
	c.After = llm.EstimateTokens(c.Text())
	_, err = s.cfg.History.Begin(ctx, &c)
	return err
}

// roomBefore is the room's own conversation as a thread may go on from it: nothing, if others read it than read the thread.
func (s *Session) roomBefore(ctx context.Context, in chat.Head) (past []history.Message, before history.Compaction, err error) {
	room := history.TalkOf(s.room, "")
	readers, err := s.cfg.History.Readers(ctx, room)
	if err != nil || !s.place(in).MayRead(readers) {
		return nil, before, err
	}
	if past, err = s.cfg.History.Load(ctx, room); err != nil {
		return nil, before, err
	}
	before, err = s.cfg.History.Compacted(ctx, room)
	return past, before, err
}

// upTo is the part of a room's conversation that a thread goes on from: until the first message
// after its root, by the clock of those who wrote.
func upTo(past []history.Message, thread string, root chat.Quote) []history.Message {
	end := root.At
	if i := slices.IndexFunc(past, func(m history.Message) bool { return m.EventID == thread }); i >= 0 {
		end = past[i].At
	}
	later := slices.IndexFunc(past, func(m history.Message) bool { return m.Role == llm.User && !end.IsZero() && m.At.After(end) })
	if later < 0 {
		return past
	}
	return past[:later]
}

const (
	contextLead = "This is a thread of a room. What had been said in the room before it:"
	contextLine = 400 // runes of a message

	contextShare = 10 // what a thread begins with takes at most one in so many tokens of the window
	leastContext = 100
	mostContext  = 1_600
)

// roomContext is what a thread begins with: the room's summary and the newest of what was
// said since, a line each, in at most so many tokens.
func roomContext(summary string, past []history.Message, most int) string {
	var lines []string
	summary = compact.Cut(summary, most/2)
	left := most - llm.EstimateTokens(contextLead+summary) - 2
	for _, m := range slices.Backward(past) {
		if m.Text == "" || m.Role != llm.User && (m.Role != llm.Assistant || len(m.Calls) > 0) || history.TakenBack(m) {
			continue
		}
		who, text := m.Sender, m.Text
		switch {
		case m.Role == llm.Assistant:
			who, text = "you", agent.Visible(text)
		case who == "":
			who = "system"
		}
		line := "- " + who + ": " + history.OneLine(text, contextLine)
		if left -= llm.EstimateTokens(line) + 1; left < 0 {
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	said := strings.TrimSpace(summary + "\n" + strings.Join(lines, "\n"))
	if said == "" {
		return ""
	}
	return contextLead + "\n" + said
}

// rootLines quotes the root of a thread, in at most so many tokens. It must be there
// though nobody says anything else: without it nobody knows what the thread is about.
func rootLines(q chat.Quote, most int) []string {
	who := q.Sender
	if q.OutgoingID != "" {
		who = "you"
	}
	if who == "" {
		return []string{"The thread begins at a message of the room: " + history.OneLine(q.Text, contextLine)}
	}
	text := history.OneLine(compact.Cut(q.Text, most), 4*contextLine)
	return []string{fmt.Sprintf("The thread begins at this message of %s: %s", who, text)}
}

// branchRest is how long nobody says anything in a thread until its session ends: there
// may be one for each question. The next message begins it again from the database.
const branchRest = 10 * time.Minute

// rest ends the session of a thread in which nothing waits, and reports whether it did.
func (s *Session) rest() bool {
	if s.thread == "" {
		return false
	}
	s.Manager.mu.Lock() // so that nothing is delivered meanwhile
	defer s.Manager.mu.Unlock()
	if !s.mail.empty() {
		return false
	}
	delete(s.rooms, s.talk)
	s.cfg.Prompt.Leave(s.talk)
	return true
}

// stopBranches ends what is being answered for person in threads of the room, and reports
// whether there was anything: who says !stop in the room need not look for the thread.
func (s *Session) stopBranches(person string) bool {
	s.Manager.mu.Lock()
	defer s.Manager.mu.Unlock()
	stopped := false
	for _, b := range s.rooms {
		if b.room == s.room && b.thread != "" && b.mail.stop(person, agent.ErrStopped) {
			stopped = true
		}
	}
	return stopped
}
