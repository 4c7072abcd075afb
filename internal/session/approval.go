package session

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
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

// donePrefix begins the Outgoing.ID that says what came of a question.
const donePrefix = "asked:"

// reading describes what the last request held that is not trusted enough: where it comes from,
// and a mark that changes with it.
func (t *turn) reading(ctx context.Context, past []history.Message) (seen []string, mark string, err error) {
	if t.label.Integrity >= trust.User {
		return nil, "", nil
	}
	c, err := t.cfg.History.Compacted(ctx, t.talk)
	if err != nil {
		return nil, "", err
	}
	seen, mark = t.untrusted(ctx, past, c)
	return seen, mark, nil
}

// granted are the acts that asker was allowed for this conversation, as long as no more text
// below the line has come in. An act that was not done is not among them.
func (t *turn) granted(ctx context.Context, asker string, past []history.Message, mark string) (map[string]bool, error) {
	if t.label.Integrity >= trust.User || len(past) == 0 {
		return nil, nil
	}
	all, err := t.approvals.Granted(ctx, t.talk, past[len(past)-1].Conversation, asker, mark)
	if err != nil {
		return nil, err
	}
	covered := map[string]bool{}
	for _, a := range all {
		for _, act := range a.Acts {
			if act.Done && !act.Failed && t.level(a.Answer) >= trust.User {
				covered[act.Covers] = true
			}
		}
	}
	return covered, nil
}

// storeCalls stores the model's calls. Those that a person must allow first get a result that
// says so, and are kept for the question, all in one transaction. It returns the ids of these.
func (t *turn) storeCalls(
	ctx context.Context, scope tool.Scope, reply llm.Reply, seen []string, mark string,
) (asked map[string]bool, err error) {
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
		told, err := t.approvals.Gather(ctx, tx, approval.Approval{Room: t.room, Talk: t.talk, Conversation: calls.Conversation,
			Event: t.in.ID, Asker: t.in.Sender, Readers: scope.Place().Readers(), Quote: t.in.Text, Seen: seen, Mark: mark}, acts)
		if err != nil {
			return err
		}
		for i, act := range acts {
			row := history.Message{Room: t.talk, Role: llm.Tool, CallID: act.Call.ID, Text: told[i], Failed: true, At: t.cfg.Now(),
				Label: programs(t.label.Readers)}
			if err := t.cfg.History.AppendIn(ctx, tx, &row); err != nil {
				return err
			}
			asked[act.Call.ID] = true
		}
		return nil
	})
	return asked, err
}

