package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/agent"
	"reverie/internal/approval"
	"reverie/internal/attachment"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/delivery"
	"reverie/internal/harvest"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/recall"
	"reverie/internal/session/mailbox"
	"reverie/internal/store"
)

// interruptedByChange reports whether turn ended because one of its messages was edited or redacted.
func interruptedByChange(turn context.Context) bool {
	return context.Cause(turn) == mailbox.ErrChanged //nolint:errorlint // our own value
}

// burstIDs returns the IDs of burst and of its reply.
func burstIDs(burst []chat.Message) []string {
	ids := store.Map(burst, func(in chat.Message) string { return in.ID })
	return append(ids, chat.ReplyID(ids[len(ids)-1]))
}

// usedToolsNote tells the model, in the question's header, which tools the replaced answer used.
func usedToolsNote(used []string) string {
	if len(used) == 0 {
		return ""
	}
	return "You answered this before and used " + strings.Join(used, "; ") +
		". What that did stands: see whether it still fits and mend it if not."
}

// replaceText replaces the text of the stored message target. The old text leaves the history, the
// search index and memory.
func (s *Session) replaceText(ctx context.Context, target, text, note string) error {
	was, known, err := s.cfg.History.Find(ctx, s.talk, target)
	if err != nil || !known || was.Role != llm.User || history.IsRedacted(was) {
		return err
	}
	if text = attachment.KeepTranscripts(was.Text, text); emptied(text, was) {
		return nil
	}
	if was.Text != text { // memory first: a message with its new text counts as finished
		replies, err := s.repliesTo(ctx, target)
		if err != nil {
			return err
		}
		quotes, err := s.cfg.Memory.ResetTurns(ctx, append([]string{target}, replies...)...)
		if err == nil {
			err = s.cfg.History.RemoveQuotes(ctx, quotes)
		}
		if err == nil {
			err = s.cfg.Memory.ApplyEdit(ctx, memory.Access{Actor: "edit", All: true}, target, text)
		}
		if err == nil {
			was.Text = text
			err = errors.Join(recall.IndexEdited(ctx, s.cfg.Memory, s.talk, was), recall.Notice(ctx, s.cfg.DB, s.cfg.Manner, was))
		}
		if err != nil {
			return err
		}
	}
	_, _, err = s.cfg.History.EditMessage(ctx, target, text, note, harvest.MarkUnread)
	return err
}

// editWindow is the maximum age of an unstored message, such as a command, whose edit is handled.
const editWindow = 10 * time.Minute

// emptied reports whether an edit leaves neither text nor files of was. Such an edit is ignored.
func emptied(text string, was history.Message) bool { return text == "" && len(was.Files) == 0 }

// shared reports whether m was written in a room with others.
func shared(m history.Message) bool { return m.Label.Readers.Person() == "" }

// change applies one edit, redaction, reaction, vote or answered approval.
type change struct {
	*Session
	question chat.Head // the message whose answer is replaced; ID "" = none
}

// handleChange applies a change to an earlier message. It reports a failure in place of the new answer.
func (s *Session) handleChange(work context.Context, in chat.Inbound) {
	head, target := chat.HeadOf(in), chat.TargetOf(in)
	log := s.log.With("change", fmt.Sprintf("%T", in), "event", head.ID, "message", target, "sender", head.Sender)
	s.retryUntilDone(work, log, func() error {
		c := &change{Session: s}
		turn, err := s.runCancellable(work, log, head.Sender, true, []string{target},
			func(ctx context.Context) error { return c.apply(ctx, in) })
		switch {
		case err == nil || work.Err() != nil || store.IsTransient(err):
			return err
		case interruptedByChange(turn), cancelled(turn, err):
			if interruptedByChange(turn) && len(s.joined) > 0 {
				s.mail.Requeue(s.joined)
				s.joined = nil
			}
			return nil // the interrupting change is next in the mailbox
		case c.question.ID == "":
			log.Error("change not applied", "err", err)
			return nil
		case context.Cause(turn) == agent.ErrStopped: //nolint:errorlint // our own value
			log.Info("stopped by a person")
			return s.reportStopped(work, c.question)
		}
		return s.sendNotice(work, c.question.ID, agent.ErrorText(log, s.cfg.Messages.For(work, s.room), err))
	})
	done := s.joined
	if _, own := in.(approvalAnswered); !own { // the transport waits for the others
		done = append(done, chat.Message{Head: head})
	}
	s.ackAll(work, log, done)
}

