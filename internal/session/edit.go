package session

import (
	"context"
	"errors"
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

func named(burst []chat.Inbound) []string {
	ids := make([]string, 0, len(burst)+1)
	for _, in := range burst {
		ids = append(ids, in.ID)
	}
	return append(ids, replyID(burst[len(burst)-1].ID))
}

// settle waits until a message has been left as it is for a while. Another edit of it
// ends ctx, so that many quick ones are answered once.
func (s *Session) settle(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.cfg.Settle):
		return nil
	}
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

// reword gives a message that is in the history the words of the edit e. The old ones
// leave the prompts, and what search and memory have of them.
func (s *Session) reword(ctx context.Context, e chat.Inbound, note string) error {
	was, known, err := s.cfg.History.Find(ctx, s.talk, e.Target)
	if err != nil || !known || was.Role != llm.User || history.TakenBack(was) {
		return err
	}
	if e.Text = attachment.WithVoice(was.Text, e.Text); emptied(e, was) {
		return nil
	}
	if was.Text != e.Text { // memory first: a message that has its new words is done with
		replies, err := s.repliesTo(ctx, e.Target)
		if err != nil {
			return err
		}
		quotes, err := s.cfg.Memory.Unsay(ctx, append([]string{e.Target}, replies...)...)
		if err == nil {
			err = s.cfg.History.Unquote(ctx, quotes)
		}
		if err == nil {
			err = s.cfg.Memory.Reword(ctx, memory.Access{Actor: "edit", All: true}, e.Target, e.Text)
		}
		if err == nil {
			was.Text = e.Text
			err = s.hearAgain(ctx, was)
		}
		if err != nil {
			return err
		}
	}
	_, _, err = s.cfg.History.Reword(ctx, e.Target, e.Text, note, harvest.Again)
	return err
}

// Young is how old a message may be, at most, that becomes a command by an edit.
const Young = 10 * time.Minute

// emptied reports whether the edit e leaves nothing of the message was: no words, and no
// file that they stood beside. Such an edit is none.
func emptied(e chat.Inbound, was history.Message) bool { return e.Text == "" && len(was.Files) == 0 }

// hearAgain keeps m, a message of a person, so that it can be found, if those around it can
// be. What is newer is kept with them, see recallable.
func (s *Session) hearAgain(ctx context.Context, m history.Message) error {
	if err := s.knowKept(ctx); err != nil {
		return err
	}
	for _, t := range recall.Turns(s.talk, []history.Message{m}) {
		if t.Seq <= s.kept {
			return s.cfg.Memory.Hear(ctx, t)
		}
	}
	return nil
}

// shared reports whether others read the room when m was written.
func shared(m history.Message) bool { return m.Label.Readers.Person() == "" }

// change is the work on one thing that was done to a message said before.
type change struct {
	*Session
	in     chat.Inbound
	asking chat.Inbound // whose answer is given anew; ID "" = none
}

// handleChange deals with what was done to something said before. Whatever goes wrong,
// the person hears of it where the answer would stand.
func (s *Session) handleChange(work context.Context, in chat.Inbound) {
	log := s.log.With("change", in.Change, "event", in.ID, "message", in.Target, "sender", in.Sender)
	s.insist(work, log, func() error {
		c := &change{Session: s, in: in}
		turn, err := s.attempt(work, log, in.Sender, true, []string{in.Target}, c.follow)
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
		return s.notice(work, c.asking, s.calm(work, err, ref))
	})
	if in.Change != chat.Approved { // that did not come from the transport
		s.insist(work, log, func() error { return s.cfg.Transport.Ack(work, in.ID) })
	}
	s.background.Handled(1, s.cfg.Now())
	if work.Err() != nil {
		log.Info("interrupted by the end of the program; it will be taken up again at the next start")
	}
}

// follow does what the change asks for.
func (c *change) follow(ctx context.Context) (err error) {
	in := c.in
	switch in.Change {
	case chat.Edited, chat.TakenBack:
		if err := c.approvals.Void(ctx, c.room, in.Target); err != nil {
			return err
		}
		if in.Change == chat.TakenBack {
			if err := c.approvals.Redact(ctx, c.room, in.Target); err != nil {
				return err
			}
		}
	case chat.Voted:
		if in.Private, err = c.private(ctx, in.Sender); err != nil {
			return err
		}
		return c.vote(ctx, in)
	case chat.Approved:
		return c.goOn(ctx, approval.CodeOf(in.Target))
	}
	if err := c.separateNow(ctx); err != nil {
		return err
	}
	switch in.Change {
	case chat.Edited:
		return c.amend(ctx)
	case chat.TakenBack:
		return c.unsay(ctx, in)
	case chat.AskAgain:
		return c.askAgain(ctx)
	}
	return nil
}