// askApprovals puts the open questions about event to the person. Saying one again changes nothing.
func (s *Session) askApprovals(ctx context.Context, event string) error {
	all, err := s.approvals.Asked(ctx, s.talk, event)
	if err != nil {
		return err
	}
	for _, a := range all {
		same, err := s.sameReaders(ctx, a)
		switch {
		case err != nil:
			return err
		case same:
			err = s.cfg.Transport.Send(ctx, s.room, a.Ask(s.cfg.Messages.For(ctx, s.room)))
		default: // others read the room since, and the question shows what was said before
			err = s.approvals.End(ctx, a, approval.Void, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameReaders reports whether those read the room now who read it when a was asked for.
func (s *Session) sameReaders(ctx context.Context, a approval.Approval) (bool, error) {
	private, err := s.private(ctx, a.Asker)
	return s.place(chat.Head{Sender: a.Asker, Private: private}).Readers() == a.Readers, err
}

// answerApproval takes an answer to the question code, and says what became of it.
func (s *Session) answerApproval(ctx context.Context, in chat.Head, code, option string) (string, error) {
	a, said, err := s.approvals.Answer(ctx, in, s.level(in), code, option)
	text := ""
	if said != "" {
		text = said.In(s.cfg.Messages.For(ctx, s.room))
	}
	switch {
	case err != nil || a == nil:
		return text, err
	case a.State == approval.Expired:
		return text, s.approvals.Close(ctx, *a)
	}
	return text, s.wakeApproval(ctx, *a)
}

// approved tells a conversation that the question Target was answered. No transport brings it.
type approved struct{ chat.Change }

// wakeApproval has the conversation of an answered question go on with it.
func (m *Manager) wakeApproval(ctx context.Context, a approval.Approval) error {
	head := chat.Head{ID: donePrefix + a.Code, Room: a.Room, Branch: a.Talk.Thread(), Sender: a.Asker, At: m.cfg.Now()}
	err := m.Deliver(ctx, approved{chat.Change{Head: head, Target: a.Question()}})
	if errors.Is(err, chat.ErrStopping) { // the next start finds it
		return nil
	}
	return err
}

// resumeApprovals goes on with what an interruption left: questions that may not have been
// asked yet, and acts that were approved.
func (m *Manager) resumeApprovals(ctx context.Context) error {
	left, failed := m.approvals.Left(ctx)
	for _, a := range left {
		var err error
		switch {
		case a.State == approval.Approved:
			err = m.wakeApproval(ctx, a)
		case m.cfg.Now().Before(a.Expires):
			err = newSession(m, a.Talk).askApprovals(ctx, a.Event)
		default:
			err = m.approvals.End(ctx, a, approval.Expired, true)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// goOn runs what was approved under code, or tells the model that it was denied.
func (s *Session) goOn(ctx context.Context, code string) error {
	a, err := s.approvals.One(ctx, s.cfg.DB, code)
	if err != nil || a.Talk != s.talk || a.State != approval.Approved && a.State != approval.Denied {
		return err
	}
	if err := s.approvals.Close(ctx, a); err != nil {
		return err
	}
	if a.State == approval.Denied {
		return s.note(ctx, s.ours(donePrefix+a.Code, s.text(ctx, "approve.denied"), programs(a.Readers)))
	}
	return s.runApproved(ctx, a)
}

// runApproved runs the acts of a, those that have not run yet.
func (s *Session) runApproved(ctx context.Context, a approval.Approval) error {
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
	scope.Label = trust.Label{Integrity: s.level(a.Answer), Readers: a.Readers} // of the person who allowed it
	kept, say := context.WithoutCancel(ctx), s.cfg.Messages.For(ctx, s.room)    // an act that has begun ends
	for i := range a.Acts {
		act := &a.Acts[i]
		if act.Done {
			continue
		}
		now, err := s.approvals.One(kept, s.cfg.DB, a.Code)
		switch {
		case err != nil:
			return err
		case context.Cause(ctx) == agent.ErrStopped, disturbed(ctx), now.State != approval.Approved: //nolint:errorlint // our own value
			a.State = approval.Void
			return s.concludeApproval(kept, a, a.Outcome(say, "stop.ended"))
		case ctx.Err() != nil:
			return ctx.Err()
		}
		scope.Key = fmt.Sprintf("%sa%c", a.Code, 'a'+i) // eight characters, as in the ids of tasks
		scope.Send, scope.SetMode = s.sending(in, act.Call.ID), s.setsMode(in)
		result := s.cfg.Tools.Run(kept, scope, act.Call)
		act.Done, act.Result, act.Failed, act.Read = true, result.Content, result.Failed, result.Integrity
		s.log.Info("approved tool", "approval", a.Code, "tool", act.Call.Name, "failed", result.Failed, "by", a.Answer.Sender)
		if err := s.approvals.Put(kept, s.cfg.DB, a); err != nil {
			return err
		}
	}
	a.State = approval.Done
	return s.concludeApproval(kept, a, a.Outcome(say, "approve.done"))
}

// concludeApproval stores how an approval ended, for the model too, and says it.
func (s *Session) concludeApproval(ctx context.Context, a approval.Approval, text string) error {
	least := min(trust.User, s.level(a.Answer))
	for _, act := range a.Acts {
		if act.Done {
			least = min(least, act.Read)
		}
	}
	said := s.ours(donePrefix+a.Code, text, trust.Label{Integrity: least, Readers: a.Readers})
	out := chat.Outgoing{ID: donePrefix + a.Code, Thread: s.thread, Text: text, Notice: true}
	if err := s.cfg.Transport.Send(ctx, s.room, out); err != nil { // first: saying it again is saying it once
		return err
	}
	return store.InTx(ctx, s.cfg.DB, func(tx *sql.Tx) error {
		if err := s.approvals.Put(ctx, tx, a); err != nil {
			return err
		}
		if err := s.cfg.History.AppendIn(ctx, tx, said); !errors.Is(err, history.ErrKnown) {
			return err
		}
		return nil
	})
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

// vote takes an answer in a poll.
func (s *Session) vote(ctx context.Context, in chat.Vote) error {
	code := approval.CodeOf(in.Target)
	if code == "" || !slices.Contains([]string{approval.Once, approval.Wide, approval.No}, in.Option) {
		return nil
	}
	text, err := s.answerApproval(ctx, in.Head, code, in.Option)
	if err != nil || text == "" {
		return err
	}
	a, err := s.approvals.One(ctx, s.cfg.DB, code)
	if err != nil {
		return err
	}
	thread := a.Talk.Thread() // a vote does not say in which thread its poll stands
	return s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{ID: "vote:" + in.ID, Thread: thread, Text: text, Notice: true})
}
