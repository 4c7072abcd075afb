package session

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"reverie/internal/agent"
	"reverie/internal/approval"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/delivery"
	"reverie/internal/harvest"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/store"
)

// errChanged is why work ends that is about a message which was edited or redacted meanwhile.
var errChanged = errors.New("session: changed meanwhile")

// disturbed reports whether turn ended because a message that it is about was changed.
func disturbed(turn context.Context) bool {
	return context.Cause(turn) == errChanged //nolint:errorlint // our own value
}

// pushChange takes a change into the lane, and ends at once what it concerns. The lock
// is held.
func (s *Session) pushChange(in chat.Inbound) {
	heard, busy := s.hand[in.Target]
	ours := strings.HasPrefix(in.Target, replyID(""))
	switch {
	case in.Change == chat.StopThis && busy:
		s.running(agent.ErrStopped)
	case in.Change == chat.AskAgain && busy: // it is being answered
		in.Target = ""
	case in.Change == chat.TakenBack && busy && ours:
		s.running(agent.ErrWithdrawn)
	case in.Change == chat.Voted, in.Change == chat.Approved: // an answer to a question ends no work
	case busy && (heard || in.Change == chat.TakenBack): // else takeUp finds it
		s.running(errChanged)
	}
	if in.Change == chat.TakenBack { // nobody should see it for longer than need be
		s.lane = append([]chat.Inbound{in}, s.lane...)
		return
	}
	s.lane = append(s.lane, in)
}

// takeInHand notes that ids are what is being worked on, and whether the history has them.
func (s *Session) takeInHand(heard bool, ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.hand != nil {
			s.hand[id] = heard
		}
	}
}

func named(burst []chat.Inbound) []string {
	ids := make([]string, 0, len(burst)+1)
	for _, in := range burst {
		ids = append(ids, in.ID)
	}
	return append(ids, replyID(burst[len(burst)-1].ID))
}

// putBack has a burst worked on again, after what was done to it meanwhile.
func (s *Session) putBack(burst []chat.Inbound) {
	ids := named(burst)
	s.mu.Lock()
	defer s.mu.Unlock()
	var first, later []chat.Inbound
	for _, in := range s.lane {
		if in.Change != "" && slices.Contains(ids, in.Target) {
			first = append(first, in)
		} else {
			later = append(later, in)
		}
	}
	s.lane = slices.Concat(first, burst, later)
}

// edited reports whether an edit of target waits.
func (s *Session) edited(targets ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.lane, func(in chat.Inbound) bool { return in.Change == chat.Edited && slices.Contains(targets, in.Target) })
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
// the tools that it used before; "" = of none. No comma: a header with one is of a shared room.
func acted(used []string) string {
	if len(used) == 0 {
		return ""
	}
	return "You answered this before and used " + strings.Join(used, "; ") + ". What that did stands: see whether it still fits and mend it if not."
}