// amend follows an edit of a message that nothing is done for at the moment.
func (c *change) amend(ctx context.Context) error {
	if c.mail.edited(c.in.Target) { // again: that one counts
		return nil
	}
	if err := c.settle(ctx); err != nil {
		return err
	}
	was, known, err := c.cfg.History.Find(ctx, c.talk, c.in.Target)
	if err != nil {
		return err
	}
	if !known {
		return c.amendUnheard(ctx)
	}
	if was.Role != llm.User || history.TakenBack(was) {
		return nil
	}
	if c.in.Text = attachment.WithVoice(was.Text, c.in.Text); emptied(c.in, was) {
		return nil
	}
	past, err := c.cfg.History.Load(ctx, c.talk)
	if err != nil {
		return err
	}
	g := groupOf(past, c.in.Target)
	if !g.end { // only the newest answer is given anew
		return c.reword(ctx, c.in, "")
	}
	if command.Is(c.in.Text) {
		return c.becomesCommand(ctx)
	}
	if was.Text == c.in.Text && g.answer >= 0 && !history.TakenBack(past[g.answer]) { // done before an interruption
		return c.say(ctx, c.asker(c.in, past, g, past[g.answer].EventID), past[g.answer].Text)
	}
	return c.regenerate(ctx, c.in, past, g)
}

// amendUnheard follows the edit of a message that is not in the history: a command as
// a rule. It is taken as if it had come like this, as long as it is young.
func (c *change) amendUnheard(ctx context.Context) error {
	gone, err := c.cfg.Transport.Cancelled(ctx, c.in.Target)
	if err != nil || gone || c.cfg.Now().Sub(c.in.At) > Young || c.in.Text == "" {
		return err
	}
	// What was remembered by the words before, as with !remember.
	if err := c.cfg.Memory.Reword(ctx, memory.Access{Actor: "edit", All: true}, c.in.Target, c.in.Text); err != nil {
		return err
	}
	return c.asIfNew(ctx)
}

// asIfNew works on the edited message as if it had come with the new words.
func (c *change) asIfNew(ctx context.Context) error {
	c.asking = c.in
	c.asking.ID, c.asking.Change, c.asking.Target = c.in.Target, "", ""
	return c.dispatch(ctx, []chat.Inbound{c.asking})
}

// becomesCommand runs a message as a command that was none before. It is part of the
// conversation no more, and neither is an answer to it alone.
func (c *change) becomesCommand(ctx context.Context) error {
	if err := c.forgetAnswer(ctx, replyID(c.in.Target)); err != nil {
		return err
	}
	if err := c.reword(ctx, c.in, ""); err != nil {
		return err
	}
	if err := c.cfg.History.Drop(ctx, c.in.Target, replyID(c.in.Target)); err != nil {
		return err
	}
	return c.asIfNew(ctx)
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

// asker is the message that the answer reply, or one in its place, answers.
func (c *change) asker(in chat.Inbound, past []history.Message, g group, reply string) chat.Inbound {
	m := past[g.last]
	return chat.Inbound{ID: strings.TrimPrefix(reply, replyID("")), Room: c.room, Thread: c.thread, Branch: c.thread, Sender: m.Sender,
		Text: m.Text, Private: in.Private && !shared(m), Unproven: in.Unproven, At: m.At}
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
	c.asking = c.asker(c.in, past, g, reply)
	if in.Change == chat.Edited && in.Target == past[g.last].EventID {
		c.asking.Text = in.Text
	}
	used, err := c.cfg.History.Reopen(ctx, c.talk, past[g.last].EventID, reply)
	if err != nil {
		return err
	}
	change := in
	if in.Change != chat.Edited { // the words stay
		change.Target, change.Text = past[g.last].EventID, past[g.last].Text
		quotes, err := c.cfg.Memory.Unsay(ctx, reply) // so that another can be heard in its place
		if err == nil {
			err = c.cfg.History.Unquote(ctx, quotes)
		}
		if err != nil {
			return err
		}
	}
	if err := c.reword(ctx, change, acted(used)); err != nil {
		return err
	}
	c.newest = c.asking
	return c.respond(ctx, c.asking)
}

// askAgain answers once more what somebody wants answered once more, in its place.
func (c *change) askAgain(ctx context.Context) error {
	if c.in.Target == "" {
		return nil
	}
	question := c.in.Target
	if strings.HasPrefix(c.in.Target, replyID("")) {
		questions, err := c.questionsOf(ctx, c.in.Target)
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
			ID: replyID(c.in.ID), Text: c.text(ctx, "edit.too_far"), Notice: true, ReplyTo: question,
		})
	}
	return c.regenerate(ctx, c.in, past, g)
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
