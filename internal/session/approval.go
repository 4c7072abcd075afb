package session

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/store"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// An approval is a person's leave for acts that text below the line may have asked for. Its
// states:
//
//	gathering ── the answer is said ──► open ──► approved ──► done
//	    │                                ├──► denied  │
//	    │                                ├──► expired │
//	    └──► void ◄──────────────────────┴────────────┘
//	         the message or the question was edited or redacted, or the work stopped
//
// A state that no arrow leaves is final: nothing is stored over it.
// The acts are rows together with the model's calls. They run once, after a vote in the poll or
// !approve, and also after a restart: what they make is named after the approval.
type approval struct {
	code         string
	room         string
	talk         history.Talk
	conversation int64
	event        string // the message or system event that was worked on
	asker        string
	readers      trust.Readers
	quote        string
	acts         []askedAct
	seen         []string
	mark         string
	state        approvalState
	wide         bool
	answeredBy   string
	unproven     bool // see Inbound, of the answer
	created      time.Time
	expires      time.Time
}

type approvalState string

const (
	gathering approvalState = "gathering" // the turn goes on
	open      approvalState = "open"      // the person is asked
	approved  approvalState = "approved"  // the acts run
	ended     approvalState = "done"
	denied    approvalState = "denied"
	expired   approvalState = "expired"
	void      approvalState = "void"
)

// askedAct is one act, and what came of it.
type askedAct struct {
	tool.Act
	Done   bool            `json:"done,omitempty"`
	Result string          `json:"result,omitempty"`
	Failed bool            `json:"failed,omitempty"`
	Read   trust.Integrity `json:"read,omitempty"` // of what the result holds besides the words of the act
}

const (
	approvalTime = 10 * time.Minute // an open question may be answered for so long
	approvalKept = 30 * 24 * time.Hour
	mostActs     = 20       // of one question
	mostAsked    = 6_000    // characters of all arguments of one question
	askPrefix    = "ask:"   // of the Outgoing.ID of a question
	donePrefix   = "asked:" // of the Outgoing.ID that says what came of it
)

// The options of a question.
const (
	optionOnce = "once"
	optionWide = "conversation"
	optionNo   = "no"
)

// reading describes what the last request held that is not trusted enough: where it comes from,
// and a mark that changes with it.
func (s *Session) reading(ctx context.Context, past []history.Message) (seen []string, mark string, err error) {
	if s.label.Integrity >= trust.User {
		return nil, "", nil
	}
	c, err := s.cfg.History.Compacted(ctx, s.talk)
	if err != nil {
		return nil, "", err
	}
	seen, mark = s.untrusted(ctx, past, c, s.told)
	return seen, mark, nil
}

// granted are the acts that asker was allowed for this conversation, as long as no more text
// below the line has come in. An act that was not done is not among them.
func (s *Session) granted(ctx context.Context, asker string, past []history.Message, mark string) (map[string]bool, error) {
	if s.label.Integrity >= trust.User || len(past) == 0 {
		return nil, nil
	}
	all, err := s.approvals(ctx, s.cfg.DB, `WHERE talk = ? AND conversation = ? AND asker = ? AND wide = 1 AND mark = ?
		AND state IN ('approved', 'done')`,
		s.talk, past[len(past)-1].Conversation, asker, mark)
	if err != nil {
		return nil, err
	}
	covered := map[string]bool{}
	for _, a := range all {
		for _, act := range a.acts {
			if act.Done && !act.Failed && s.level(a.answer()) >= trust.User {
				covered[act.Covers] = true
			}
		}
	}
	return covered, nil
}

// storeCalls stores the model's calls. Those that a person must allow first get a result that
// says so, and are kept for the question, all in one transaction. It returns the ids of these.
func (s *Session) storeCalls(
	ctx context.Context, in chat.Inbound, scope tool.Scope, reply llm.Reply, seen []string, mark string,
) (asked map[string]bool, err error) {
	calls := history.Message{Room: s.talk, Role: llm.Assistant, Text: reply.Text, Calls: reply.ToolCalls, At: s.cfg.Now(), Label: s.label}
	var acts []askedAct
	if in.ID != "" && in.Sender != "" {
		for _, c := range reply.ToolCalls {
			if act, ask := s.cfg.Tools.Asks(scope, c); ask {
				acts = append(acts, askedAct{Act: act})
			}
		}
	}
	if len(acts) == 0 {
		return nil, s.cfg.History.Append(ctx, &calls)
	}
	asked = map[string]bool{}
	err = store.InTx(ctx, s.cfg.DB, func(tx *sql.Tx) error {
		if err := s.cfg.History.AppendIn(ctx, tx, &calls); err != nil {
			return err
		}
		told, err := s.gather(ctx, tx, in, scope, calls.Conversation, acts, seen, mark)
		if err != nil {
			return err
		}
		for i, act := range acts {
			row := history.Message{Room: s.talk, Role: llm.Tool, CallID: act.Call.ID, Text: told[i], Failed: true, At: s.cfg.Now(),
				Label: programs(s.label.Readers)}
			if err := s.cfg.History.AppendIn(ctx, tx, &row); err != nil {
				return err
			}
			asked[act.Call.ID] = true
		}
		return nil
	})
	return asked, err
}