// apply dispatches a change by its type.
func (c *change) apply(ctx context.Context, in chat.Inbound) (err error) {
	switch in := in.(type) {
	case chat.Edit:
		if err = c.approvals.Void(ctx, c.room, in.Target); err == nil {
			err = c.splitOnCurrentReaders(ctx)
		}
		if err == nil {
			err = c.applyEdit(ctx, in)
		}
	case chat.Redaction:
		if err = c.approvals.Void(ctx, c.room, in.Target); err == nil {
			err = c.approvals.Redact(ctx, c.room, in.Target)
		}
		if err == nil {
			err = c.splitOnCurrentReaders(ctx)
		}
		if err == nil {
			err = c.applyRedaction(ctx, in)
		}
	case chat.Reaction: // Mailbox.Put has cancelled what it stops
		if err = c.splitOnCurrentReaders(ctx); err == nil && in.Action == chat.RetryAnswer {
			err = c.retryOnReaction(ctx, in)
		}
	case chat.Vote:
		if in.Private, err = c.Private(ctx, c.room, in.Sender); err == nil {
			err = c.applyVote(ctx, in)
		}
	case approvalAnswered:
		err = c.resumeApproval(ctx, approval.CodeOf(in.Target))
	}
	return err
}

// applyEdit applies an edit of a message that is not being answered.
func (c *change) applyEdit(ctx context.Context, in chat.Edit) error {
	if c.mail.HasEdit(in.Target) { // a later edit is queued
		return nil
	}
	select {
	case <-ctx.Done(): // another edit cancels, too: quick edits get one answer
		return ctx.Err()
	case <-time.After(c.cfg.EditDebounce):
	}
	was, known, err := c.cfg.History.Find(ctx, c.talk, in.Target)
	if err != nil {
		return err
	}
	if !known {
		return c.applyUnstoredEdit(ctx, in)
	}
	if was.Role != llm.User || history.IsRedacted(was) {
		return nil
	}
	if in.Text = attachment.KeepTranscripts(was.Text, in.Text); emptied(in.Text, was) {
		return nil
	}
	past, err := c.cfg.History.Load(ctx, c.talk)
	if err != nil {
		return err
	}
	g := groupOf(past, in.Target)
	if !g.end { // only the newest answer is replaced
		return c.replaceText(ctx, in.Target, in.Text, "")
	}
	if command.Is(in.Text) {
		return c.convertToCommand(ctx, in)
	}
	if was.Text == in.Text && g.answer >= 0 && !history.IsRedacted(past[g.answer]) { // answered before an interruption
		return c.sendAnswer(ctx, c.questionItem(in.Head, past, g, past[g.answer].EventID), past[g.answer].Text)
	}
	return c.regenerate(ctx, in, past, g)
}

// applyUnstoredEdit handles the edit of a message that is not in the history. Usually it is a
// command. It is handled as a new message within editWindow.
func (c *change) applyUnstoredEdit(ctx context.Context, in chat.Edit) error {
	gone, err := c.cfg.Transport.MessageCancelled(ctx, in.Target)
	if err != nil || gone || c.cfg.Now().Sub(in.At) > editWindow || in.Text == "" {
		return err
	}
	// A memory entry may hold the old text, after !remember.
	if err := c.cfg.Memory.ApplyEdit(ctx, memory.Access{Actor: "edit", All: true}, in.Target, in.Text); err != nil {
		return err
	}
	return c.handleAsNew(ctx, in)
}

// handleAsNew handles the edited message as if it had arrived with its new text.
func (c *change) handleAsNew(ctx context.Context, in chat.Edit) error {
	c.question = in.Head
	c.question.ID = in.Target
	return c.dispatch(ctx, []chat.Message{{Head: c.question, Text: in.Text}})
}

// convertToCommand runs a message edited into a command. It and its own answer leave the history.
func (c *change) convertToCommand(ctx context.Context, in chat.Edit) error {
	if err := c.forgetAnswer(ctx, chat.ReplyID(in.Target)); err != nil {
		return err
	}
	if err := c.replaceText(ctx, in.Target, in.Text, ""); err != nil {
		return err
	}
	if err := c.cfg.History.Drop(ctx, in.Target, chat.ReplyID(in.Target)); err != nil {
		return err
	}
	return c.handleAsNew(ctx, in)
}

// group locates messages of one person, which one answer answers, in a history. Between them are only tool
// rounds.
type group struct {
	known       bool
	first, last int
	answer      int  // index of the answer; -1 = no answer
	end         bool // no later message or event follows
}

// groupOf finds the group of the message event.
func groupOf(past []history.Message, event string) group {
	i := slices.IndexFunc(past, func(m history.Message) bool { return m.Role == llm.User && m.EventID == event })
	if i < 0 || event == "" {
		return group{answer: -1}
	}
	g := group{known: true, first: i, last: i, answer: -1, end: true}
	said := func(j int) bool {
		return j >= 0 && j < len(past) && past[j].Role == llm.User && past[j].Sender == past[i].Sender && past[i].Sender != ""
	}
	within := func(j int) bool { // a tool round, after which more was said
		return j >= 0 && j < len(past) && (past[j].Role == llm.Tool || len(past[j].Calls) > 0)
	}
	for j := i - 1; said(j) || within(j); j-- {
		if said(j) {
			g.first = j
		}
	}
	for j := i + 1; said(j) || within(j); j++ {
		if said(j) {
			g.last = j
		}
	}
	for j := g.last + 1; j < len(past); j++ {
		switch m := past[j]; {
		case m.Role == llm.User:
			g.end = false
		case m.Role == llm.Assistant && len(m.Calls) == 0 && g.answer < 0 && g.end:
			g.answer = j
		}
	}
	return g
}

