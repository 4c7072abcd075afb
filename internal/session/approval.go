package session

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// An approval is a person's leave for acts that text below the line may have asked for. Its
// states:
//
//	gathering ── the answer is said ──► open ──► approved ──► done
//	    │                                ├──► denied
//	    └──► void ◄──────────────────────┤   the message or the question was edited or redacted
//	                                     └──► expired
//
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
	Done   bool   `json:"done,omitempty"`
	Result string `json:"result,omitempty"`
	Failed bool   `json:"failed,omitempty"`
}

const (
	approvalTime = 10 * time.Minute // an open question may be answered for so long
	mostActs     = 20               // of one question
	mostAsked    = 6_000            // characters of all arguments of one question
	askPrefix    = "ask:"           // of the Outgoing.ID of a question
	donePrefix   = "asked:"         // of the Outgoing.ID that says what came of it
)

// The options of a question.
const (
	optionOnce = "once"
	optionWide = "conversation"
	optionNo   = "no"
)

// below is what a request holds that is not trusted enough: where it comes from, and a mark
// that changes with it.
type below struct {
	seen []string
	mark string
}

// reading describes what the last request held.
func (s *Session) reading(ctx context.Context, past []history.Message) (below, error) {
	if s.label.Integrity >= trust.User {
		return below{}, nil
	}
	c, err := s.cfg.History.Compacted(ctx, s.talk)
	if err != nil {
		return below{}, err
	}
	seen, mark := s.untrusted(ctx, past, c, s.told)
	return below{seen, mark}, nil
}

// granted are the acts that a person allowed for this conversation, as long as no more text
// below the line has come in.
func (s *Session) granted(ctx context.Context, past []history.Message, mark string) (map[string]bool, error) {
	if s.label.Integrity >= trust.User || len(past) == 0 {
		return nil, nil
	}
	all, err := s.approvals(ctx, s.cfg.DB, `WHERE talk = ? AND conversation = ? AND wide = 1 AND state IN ('approved', 'done')`,
		s.talk, past[len(past)-1].Conversation)
	if err != nil {
		return nil, err
	}
	covered := map[string]bool{}
	for _, a := range all {
		if !sameTexts(a.mark, mark, all) {
			continue
		}
		for _, act := range a.acts {
			covered[act.Covers] = true
		}
	}
	return covered, nil
}

