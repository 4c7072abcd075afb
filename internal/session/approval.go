package session

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"reverie/internal/agent"
	"reverie/internal/approval"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/store"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// untrustedInput describes the untrusted text in the last request: its sources, and a fingerprint that
// changes when more of it arrives. granted are the acts that the sender was allowed to repeat in this
// conversation, until more of it arrives. Acts that failed or did not run are not included.
func (t *turn) untrustedInput(ctx context.Context, past []history.Message) (in approval.Approval, granted map[string]bool, err error) {
	if t.label.Integrity >= trust.User || len(past) == 0 {
		return in, nil, nil
	}
	c, err := t.cfg.History.LatestCompaction(ctx, t.talk)
	if err != nil {
		return in, nil, err
	}
	in.Sources, in.Fingerprint = approval.ListUntrusted(t.cfg.Messages.For(ctx, t.room), past, c, t.sections)
	all, err := t.approvals.ListGranted(ctx, t.talk, past[len(past)-1].Conversation, t.in.Sender, in.Fingerprint)
	granted = map[string]bool{}
	for _, a := range all {
		for _, act := range a.Acts {
			if act.Done && !act.Failed && t.senderIntegrity(a.Answer) >= trust.User {
				granted[act.Covers] = true
			}
		}
	}
	return in, granted, err
}

// storeCalls stores the model's calls. Calls that need approval get a placeholder result and join the
// question a, all in one transaction. It returns the IDs of these calls.
func (t *turn) storeCalls(ctx context.Context, scope tool.Scope, reply llm.Reply, a approval.Approval) (asked map[string]bool, err error) {
	calls := history.Message{Room: t.talk, Role: llm.Assistant, Text: reply.Text, Calls: reply.ToolCalls, At: t.cfg.Now(), Label: t.label}
	var acts []approval.Act
	if t.in.ID != "" && t.in.Sender != "" {
		for _, c := range reply.ToolCalls {
			if act, ask := t.cfg.Tools.NeedsApproval(scope, c); ask {
				acts = append(acts, approval.Act{Act: act})
			}
		}
	}
	if len(acts) == 0 {
		return nil, t.cfg.History.Append(ctx, &calls)
	}
	asked = map[string]bool{}
	err = store.InTx(ctx, t.cfg.DB, func(tx *sql.Tx) error {
		if err := t.cfg.History.AppendIn(ctx, tx, &calls); err != nil {
			return err
		}
		a.Room, a.Talk, a.Conversation, a.Event, a.Asker = t.room, t.talk, calls.Conversation, t.in.ID, t.in.Sender
		a.Readers, a.Quote = scope.Place().Readers(), t.in.Text
		results, err := t.approvals.AddActs(ctx, tx, a, acts)
		if err != nil {
			return err
		}
		for i, act := range acts {
			row := history.Message{Room: t.talk, Role: llm.Tool, CallID: act.Call.ID, Text: results[i], Failed: true, At: t.cfg.Now(),
				Label: programLabel(t.label.Readers)}
			if err := t.cfg.History.AppendIn(ctx, tx, &row); err != nil {
				return err
			}
			asked[act.Call.ID] = true
		}
		return nil
	})
	return asked, err
}