// questionItem returns the newest message of g as an item, answered under the ID reply. by is the head
// of the change that asks for it.
func (c *change) questionItem(by chat.Head, past []history.Message, g group, reply string) item {
	m := past[g.last]
	return item{again: true, Message: chat.Message{Text: m.Text, Head: chat.Head{
		ID: chat.RepliedTo(reply), Room: c.room, Branch: c.thread, Sender: m.Sender,
		Private: by.Private && !shared(m), Unproven: by.Unproven, At: m.At}}}
}

// regenerate answers the last group again, under the ID of its earlier answer.
func (c *change) regenerate(ctx context.Context, in chat.Inbound, past []history.Message, g group) error {
	first, err := c.answeredAs(ctx, past[g.last].EventID)
	if err != nil {
		return err
	}
	reply := chat.ReplyID(first)
	if g.answer >= 0 {
		reply = past[g.answer].EventID
	}
	question := c.questionItem(chat.HeadOf(in), past, g, reply)
	c.question = question.Head
	edit, edited := in.(chat.Edit)
	if edited && edit.Target == past[g.last].EventID {
		question.Text = edit.Text
	}
	used, err := c.cfg.History.RewindTo(ctx, c.talk, past[g.last].EventID, reply)
	if err == nil && g.answer >= 0 {
		err = recall.NoticeRepeat(ctx, c.cfg.Manner, in, past[g.last], past[g.answer], c.cfg.Now())
	}
	if err != nil {
		return err
	}
	target, text := edit.Target, edit.Text
	if !edited { // the text stays
		target, text = past[g.last].EventID, past[g.last].Text
		quotes, err := c.cfg.Memory.ResetTurns(ctx, reply) // removes the old answer from the index
		if err == nil {
			err = c.cfg.History.RemoveQuotes(ctx, quotes)
		}
		if err != nil {
			return err
		}
	}
	if err := c.replaceText(ctx, target, text, usedToolsNote(used)); err != nil {
		return err
	}
	c.lastHandled = c.question
	return c.respond(ctx, question)
}

// retryOnReaction replaces the answer that a reaction asks to repeat.
func (c *change) retryOnReaction(ctx context.Context, in chat.Reaction) error {
	if in.Target == "" {
		return nil
	}
	question := in.Target
	if chat.IsReply(in.Target) {
		questions, err := c.questionsOf(ctx, in.Target)
		if err != nil {
			return err
		}
		question = questions[len(questions)-1]
	}
	m, known, err := c.cfg.History.Find(ctx, c.talk, question)
	if err != nil || !known || m.Role != llm.User || m.Sender == "" || history.IsRedacted(m) {
		return err // a command, or not answered on request
	}
	past, err := c.cfg.History.Load(ctx, c.talk)
	if err != nil {
		return err
	}
	g := groupOf(past, question)
	if !g.end {
		return c.cfg.Transport.Send(ctx, c.room, chat.Outgoing{
			ID: chat.ReplyID(in.ID), Text: c.text(ctx, "edit.too_far"), Notice: true, ReplyTo: question,
		})
	}
	return c.regenerate(ctx, in, past, g)
}

// repliesTo lists the reply IDs to the message question, the newest last. The list always has
// chat.ReplyID(question).
func (s *Session) repliesTo(ctx context.Context, question string) ([]string, error) {
	replies, err := delivery.RepliesTo(ctx, s.cfg.DB, question)
	if own := chat.ReplyID(question); err == nil && !slices.Contains(replies, own) {
		replies = append([]string{own}, replies...)
	}
	return replies, err
}

// answeredAs returns the message in whose reply question is to be answered: it may have joined an earlier one.
func (s *Session) answeredAs(ctx context.Context, question string) (string, error) {
	replies, err := s.repliesTo(ctx, question)
	if err != nil {
		return "", err
	}
	first := chat.RepliedTo(replies[len(replies)-1])
	if gone, err := s.cfg.Transport.MessageCancelled(ctx, first); err != nil || gone {
		return question, err
	}
	return first, nil
}

// questionsOf lists the messages that reply answers, the oldest first. Without a stored record it is
// the message in reply's ID.
func (s *Session) questionsOf(ctx context.Context, reply string) ([]string, error) {
	questions, err := delivery.QuestionsOf(ctx, s.cfg.DB, reply)
	if len(questions) == 0 {
		questions = []string{chat.RepliedTo(reply)}
	}
	return questions, err
}
