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
	"reverie/internal/store"
)

// errChanged is why work ends that is about a message which was edited or redacted meanwhile.
var errChanged = errors.New("session: changed meanwhile")

// disturbed reports whether turn ended because a message that it is about was changed.
func disturbed(turn context.Context) bool {
	return context.Cause(turn) == errChanged //nolint:errorlint // our own value
}

func named(burst []chat.Message) []string {
	ids := make([]string, 0, len(burst)+1)
	for _, in := range burst {
		ids = append(ids, in.ID)
	}
	return append(ids, replyID(burst[len(burst)-1].ID))
}

// acted is what the model is told, in the header of a message that it answers anew, of
// the tools that it used before; "" = of none.
func acted(used []string) string {
	if len(used) == 0 {
		return ""
	}
	return "You answered this before and used " + strings.Join(used, "; ") +
		". What that did stands: see whether it still fits and mend it if not."
}

// reword gives the message target, which is in the history, the words text. The old ones
// leave the prompts, and what search and memory have of them.
func (s *Session) reword(ctx context.Context, target, text, note string) error {
	was, known, err := s.cfg.History.Find(ctx, s.talk, target)
	if err != nil || !known || was.Role != llm.User || history.TakenBack(was) {
		return err
	}
	if text = attachment.WithVoice(was.Text, text); emptied(text, was) {
		return nil
	}
	if was.Text != text { // memory first: a message that has its new words is done with
		replies, err := s.repliesTo(ctx, target)
		if err != nil {
			return err
		}
		quotes, err := s.cfg.Memory.Unsay(ctx, append([]string{target}, replies...)...)
		if err == nil {
			err = s.cfg.History.Unquote(ctx, quotes)
		}
		if err == nil {
			err = s.cfg.Memory.Reword(ctx, memory.Access{Actor: "edit", All: true}, target, text)
		}
		if err == nil {
			was.Text = text
			err = recall.Again(ctx, s.cfg.Memory, s.talk, was)
		}
		if err != nil {
			return err
		}
	}
	_, _, err = s.cfg.History.Reword(ctx, target, text, note, harvest.Again)
	return err
}

// Young is how old a message may be, at most, that becomes a command by an edit.
const Young = 10 * time.Minute

// emptied reports whether an edit leaves nothing of the message was: no words, and no
// file that they stood beside. Such an edit is none.
func emptied(text string, was history.Message) bool { return text == "" && len(was.Files) == 0 }

// shared reports whether others read the room when m was written.
func shared(m history.Message) bool { return m.Label.Readers.Person() == "" }

// change is the work on one thing that was done to a message said before.
type change struct {
	*Session
	asking chat.Head // of the message whose answer is given anew; ID "" = none
}

// handleChange deals with what was done to something said before. Whatever goes wrong,
// the person hears of it where the answer would stand.
func (s *Session) handleChange(work context.Context, in chat.Inbound) {
	head, target := chat.HeadOf(in), chat.TargetOf(in)
	log := s.log.With("change", fmt.Sprintf("%T", in), "event", head.ID, "message", target, "sender", head.Sender)
	s.insist(work, log, func() error {
		c := &change{Session: s}
		turn, err := s.attempt(work, log, head.Sender, true, []string{target}, func(ctx context.Context) error { return c.follow(ctx, in) })
		switch {
		case err == nil || work.Err() != nil || store.Passing(err):
			return err
		case disturbed(turn), withdrawn(turn, err):
			return nil // what came over it is next
		case c.asking.ID == "":
			log.Error("a change was not followed", "err", err)
			return nil
		case context.Cause(turn) == agent.ErrStopped: //nolint:errorlint // our own value
			log.Info("stopped by a person")
			return s.sayStopped(work, c.asking)
		}
		ref := reference()
		log.Error("message not answered anew", "err", err, "reference", ref)
		return s.notice(work, c.asking.ID, s.calm(work, err, ref))
	})
	if _, own := in.(approved); !own { // else the transport waits
		s.insist(work, log, func() error { return s.cfg.Transport.Ack(work, head.ID) })
	}
}