// askApprovals sends the open questions about event. Sending one twice shows it once.
func (s *Session) askApprovals(ctx context.Context, event string) error {
	all, err := s.approvals.ListOpenOf(ctx, s.talk, event)
	if err != nil {
		return err
	}
	for _, a := range all {
		same, err := s.sameReaders(ctx, a)
		switch {
		case err != nil:
			return err
		case same:
			for _, m := range a.Question(s.cfg.Messages.For(ctx, s.room)) {
				err = errors.Join(err, s.cfg.Transport.Send(ctx, s.room, m))
			}
		default: // new readers must not see the earlier text in the question
			err = s.approvals.End(ctx, a, approval.Void, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameReaders reports whether the room has the same readers as when a was created.
func (s *Session) sameReaders(ctx context.Context, a approval.Approval) (bool, error) {
	private, err := s.Private(ctx, s.room, a.Asker)
	return s.place(chat.Head{Sender: a.Asker, Private: private}).Readers() == a.Readers, err
}

// answerApproval records an answer to the question code and returns the text for the person.
func (s *Session) answerApproval(ctx context.Context, in chat.Head, code, option string) (string, error) {
	a, said, err := s.approvals.Answer(ctx, in, s.senderIntegrity(in), code, option)
	text := ""
	if said != "" {
		text = said.In(s.cfg.Messages.For(ctx, s.room))
	}
	switch {
	case err != nil || a == nil:
		return text, err
	case a.State == approval.Expired:
		return text, s.approvals.ClosePoll(ctx, *a)
	}
	return text, s.notifyAnswered(ctx, *a)
}

// approvalAnswered tells a conversation that the question Target was answered. No transport sends it.
type approvalAnswered struct{ chat.Change }

// notifyAnswered tells the conversation of the question a that it was answered.
func (m *Manager) notifyAnswered(ctx context.Context, a approval.Approval) error {
	head := chat.Head{ID: approval.OutcomePrefix + a.Code, Room: a.Room, Branch: a.Talk.Thread(), Sender: a.Asker, At: m.cfg.Now()}
	err := m.Deliver(ctx, approvalAnswered{chat.Change{Head: head, Target: a.QuestionID()}})
	if errors.Is(err, chat.ErrStopping) { // the next start finds it
		return nil
	}
	return err
}

// resumeApprovals ends questions that have expired. At the start it also continues approvals that an
// interruption left: it sends open questions again and runs approved acts.
func (m *Manager) resumeApprovals(ctx context.Context, start bool) error {
	left, failed := m.approvals.PruneAndListPending(ctx)
	for _, a := range left {
		var err error
		switch {
		case a.State == approval.Open && !m.cfg.Now().Before(a.Expires):
			err = m.approvals.End(ctx, a, approval.Expired, true)
		case !start:
		case a.State == approval.Approved:
			err = m.notifyAnswered(ctx, a)
		default:
			err = newSession(m, a.Talk).askApprovals(ctx, a.Event)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// resumeApproval runs the acts approved under code, or tells the model that they were denied.
func (s *change) resumeApproval(ctx context.Context, code string) error {
	a, err := s.approvals.Find(ctx, s.cfg.DB, code)
	if err != nil || a.Talk != s.talk || a.State != approval.Approved && a.State != approval.Denied {
		return err
	}
	if err := s.approvals.ClosePoll(ctx, a); err != nil {
		return err
	}
	if a.State == approval.Denied {
		return s.appendOnce(ctx, s.ownMessage(approval.OutcomePrefix+a.Code, s.text(ctx, "approve.denied"), programLabel(a.Readers)))
	}
	return s.runApproved(ctx, a)
}

// interruptedAct is the result of a step during which the program was killed.
const interruptedAct = "Interrupted: the program was ended while this ran. Part of it may be done; look before you do it again."

// runApproved runs the acts of a that have not run yet.
func (s *change) runApproved(ctx context.Context, a approval.Approval) error {
	in := item{Message: chat.Message{Text: a.Quote,
		Head: chat.Head{ID: a.Event, Room: s.room, Branch: s.thread, Sender: a.Asker, At: a.Created}}}
	switch same, err := s.sameReaders(ctx, a); {
	case err != nil:
		return err
	case !same:
		a.State = approval.Void
		return s.concludeApproval(ctx, a, s.text(ctx, "approve.moved"))
	}
	in.Private = a.Readers.Person() != ""
	scope, _, err := s.callScope(ctx, in)
	if err != nil {
		return err
	}
	scope.Label = trust.Label{Integrity: s.senderIntegrity(a.Answer), Readers: a.Readers} // of the person who allowed it
	uncancelled, say := context.WithoutCancel(ctx), s.cfg.Messages.For(ctx, s.room)       // a running act is not interrupted
	for i := range a.Acts {
		act := &a.Acts[i]
		if act.Done {
			continue
		}
		now, err := s.approvals.Find(uncancelled, s.cfg.DB, a.Code)
		switch {
		case err != nil:
			return err
		case context.Cause(ctx) == agent.ErrStopped, //nolint:errorlint // our own value
			interruptedByChange(ctx), now.State != approval.Approved:
			a.State = approval.Void
			return s.concludeApproval(uncancelled, a, a.Outcome(say, "stop.ended"))
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if tool.IsStep(act.Call.Name) && !act.Begun { // unlike the others, it has no key against running twice
			act.Begun = true
			if err := s.approvals.Put(uncancelled, s.cfg.DB, a); err != nil {
				return err
			}
		} else if act.Begun {
			act.Done, act.Failed, act.Result, act.ReadIntegrity = true, true, interruptedAct, trust.Owner
			continue
		}
		scope.Key = fmt.Sprintf("%sa%c", a.Code, 'a'+i) // eight characters, as in the ids of tasks
		scope.Send, scope.Set = s.fileSender(in, act.Call.ID), s.setter(in)
		var later []*tool.Act
		for j := range a.Acts[i+1:] {
			later = append(later, &a.Acts[i+1+j].Act)
		}
		result := tool.RunApproved(uncancelled, s.cfg.Tools, scope, act.Act, later)
		act.Done, act.Result, act.Failed, act.ReadIntegrity = true, result.Content, result.Failed, result.Integrity
		s.log.Info("approved tool", "approval", a.Code, "tool", act.Call.Name, "failed", result.Failed, "by", a.Answer.Sender)
		if err := s.approvals.Put(uncancelled, s.cfg.DB, a); err != nil {
			return err
		}
	}
	a.State = approval.Done
	return s.concludeApproval(ctx, a, a.Outcome(say, "approve.done"))
}

// concludeApproval sends the outcome of an approval and stores it for the model. If the acts are steps of
// work, the model goes on with the request.
func (s *change) concludeApproval(ctx context.Context, a approval.Approval, text string) error {
	least, step := min(trust.User, s.senderIntegrity(a.Answer)), false
	for _, act := range a.Acts {
		if act.Done {
			least, step = min(least, act.ReadIntegrity), step || tool.IsStep(act.Call.Name)
		}
	}
	out := chat.Outgoing{ID: approval.OutcomePrefix + a.Code, Thread: s.thread, Text: text, Notice: true}
	err := s.cfg.Transport.Send(context.WithoutCancel(ctx), s.room, out)
	if err == nil {
		err = s.appendOnce(context.WithoutCancel(ctx), s.ownMessage(out.ID, text, trust.Label{Integrity: least, Readers: a.Readers}))
	}
	if err == nil && step && a.State == approval.Done {
		err = s.goOn(ctx, a)
	}
	if ctx.Err() == nil || a.State == approval.Void { // else the next start concludes it again, which repeats nothing
		err = errors.Join(err, s.approvals.Put(context.WithoutCancel(ctx), s.cfg.DB, a))
	}
	return err
}

// goOn answers the approval as a message of the person who asked.
func (s *change) goOn(ctx context.Context, a approval.Approval) error {
	s.question = chat.Head{ID: approval.OutcomePrefix + a.Code + ":next", Room: s.room, Branch: s.thread, Sender: a.Asker,
		Private: a.Readers.Person() != "", Unproven: a.Answer.Unproven, At: s.cfg.Now()}
	s.lastHandled = s.question
	return s.dispatch(ctx, []chat.Message{{Head: s.question, Text: s.text(ctx, "approve.next")}})
}

// Approve is the command !approve: CODE, or CODE conversation.
func (s *Session) Approve(ctx context.Context, in chat.Message, args string) (string, error) {
	code, option, _ := strings.Cut(args, " ")
	option = cmp.Or(strings.ToLower(strings.TrimSpace(option)), approval.Once)
	if code == "" || option != approval.Once && option != approval.Wide {
		return s.text(ctx, "approve.usage"), nil
	}
	text, err := s.answerApproval(ctx, in.Head, code, option)
	if text == "" {
		text = s.text(ctx, "approve.thanks")
	}
	return text, err
}

// Deny is the command !deny.
func (s *Session) Deny(ctx context.Context, in chat.Message, args string) (string, error) {
	if args == "" {
		return s.text(ctx, "approve.usage"), nil
	}
	return s.answerApproval(ctx, in.Head, args, approval.No)
}