// storeCalls stores the model's calls. Those that a person must allow first get a result that
// says so, and are kept for the question, all in one transaction. It returns the ids of these.
func (s *Session) storeCalls(ctx context.Context, in Inbound, scope tool.Scope, reply llm.Reply, seen below) (asked map[string]bool, err error) {
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
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		if err := s.cfg.History.AppendIn(ctx, tx, &calls); err != nil {
			return err
		}
		told, err := s.gather(ctx, tx, in, scope, calls.Conversation, acts, seen)
		if err != nil {
			return err
		}
		for i, act := range acts {
			row := history.Message{Room: s.talk, Role: llm.Tool, CallID: act.Call.ID, Text: told[i], Failed: true, At: s.cfg.Now(), Label: programs(s.label.Readers)}
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
	toldMany  = "Not done, and the person is not asked: this is too long to be shown to them, or there are too many acts at once. Do less at a time, in fewer words."
)

// gather adds acts to the approval of the turn, and returns what the model is told of each.
func (s *Session) gather(ctx context.Context, tx *sql.Tx, in Inbound, scope tool.Scope, conversation int64, acts []askedAct, seen below) ([]string, error) {
	found, err := s.approvals(ctx, tx, `WHERE room = ? AND talk = ? AND event = ? AND state = 'gathering'`, s.room, s.talk, in.ID)
	if err != nil {
		return nil, err
	}
	a := approval{code: strings.ToLower(rand.Text()[:6]), room: s.room, talk: s.talk, conversation: conversation, event: in.ID, asker: in.Sender,
		readers: scope.Place().Readers(), quote: in.Text, state: gathering, created: s.cfg.Now()}
	if len(found) > 0 {
		a = found[0]
	}
	open, err := s.approvals(ctx, tx, `WHERE talk = ? AND conversation = ? AND state = 'open' AND expires > ?`, s.talk, conversation, s.millisNow())
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
	for _, text := range seen.seen {
		if !slices.Contains(a.seen, text) {
			a.seen = append(a.seen, text)
		}
	}
	a.mark = seen.mark
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
func (s *Session) openApproval(ctx context.Context, in execer, event string) error {
	now := s.cfg.Now()
	_, err := in.ExecContext(ctx, `UPDATE approval SET state = 'open', created = ?, expires = ? WHERE room = ? AND talk = ? AND event = ? AND state = 'gathering'`,
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
		if err := s.cfg.Transport.Say(ctx, s.room, s.question(ctx, a)); err != nil {
			return err
		}
	}
	return nil
}

// voidApprovals takes back what is asked because of the messages or questions targets, which
// were edited or redacted.
func (m *Manager) voidApprovals(ctx context.Context, room string, targets ...string) error {
	for _, target := range targets {
		code, question := strings.CutPrefix(target, askPrefix)
		if !question {
			code = ""
		}
		if _, err := m.cfg.DB.ExecContext(ctx, `UPDATE approval SET state = 'void' WHERE room = ? AND (event = ? OR code = ?) AND state IN ('gathering', 'open')`,
			room, target, code); err != nil {
			return fmt.Errorf("session: take back an approval: %w", err)
		}
	}
	return nil
}

// answerApproval takes person's answer to the question code, in room, and says what became of
// it. All that decides whether an answer counts stands here.
func (s *Session) answerApproval(ctx context.Context, in Inbound, code, option string) (text string, err error) {
	var wake *approval
	err = s.inTx(ctx, func(tx *sql.Tx) error {
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
		case in.Sender != a.asker && s.level(in.Sender) < trust.Owner:
			text = s.text(ctx, "approve.not_yours", "person", a.asker)
			return nil
		case late:
			a.state, text = expired, s.text(ctx, "approve.expired")
		case a.state != open:
			text = s.text(ctx, "approve.over")
			return nil
		case option == optionNo:
			a.state, text = denied, s.text(ctx, "approve.denied")
		default:
			a.state, a.wide = approved, option == optionWide
			wake = &a
		}
		a.answeredBy = in.Sender
		if err := storeApproval(ctx, tx, a); err != nil {
			return err
		}
		if a.state != denied {
			return nil
		}
		said := history.Message{Room: a.talk, Role: llm.Assistant, EventID: donePrefix + a.code, Text: text, At: now, Label: programs(a.readers)}
		return s.cfg.History.AppendIn(ctx, tx, &said)
	})
	if err != nil || wake == nil {
		return text, err
	}
	return "", s.wakeApproval(ctx, *wake)
}

// wakeApproval has the conversation of an approved act run it.
func (m *Manager) wakeApproval(ctx context.Context, a approval) error {
	err := m.Deliver(ctx, Inbound{ID: donePrefix + a.code, Room: a.room, Branch: a.talk.Thread(), Sender: a.asker, Change: approvedChange, Target: askPrefix + a.code, At: m.cfg.Now()})
	if errors.Is(err, ErrStopping) { // the next start finds it
		return nil
	}
	return err
}

// resumeApprovals goes on with what an interruption left: questions that may not have been
// asked yet, and acts that were approved.
func (m *Manager) resumeApprovals(ctx context.Context) error {
	left, err := m.approvals(ctx, m.cfg.DB, `WHERE state IN ('open', 'approved')`)
	if err != nil {
		return err
	}
	for _, a := range left {
		if a.state == approved {
			err = m.wakeApproval(ctx, a)
		} else {
			err = newSession(m, a.talk).askApprovals(ctx, a.event)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// runApproved runs the acts that were approved under code, those that have not run yet.
func (s *Session) runApproved(ctx context.Context, code string) error {
	all, err := s.approvals(ctx, s.cfg.DB, `WHERE code = ? AND talk = ? AND state = 'approved'`, code, s.talk)
	if err != nil || len(all) == 0 {
		return err
	}
	a := all[0]
	in := Inbound{ID: a.event, Room: s.room, Thread: s.thread, Branch: s.thread, Sender: a.asker, Text: a.quote, At: a.created}
	if in.Private, err = s.private(ctx, a.asker); err != nil {
		return err
	}
	if s.place(in).Readers() != a.readers { // others read the room now
		a.state = void
		return s.concludeApproval(ctx, a, s.text(ctx, "approve.moved"))
	}
	now, err := s.mode(ctx)
	if err != nil {
		return err
	}
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return err
	}
	scope := s.toolScope(in, now)
	scope.Label = trust.Label{Integrity: s.level(a.answeredBy), Readers: a.readers}
	scope.Event, scope.Quote, scope.At, scope.Files = in.ID, in.Text, in.At, came(past)
	for i := range a.acts {
		act := &a.acts[i]
		switch {
		case act.Done:
			continue
		case context.Cause(ctx) == errStopped: //nolint:errorlint // our own value
			a.state = void
			return s.concludeApproval(context.WithoutCancel(ctx), a, s.text(ctx, "stop.ended"))
		case ctx.Err() != nil:
			return ctx.Err()
		}
		scope.Key = fmt.Sprintf("%sa%c", a.code, 'a'+i) // eight characters, as in the ids of tasks
		scope.Send = s.sending(in, act.Call.ID)
		result := s.cfg.Tools.Run(context.WithoutCancel(ctx), scope, act.Call)
		act.Done, act.Result, act.Failed = true, result.Content, result.Failed
		s.log.Info("approved tool", "approval", a.code, "tool", act.Call.Name, "failed", result.Failed, "by", a.answeredBy)
		if err := s.inTx(context.WithoutCancel(ctx), func(tx *sql.Tx) error { return storeApproval(context.WithoutCancel(ctx), tx, a) }); err != nil {
			return err
		}
	}
	a.state = ended
	return s.concludeApproval(ctx, a, s.outcome(ctx, a))
}

// concludeApproval stores how an approval ended, for the model too, and says it.
func (s *Session) concludeApproval(ctx context.Context, a approval, text string) error {
	said := history.Message{Room: s.talk, Role: llm.Assistant, EventID: donePrefix + a.code, Text: text, At: s.cfg.Now(),
		Label: trust.Label{Integrity: min(trust.User, s.level(a.answeredBy)), Readers: a.readers}}
	out := Outgoing{ID: donePrefix + a.code, Thread: s.thread, Text: text, Notice: true}
	if err := s.cfg.Transport.Say(ctx, s.room, out); err != nil { // first: saying it again is saying it once
		return err
	}
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if err := storeApproval(ctx, tx, a); err != nil {
			return err
		}
		if err := s.cfg.History.AppendIn(ctx, tx, &said); err != nil && !errors.Is(err, history.ErrKnown) {
			return err
		}
		return nil
	})
}

const approvalColumns = `code, room, talk, conversation, event, asker, readers, quote, acts, seen, mark, state, wide, answered_by, created, expires`

// approvals reads those that what, the rest of a query, is true of, the oldest first.
func (m *Manager) approvals(ctx context.Context, from query, what string, args ...any) ([]approval, error) {
	rows, err := from.QueryContext(ctx, `SELECT `+approvalColumns+` FROM approval `+what+` ORDER BY created, rowid`, args...)
	if err != nil {
		return nil, fmt.Errorf("session: read approvals: %w", err)
	}
	defer rows.Close()
	var all []approval
	for rows.Next() {
		var a approval
		var acts, seen string
		var created, expires int64
		if err := rows.Scan(&a.code, &a.room, &a.talk, &a.conversation, &a.event, &a.asker, &a.readers, &a.quote, &acts, &seen, &a.mark, &a.state,
			&a.wide, &a.answeredBy, &created, &expires); err != nil {
			return nil, fmt.Errorf("session: read approvals: %w", err)
		}
		a.created, a.expires = time.UnixMilli(created), time.UnixMilli(expires)
		if err := errors.Join(json.Unmarshal([]byte(acts), &a.acts), json.Unmarshal([]byte(seen), &a.seen)); err != nil {
			return nil, fmt.Errorf("session: read approval %s: %w", a.code, err)
		}
		all = append(all, a)
	}
	return all, rows.Err()
}

func storeApproval(ctx context.Context, tx *sql.Tx, a approval) error {
	acts, err := json.Marshal(a.acts)
	if err != nil {
		return fmt.Errorf("session: store an approval: %w", err)
	}
	seen, err := json.Marshal(a.seen)
	if err != nil {
		return fmt.Errorf("session: store an approval: %w", err)
	}
	var expires int64
	if a.state != gathering {
		expires = a.expires.UnixMilli()
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO approval (`+approvalColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (code) DO UPDATE SET acts = excluded.acts, seen = excluded.seen, mark = excluded.mark, state = excluded.state, wide = excluded.wide,
			answered_by = excluded.answered_by`,
		a.code, a.room, a.talk, a.conversation, a.event, a.asker, a.readers, a.quote, string(acts), string(seen), a.mark, a.state, a.wide, a.answeredBy,
		a.created.UnixMilli(), expires)
	if err != nil {
		return fmt.Errorf("session: store an approval: %w", err)
	}
	return nil
}

func (m *Manager) millisNow() int64 { return m.cfg.Now().UnixMilli() }

// inTx runs f in a transaction.
func (m *Manager) inTx(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := m.cfg.DB.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("session: begin a transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("session: commit: %w", err)
	}
	return nil
}