// follow does what a change asks for.
func (c *change) follow(ctx context.Context, in chat.Inbound) (err error) {
	switch in := in.(type) {
	case chat.Edit:
		if err = c.approvals.Void(ctx, c.room, in.Target); err == nil {
			err = c.separateNow(ctx)
		}
		if err == nil {
			err = c.amend(ctx, in)
		}
	case chat.Redaction:
		if err = c.approvals.Void(ctx, c.room, in.Target); err == nil {
			err = c.approvals.Redact(ctx, c.room, in.Target)
		}
		if err == nil {
			err = c.separateNow(ctx)
		}
		if err == nil {
			err = c.unsay(ctx, in)
		}
	case chat.Reaction: // what it stops was stopped when it came, see put
		if err = c.separateNow(ctx); err == nil && in.Action == chat.RetryAnswer {
			err = c.askAgain(ctx, in)
		}
	case chat.Vote:
		if in.Private, err = c.private(ctx, in.Sender); err == nil {
			err = c.vote(ctx, in)
		}
	case approved:
		err = c.goOn(ctx, approval.CodeOf(in.Target))
	}
	return err
}

// amend follows an edit of a message that nothing is done for at the moment.
func (c *change) amend(ctx context.Context, in chat.Edit) error {
	if c.mail.edited(in.Target) { // again: that one counts
		return nil
	}
	select {
	case <-ctx.Done(): // also by another edit, so that many quick ones are answered once
		return ctx.Err()
	case <-time.After(c.cfg.Settle):
	}
	was, known, err := c.cfg.History.Find(ctx, c.talk, in.Target)
	if err != nil {
		return err
	}
	if !known {
		return c.amendUnheard(ctx, in)
	}
	if was.Role != llm.User || history.TakenBack(was) {
		return nil
	}
	if in.Text = attachment.WithVoice(was.Text, in.Text); emptied(in.Text, was) {
		return nil
	}
	past, err := c.cfg.History.Load(ctx, c.talk)
	if err != nil {
		return err
	}
	g := groupOf(past, in.Target)
	if !g.end { // only the newest answer is given anew
		return c.reword(ctx, in.Target, in.Text, "")
	}
	if command.Is(in.Text) {
		return c.becomesCommand(ctx, in)
	}
	if was.Text == in.Text && g.answer >= 0 && !history.TakenBack(past[g.answer]) { // done before an interruption
		return c.say(ctx, c.asker(in.Head, past, g, past[g.answer].EventID), past[g.answer].Text)
	}
	return c.regenerate(ctx, in, past, g)
}

// amendUnheard follows the edit of a message that is not in the history: a command as
// a rule. It is taken as if it had come like this, as long as it is young.
func (c *change) amendUnheard(ctx context.Context, in chat.Edit) error {
	gone, err := c.cfg.Transport.Cancelled(ctx, in.Target)
	if err != nil || gone || c.cfg.Now().Sub(in.At) > Young || in.Text == "" {
		return err
	}
	// What was remembered by the words before, as with !remember.
	if err := c.cfg.Memory.Reword(ctx, memory.Access{Actor: "edit", All: true}, in.Target, in.Text); err != nil {
		return err
	}
	return c.asIfNew(ctx, in)
}

// asIfNew works on the edited message as if it had come with the new words.
func (c *change) asIfNew(ctx context.Context, in chat.Edit) error {
	c.asking = in.Head
	c.asking.ID = in.Target
	return c.dispatch(ctx, []chat.Message{{Head: c.asking, Text: in.Text}})
}

// becomesCommand runs a message as a command that was none before. It is part of the
// conversation no more, and neither is an answer to it alone.
func (c *change) becomesCommand(ctx context.Context, in chat.Edit) error {
	if err := c.forgetAnswer(ctx, replyID(in.Target)); err != nil {
		return err
	}
	if err := c.reword(ctx, in.Target, in.Text, ""); err != nil {
		return err
	}
	if err := c.cfg.History.Drop(ctx, in.Target, replyID(in.Target)); err != nil {
		return err
	}
	return c.asIfNew(ctx, in)
}