// reword gives a message that is in the history the words of the edit e. The old ones
// leave the prompts, and what search and memory have of them.
func (s *Session) reword(ctx context.Context, e chat.Inbound, note string) error {
	was, known, err := s.cfg.History.Find(ctx, s.talk, e.Target)
	if err != nil || !known || was.Role != llm.User || history.TakenBack(was) {
		return err
	}
	if e.Text = withVoice(was.Text, e.Text); emptied(e, was) {
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
	for _, t := range turnsOf(s.talk, []history.Message{m}) {
		if t.Seq <= s.kept {
			return s.cfg.Memory.Hear(ctx, t)
		}
	}
	return nil
}

// shared reports whether others read the room when m was written.
func shared(m history.Message) bool { return m.Label.Readers.Person() == "" }

// handleChange deals with what was done to something said before. Whatever goes wrong,
// the person hears of it where the answer would stand.
func (s *Session) handleChange(work context.Context, in chat.Inbound) {
	log := s.log.With("change", in.Change, "event", in.ID, "message", in.Target, "sender", in.Sender)
	s.asking = chat.Inbound{}
	s.insist(work, log, func() error {
		turn, err := s.attempt(work, log, in.Sender, true, []string{in.Target}, func(turn context.Context) error { return s.change(turn, in) })
		switch {
		case err == nil || work.Err() != nil || store.Passing(err):
			return err
		case disturbed(turn), withdrawn(turn, err):
			return nil // what came over it is next
		case s.asking.ID == "":
			log.Error("a change was not followed", "err", err)
			return nil
		case context.Cause(turn) == agent.ErrStopped: //nolint:errorlint // our own value
			log.Info("stopped by a person")
			return s.sayStopped(work, s.asking)
		}
		ref := reference()
		log.Error("message not answered anew", "err", err, "reference", ref)
		return s.notice(work, s.asking, s.calm(work, err, ref))
	})
	if in.Change != chat.Approved { // that did not come from the transport
		s.insist(work, log, func() error { return s.cfg.Transport.Ack(work, in.ID) })
	}
	s.background.Handled(1, s.cfg.Now())
	if work.Err() != nil {
		log.Info("interrupted by the end of the program; it will be taken up again at the next start")
	}
}

// change follows one change.
func (s *Session) change(ctx context.Context, in chat.Inbound) (err error) {
	switch in.Change {
	case chat.Edited, chat.TakenBack:
		if err := s.approvals.Void(ctx, s.room, in.Target); err != nil {
			return err
		}
		if in.Change == chat.TakenBack {
			if err := s.approvals.Redact(ctx, s.room, in.Target); err != nil {
				return err
			}
		}
	case chat.Voted:
		if in.Private, err = s.private(ctx, in.Sender); err != nil {
			return err
		}
		return s.vote(ctx, in)
	case chat.Approved:
		return s.goOn(ctx, approval.CodeOf(in.Target))
	}
	if err := s.separateNow(ctx); err != nil {
		return err
	}
	switch in.Change {
	case chat.Edited:
		return s.amend(ctx, in)
	case chat.TakenBack:
		return s.unsay(ctx, in)
	case chat.AskAgain:
		return s.askAgain(ctx, in)
	}
	return nil
}

// amend follows an edit of a message that nothing is done for at the moment.
func (s *Session) amend(ctx context.Context, in chat.Inbound) error {
	if s.edited(in.Target) { // again: that one counts
		return nil
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	was, known, err := s.cfg.History.Find(ctx, s.talk, in.Target)
	if err != nil {
		return err
	}
	if !known {
		return s.amendUnheard(ctx, in)
	}
	if was.Role != llm.User || history.TakenBack(was) {
		return nil
	}
	if in.Text = withVoice(was.Text, in.Text); emptied(in, was) {
		return nil
	}
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return err
	}
	g := groupOf(past, in.Target)
	if !g.end { // only the newest answer is given anew
		return s.reword(ctx, in, "")
	}
	if command.Is(in.Text) {
		return s.becomesCommand(ctx, in)
	}
	if was.Text == in.Text && g.answer >= 0 && !history.TakenBack(past[g.answer]) { // done before an interruption
		return s.say(ctx, s.asker(in, past, g, past[g.answer].EventID), past[g.answer].Text)
	}
	return s.regenerate(ctx, in, past, g)
}

// amendUnheard follows the edit of a message that is not in the history: a command as
// a rule. It is taken as if it had come like this, as long as it is young.
func (s *Session) amendUnheard(ctx context.Context, in chat.Inbound) error {
	gone, err := s.cfg.Transport.Cancelled(ctx, in.Target)
	if err != nil || gone || s.cfg.Now().Sub(in.At) > Young || in.Text == "" {
		return err
	}
	// What was remembered by the words before, as with !remember.
	if err := s.cfg.Memory.Reword(ctx, memory.Access{Actor: "edit", All: true}, in.Target, in.Text); err != nil {
		return err
	}
	return s.asIfNew(ctx, in)
}

// asIfNew works on the message that in edits as if it had come with the new words.
func (s *Session) asIfNew(ctx context.Context, in chat.Inbound) error {
	in.ID, in.Change, in.Target = in.Target, "", ""
	s.asking = in
	return s.dispatch(ctx, []chat.Inbound{in})
}

// becomesCommand runs a message as a command that was none before. It is part of the
// conversation no more, and neither is an answer to it alone.
func (s *Session) becomesCommand(ctx context.Context, in chat.Inbound) error {
	if err := s.forgetAnswer(ctx, replyID(in.Target)); err != nil {
		return err
	}
	if err := s.reword(ctx, in, ""); err != nil {
		return err
	}
	if err := s.cfg.History.Drop(ctx, in.Target, replyID(in.Target)); err != nil {
		return err
	}
	return s.asIfNew(ctx, in)
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
func (s *Session) asker(in chat.Inbound, past []history.Message, g group, reply string) chat.Inbound {
	m := past[g.last]
	return chat.Inbound{ID: strings.TrimPrefix(reply, replyID("")), Room: s.room, Thread: s.thread, Branch: s.thread, Sender: m.Sender, SenderName: in.SenderName,
		Text: m.Text, Private: in.Private && !shared(m), Unproven: in.Unproven, At: m.At}
}

// regenerate answers the last group of a history anew, under the id of the answer that there
// is or was. in is the change that asks for it.
func (s *Session) regenerate(ctx context.Context, in chat.Inbound, past []history.Message, g group) error {
	replies, err := s.repliesTo(ctx, past[g.last].EventID)
	if err != nil {
		return err
	}
	reply := replies[len(replies)-1]
	if g.answer >= 0 {
		reply = past[g.answer].EventID
	}
	s.asking = s.asker(in, past, g, reply)
	if in.Change == chat.Edited && in.Target == past[g.last].EventID {
		s.asking.Text = in.Text
	}
	used, err := s.cfg.History.Reopen(ctx, s.talk, past[g.last].EventID, reply)
	if err != nil {
		return err
	}
	change := in
	if in.Change != chat.Edited { // the words stay
		change.Target, change.Text = past[g.last].EventID, past[g.last].Text
		quotes, err := s.cfg.Memory.Unsay(ctx, reply) // so that another can be heard in its place
		if err == nil {
			err = s.cfg.History.Unquote(ctx, quotes)
		}
		if err != nil {
			return err
		}
	}
	if err := s.reword(ctx, change, acted(used)); err != nil {
		return err
	}
	s.newest = s.asking
	return s.respond(ctx, s.asking)
}

// askAgain answers once more what somebody wants answered once more, in its place.
func (s *Session) askAgain(ctx context.Context, in chat.Inbound) error {
	if in.Target == "" {
		return nil
	}
	question := in.Target
	if strings.HasPrefix(in.Target, replyID("")) {
		questions, err := s.questionsOf(ctx, in.Target)
		if err != nil {
			return err
		}
		question = questions[len(questions)-1]
	}
	m, known, err := s.cfg.History.Find(ctx, s.talk, question)
	if err != nil || !known || m.Role != llm.User || m.Sender == "" || history.TakenBack(m) {
		return err // a command, or what nobody asked for
	}
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return err
	}
	g := groupOf(past, question)
	if !g.end {
		return s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{
			ID: replyID(in.ID), Text: s.text(ctx, "edit.too_far"), Notice: true, ReplyTo: question,
		})
	}
	return s.regenerate(ctx, in, past, g)
}

// takeUp notes which messages the answer that is begun is about to answer: what people do
// to one of them concerns it from now on. It is stored when the model is asked.
func (s *Session) takeUp(past []history.Message) {
	i := len(past) - 1
	for i >= 0 && past[i].Role != llm.User {
		i--
	}
	if i < 0 || s.answering == "" {
		return
	}
	g := groupOf(past, past[i].EventID)
	s.takeInHand(true, replyID(s.answering))
	s.questions = nil
	if !g.known {
		return
	}
	for _, m := range past[g.first : g.last+1] {
		s.takeInHand(true, m.EventID)
		if !history.TakenBack(m) {
			s.questions = append(s.questions, m.EventID)
		}
	}
	if s.edited(s.questions...) { // it came before
		s.stop(errChanged)
	}
}

// noting stores what takeUp noted.
func (s *Session) noting() []func(context.Context, *sql.Tx) error {
	if len(s.questions) == 0 {
		return nil
	}
	return []func(context.Context, *sql.Tx) error{func(ctx context.Context, tx *sql.Tx) error {
		for _, question := range s.questions {
			if err := delivery.NoteAnswered(ctx, tx, question, replyID(s.answering)); err != nil {
				return err
			}
		}
		return nil
	}}
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