// What the model is told of a call that a person must allow first.
const (
	toldAsked = "Not done yet: text was read here that did not come from the person, so they are asked first. Do not call this again. " +
		"Say in a sentence what you would do; when they agree, it is done without you."
	toldKnown = "The person is asked about this very act already. Do not call it again; end with your answer."
	toldMany  = "Not done, and the person is not asked: this is too long to be shown to them, or there are too many acts at once. " +
		"Do less at a time, in fewer words."
)

// gather adds acts to the approval of the turn, and returns what the model is told of each.
func (s *Session) gather(
	ctx context.Context, tx *sql.Tx, in chat.Inbound, scope tool.Scope, conversation int64, acts []askedAct, seen []string, mark string,
) ([]string, error) {
	found, err := s.approvals(ctx, tx, `WHERE room = ? AND talk = ? AND event = ? AND state = 'gathering'`, s.room, s.talk, in.ID)
	if err != nil {
		return nil, err
	}
	a := approval{code: strings.ToLower(rand.Text()[:6]), room: s.room, talk: s.talk, conversation: conversation,
		event: in.ID, asker: in.Sender,
		readers: scope.Place().Readers(), quote: in.Text, state: gathering, created: s.cfg.Now()}
	if len(found) > 0 {
		a = found[0]
	}
	open, err := s.approvals(ctx, tx, `WHERE talk = ? AND conversation = ? AND state = 'open' AND expires > ?`,
		s.talk, conversation, s.cfg.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	told := make([]string, len(acts))
	for i, act := range acts {
		same := func(o askedAct) bool { return o.Call.Name == act.Call.Name && o.Call.Arguments == act.Call.Arguments }
		switch {
		case slices.ContainsFunc(a.acts, same) || slices.ContainsFunc(open, func(o approval) bool { return slices.ContainsFunc(o.acts, same) }):
			told[i] = toldKnown
		case len(a.acts) >= mostActs || a.size()+len([]rune(act.Call.Arguments)) > mostAsked:
			told[i] = toldMany
		default:
			a.acts = append(a.acts, act)
			told[i] = toldAsked
		}
	}
	a.seen = append(a.seen, slices.DeleteFunc(seen, func(text string) bool { return slices.Contains(a.seen, text) })...)
	a.mark = mark
	if len(a.acts) == 0 {
		return told, nil
	}
	return told, storeApproval(ctx, tx, a)
}

func (a *approval) size() (n int) {
	for _, act := range a.acts {
		n += len([]rune(act.Call.Arguments))
	}
	return n
}

// openApproval lets what was gathered for in be asked, from now on for ten minutes.
func (s *Session) openApproval(ctx context.Context, in store.DBTX, event string) error {
	now := s.cfg.Now()
	_, err := in.ExecContext(ctx, `UPDATE approval SET state = 'open', created = ?, expires = ?
		WHERE room = ? AND talk = ? AND event = ? AND state = 'gathering'`,
		now.UnixMilli(), now.Add(approvalTime).UnixMilli(), s.room, s.talk, event)
	if err != nil {
		return fmt.Errorf("session: open an approval: %w", err)
	}
	return nil
}

// askApprovals puts the open questions about event to the person. Saying one again changes nothing.
func (s *Session) askApprovals(ctx context.Context, event string) error {
	all, err := s.approvals(ctx, s.cfg.DB, `WHERE room = ? AND talk = ? AND event = ? AND state = 'open'`, s.room, s.talk, event)
	if err != nil {
		return err
	}
	for _, a := range all {
		same, err := s.sameReaders(ctx, a)
		if err != nil {
			return err
		}
		if !same { // others read the room since, and the question shows what was said before
			if err := s.endApproval(ctx, a, void, false); err != nil {
				return err
			}
			continue
		}
		if err := s.cfg.Transport.Send(ctx, s.room, s.question(ctx, a)); err != nil {
			return err
		}
	}
	return nil
}

// sameReaders reports whether those read the room now who read it when a was asked for.
func (s *Session) sameReaders(ctx context.Context, a approval) (bool, error) {
	private, err := s.private(ctx, a.asker)
	return s.place(chat.Inbound{Sender: a.asker, Private: private}).Readers() == a.readers, err
}

// voidApprovals takes back what is asked because of the messages or questions targets, which
// were edited, redacted or stopped. What has been done stays done.
func (m *Manager) voidApprovals(ctx context.Context, room string, targets ...string) error {
	for _, target := range targets {
		question := strings.HasPrefix(target, askPrefix)
		all, err := m.approvals(ctx, m.cfg.DB,
			`WHERE room = ?1 AND ?2 IN (event, ?3 || code) AND state IN ('gathering', 'open', 'approved')`, room, target, askPrefix)
		if err != nil {
			return err
		}
		for _, a := range all {
			seen := a.state != gathering && !question
			if err := m.endApproval(ctx, a, void, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// endApproval stores how a ended that nobody can answer any more, and closes its poll if that can
// be seen.
func (m *Manager) endApproval(ctx context.Context, a approval, as approvalState, seen bool) error {
	a.state = as
	if err := storeApproval(ctx, m.cfg.DB, a); err != nil || !seen {
		return err
	}
	return m.closeQuestion(ctx, a)
}

// closeQuestion ends the poll of a question that nobody can answer any more.
func (m *Manager) closeQuestion(ctx context.Context, a approval) error {
	key := "approve.over"
	if a.state == expired {
		key = "approve.expired"
	}
	text := newSession(m, a.talk).text(ctx, key)
	return m.cfg.Transport.Send(ctx, a.room, chat.Outgoing{ID: askPrefix + a.code, Thread: a.talk.Thread(), Text: text, Notice: true})
}

// stopApprovals takes back what is approved in this conversation and has not run; it tells
// whether there was any.
func (s *Session) stopApprovals(ctx context.Context) (bool, error) {
	all, err := s.approvals(ctx, s.cfg.DB, `WHERE talk = ? AND state = 'approved'`, s.talk)
	for i := 0; err == nil && i < len(all); i++ {
		err = s.endApproval(ctx, all[i], void, true)
	}
	return len(all) > 0, err
}

// answerApproval takes person's answer to the question code, in room, and says what became of
// it. All that decides whether an answer counts stands here.
func (s *Session) answerApproval(ctx context.Context, in chat.Inbound, code, option string) (text string, err error) {
	var answered *approval
	err = store.InTx(ctx, s.cfg.DB, func(tx *sql.Tx) error {
		all, err := s.approvals(ctx, tx, `WHERE code = ? AND room = ?`, strings.ToLower(strings.TrimSpace(code)), s.room)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			text = s.text(ctx, "approve.none")
			return nil
		}
		a, now := all[0], s.cfg.Now()
		late := a.state == open && (now.Before(a.created) || !now.Before(a.expires)) // or the clock was set back
		switch {
		case s.level(in) < trust.User, in.Sender != a.asker && s.level(in) < trust.Owner:
			text = s.text(ctx, "approve.not_yours", "person", a.asker)
			return nil
		case late:
			a.state, text = expired, s.text(ctx, "approve.expired")
		case a.answers(in.Sender, option): // the same once more, as after an interruption
			if a.state == denied {
				text = s.text(ctx, "approve.denied")
			}
			return nil
		case a.state != open:
			text = s.text(ctx, "approve.over")
			return nil
		case option == optionNo:
			a.state, text = denied, s.text(ctx, "approve.denied")
		default:
			a.state, a.wide = approved, option == optionWide
		}
		a.answeredBy, a.unproven, answered = in.Sender, in.Unproven, &a
		return storeApproval(ctx, tx, a)
	})
	if err != nil || answered == nil {
		return text, err
	}
	if answered.state == expired {
		return text, s.closeQuestion(ctx, *answered)
	}
	return text, s.wakeApproval(ctx, *answered)
}

// answer is whose leave a has.
func (a *approval) answer() chat.Inbound {
	return chat.Inbound{Sender: a.answeredBy, Unproven: a.unproven}
}

// answers reports whether person has answered a with this option.
func (a *approval) answers(person, option string) bool {
	if person != a.answeredBy {
		return false
	}
	if option == optionNo {
		return a.state == denied
	}
	return (a.state == approved || a.state == ended) && a.wide == (option == optionWide)
}

// wakeApproval has the conversation of an answered question go on with it.
func (m *Manager) wakeApproval(ctx context.Context, a approval) error {
	err := m.Deliver(ctx, chat.Inbound{ID: donePrefix + a.code, Room: a.room, Branch: a.talk.Thread(), Sender: a.asker,
		Change: chat.Approved, Target: askPrefix + a.code, At: m.cfg.Now()})
	if errors.Is(err, chat.ErrStopping) { // the next start finds it
		return nil
	}
	return err
}

// resumeApprovals goes on with what an interruption left: questions that may not have been
// asked yet, and acts that were approved.
func (m *Manager) resumeApprovals(ctx context.Context) error {
	failed := m.dropApprovals(ctx, m.cfg.DB)
	left, err := m.approvals(ctx, m.cfg.DB, `WHERE state IN ('open', 'approved')`)
	failed = errors.Join(failed, err)
	for _, a := range left {
		switch {
		case a.state == approved:
			err = m.wakeApproval(ctx, a)
		case m.cfg.Now().Before(a.expires):
			err = newSession(m, a.talk).askApprovals(ctx, a.event)
		default:
			err = m.endApproval(ctx, a, expired, true)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// goOn runs what was approved under code, or tells the model that it was denied.
func (s *Session) goOn(ctx context.Context, code string) error {
	all, err := s.approvals(ctx, s.cfg.DB, `WHERE code = ? AND talk = ? AND state IN ('approved', 'denied')`, code, s.talk)
	if err != nil || len(all) == 0 {
		return err
	}
	a := all[0]
	if err := s.closeQuestion(ctx, a); err != nil {
		return err
	}
	if a.state == denied {
		return s.note(ctx, s.ours(donePrefix+a.code, s.text(ctx, "approve.denied"), programs(a.readers)))
	}
	return s.runApproved(ctx, a)
}

// runApproved runs the acts of a, those that have not run yet.
func (s *Session) runApproved(ctx context.Context, a approval) error {
	in := chat.Inbound{ID: a.event, Room: s.room, Thread: s.thread, Branch: s.thread, Sender: a.asker, Text: a.quote, At: a.created}
	switch same, err := s.sameReaders(ctx, a); {
	case err != nil:
		return err
	case !same:
		a.state = void
		return s.concludeApproval(ctx, a, s.text(ctx, "approve.moved"))
	}
	in.Private = a.readers.Person() != ""
	scope, _, err := s.callScope(ctx, in)
	if err != nil {
		return err
	}
	scope.Label = trust.Label{Integrity: s.level(a.answer()), Readers: a.readers} // of the person who allowed it
	kept := context.WithoutCancel(ctx)                                            // an act that has begun ends
	for i := range a.acts {
		act := &a.acts[i]
		if act.Done {
			continue
		}
		now, err := s.approvals(kept, s.cfg.DB, `WHERE code = ? AND state = 'approved'`, a.code)
		switch {
		case err != nil:
			return err
		case context.Cause(ctx) == agent.ErrStopped, disturbed(ctx), len(now) == 0: //nolint:errorlint // our own value
			a.state = void
			return s.concludeApproval(kept, a, s.outcome(kept, a, "stop.ended"))
		case ctx.Err() != nil:
			return ctx.Err()
		}
		scope.Key = fmt.Sprintf("%sa%c", a.code, 'a'+i) // eight characters, as in the ids of tasks
		scope.Send, scope.SetMode = s.sending(in, act.Call.ID), s.setsMode(in)
		result := s.cfg.Tools.Run(kept, scope, act.Call)
		act.Done, act.Result, act.Failed, act.Read = true, result.Content, result.Failed, result.Integrity
		s.log.Info("approved tool", "approval", a.code, "tool", act.Call.Name, "failed", result.Failed, "by", a.answeredBy)
		if err := storeApproval(kept, s.cfg.DB, a); err != nil {
			return err
		}
	}
	a.state = ended
	return s.concludeApproval(kept, a, s.outcome(kept, a, "approve.done"))
}

// concludeApproval stores how an approval ended, for the model too, and says it.
func (s *Session) concludeApproval(ctx context.Context, a approval, text string) error {
	least := min(trust.User, s.level(a.answer()))
	for _, act := range a.acts {
		if act.Done {
			least = min(least, act.Read)
		}
	}
	said := s.ours(donePrefix+a.code, text, trust.Label{Integrity: least, Readers: a.readers})
	out := chat.Outgoing{ID: donePrefix + a.code, Thread: s.thread, Text: text, Notice: true}
	if err := s.cfg.Transport.Send(ctx, s.room, out); err != nil { // first: saying it again is saying it once
		return err
	}
	return store.InTx(ctx, s.cfg.DB, func(tx *sql.Tx) error {
		if err := storeApproval(ctx, tx, a); err != nil {
			return err
		}
		if err := s.cfg.History.AppendIn(ctx, tx, said); !errors.Is(err, history.ErrKnown) {
			return err
		}
		return nil
	})
}