// group is the messages of people that one answer answers, in a history.
type group struct {
	known       bool
	first, last int
	answer      int  // that answer; -1 = there is none
	end         bool // nobody has written since, and no event has come
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
	for said(g.first - 1) {
		g.first--
	}
	for said(g.last + 1) {
		g.last++
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

// asker is the message that the answer reply, or one in its place, answers. by is of the change that asks for it.
func (c *change) asker(by chat.Head, past []history.Message, g group, reply string) item {
	m := past[g.last]
	return item{Message: chat.Message{Text: m.Text, Head: chat.Head{ID: strings.TrimPrefix(reply, replyID("")), Room: c.room,
		Branch: c.thread, Sender: m.Sender, Private: by.Private && !shared(m), Unproven: by.Unproven, At: m.At}}}
}

// regenerate answers the last group of a history anew, under the id of the answer that there
// is or was. in is the change that asks for it.
func (c *change) regenerate(ctx context.Context, in chat.Inbound, past []history.Message, g group) error {
	replies, err := c.repliesTo(ctx, past[g.last].EventID)
	if err != nil {
		return err
	}
	reply := replies[len(replies)-1]
	if g.answer >= 0 {
		reply = past[g.answer].EventID
	}
	asking := c.asker(chat.HeadOf(in), past, g, reply)
	c.asking = asking.Head
	edit, edited := in.(chat.Edit)
	if edited && edit.Target == past[g.last].EventID {
		asking.Text = edit.Text
	}
	used, err := c.cfg.History.Reopen(ctx, c.talk, past[g.last].EventID, reply)
	if err != nil {
		return err
	}
	target, text := edit.Target, edit.Text
	if !edited { // the words stay
		target, text = past[g.last].EventID, past[g.last].Text
		quotes, err := c.cfg.Memory.Unsay(ctx, reply) // so that another can be heard in its place
		if err == nil {
			err = c.cfg.History.Unquote(ctx, quotes)
		}
		if err != nil {
			return err
		}
	}
	if err := c.reword(ctx, target, text, acted(used)); err != nil {
		return err
	}
	c.newest = c.asking
	return c.respond(ctx, asking)
}

// askAgain answers once more what somebody wants answered once more, in its place.
func (c *change) askAgain(ctx context.Context, in chat.Reaction) error {
	if in.Target == "" {
		return nil
	}
	question := in.Target
	if strings.HasPrefix(in.Target, replyID("")) {
		questions, err := c.questionsOf(ctx, in.Target)
		if err != nil {
			return err
		}
		question = questions[len(questions)-1]
	}
	m, known, err := c.cfg.History.Find(ctx, c.talk, question)
	if err != nil || !known || m.Role != llm.User || m.Sender == "" || history.TakenBack(m) {
		return err // a command, or what nobody asked for
	}
	past, err := c.cfg.History.Load(ctx, c.talk)
	if err != nil {
		return err
	}
	g := groupOf(past, question)
	if !g.end {
		return c.cfg.Transport.Send(ctx, c.room, chat.Outgoing{
			ID: replyID(in.ID), Text: c.text(ctx, "edit.too_far"), Notice: true, ReplyTo: question,
		})
	}
	return c.regenerate(ctx, in, past, g)
}

// repliesTo lists the replies to the message question, the newest last. There is always
// the one that bears its name.
func (s *Session) repliesTo(ctx context.Context, question string) ([]string, error) {
	replies, err := delivery.RepliesTo(ctx, s.cfg.DB, question)
	if own := replyID(question); err == nil && !slices.Contains(replies, own) {
		replies = append([]string{own}, replies...)
	}
	return replies, err
}

// questionsOf lists the messages that reply answers, in the order they were written. There
// is always the one that it is named after.
func (s *Session) questionsOf(ctx context.Context, reply string) ([]string, error) {
	questions, err := delivery.QuestionsOf(ctx, s.cfg.DB, reply)
	if len(questions) == 0 {
		questions = []string{strings.TrimPrefix(reply, replyID(""))}
	}
	return questions, err
}
