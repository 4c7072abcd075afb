package approval

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Store stores approvals in bot.db and closes polls of ended questions.
type Store struct {
	DB        *store.DB // migrated
	Transport chat.Transport
	Messages  *settings.Messages
	Now       func() time.Time
}

const columns = `code, room, thread, conversation, event, asker, readers, quote, acts, sources, sources_hash, state, whole_conversation,
	answered_by, unverified, created, expires`

// list reads the approvals that match the WHERE clause, the oldest first.
func list(ctx context.Context, from store.DBTX, where string, args ...any) ([]Approval, error) {
	return store.List(ctx, from, scan, `SELECT `+columns+` FROM approval `+where+` ORDER BY created, rowid`, args...)
}

func scan(row store.Row) (a Approval, err error) {
	var created, expires int64
	if err := row.Scan(&a.Code, &a.Room, &a.Talk, &a.Conversation, &a.Event, &a.Asker, &a.Readers, &a.Quote, store.JSON(&a.Acts),
		store.JSON(&a.Sources), &a.Fingerprint, &a.State, &a.Wide, &a.Answer.Sender, &a.Answer.Unproven, &created, &expires); err != nil {
		return a, err
	}
	a.Created, a.Expires = time.UnixMilli(created), time.UnixMilli(expires)
	return a, nil
}

// Put stores a in db, which may be a transaction. It does not change an approval in a final state.
func (s Store) Put(ctx context.Context, db store.DBTX, a Approval) error {
	var expires int64
	if a.State != Gathering {
		expires = a.Expires.UnixMilli()
	}
	return store.Exec(ctx, db, `INSERT INTO approval (`+columns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (code) DO UPDATE SET acts = excluded.acts, sources = excluded.sources,
			sources_hash = excluded.sources_hash, state = excluded.state,
			whole_conversation = excluded.whole_conversation,
			answered_by = excluded.answered_by, unverified = excluded.unverified WHERE approval.state IN ('gathering', 'open', 'approved')`,
		a.Code, a.Room, a.Talk, a.Conversation, a.Event, a.Asker, a.Readers, a.Quote, store.JSON(&a.Acts), store.JSON(&a.Sources),
		a.Fingerprint, a.State, a.Wide, a.Answer.Sender, a.Answer.Unproven, a.Created.UnixMilli(), expires)
}

// ListGranted lists asker's approvals for a whole conversation, if fingerprint has not changed since.
func (s Store) ListGranted(ctx context.Context, talk history.Timeline, conversation int64, asker, fingerprint string) ([]Approval, error) {
	return list(ctx, s.DB, `WHERE thread = ? AND conversation = ? AND asker = ? AND whole_conversation = 1 AND sources_hash = ?
		AND state IN ('approved', 'done')`, talk, conversation, asker, fingerprint)
}

// ListOpenOf lists the open questions about event.
func (s Store) ListOpenOf(ctx context.Context, talk history.Timeline, event string) ([]Approval, error) {
	return list(ctx, s.DB, `WHERE thread = ? AND event = ? AND state = 'open'`, talk, event)
}

// Void voids the unfinished approvals of targets: messages or questions that were edited, redacted or
// stopped. It does not undo acts that have run.
func (s Store) Void(ctx context.Context, room string, targets ...string) error {
	for _, target := range targets {
		all, err := list(ctx, s.DB, `WHERE room = ?1 AND ?2 IN (event, ?3 || code) AND state IN ('gathering', 'open', 'approved')`,
			room, target, prefix)
		if err != nil {
			return err
		}
		for _, a := range all {
			if err := s.End(ctx, a, Void, a.State != Gathering && target != a.QuestionID()); err != nil {
				return err
			}
		}
	}
	return nil
}

// VoidApproved voids a conversation's approved acts that are unfinished, and reports whether any were.
func (s Store) VoidApproved(ctx context.Context, talk history.Timeline) (bool, error) {
	all, err := list(ctx, s.DB, `WHERE thread = ? AND state = 'approved'`, talk)
	for i := 0; err == nil && i < len(all); i++ {
		err = s.End(ctx, all[i], Void, true)
	}
	return len(all) > 0, err
}

// End stores the final state of a, and closes its poll if one was shown.
func (s Store) End(ctx context.Context, a Approval, state State, shown bool) error {
	a.State = state
	if err := s.Put(ctx, s.DB, a); err != nil || !shown {
		return err
	}
	return s.ClosePoll(ctx, a)
}

// ClosePoll replaces the poll of a question by a note that it is over.
func (s Store) ClosePoll(ctx context.Context, a Approval) error {
	say := s.Messages.For(ctx, a.Room)
	text := say("approve.over")
	switch {
	case a.State == Expired:
		text = say("approve.expired")
	case a.State == Denied:
		text = say("ask.answered", "answer", say("approve.no"))
	case a.State != Void && a.Wide:
		text = say("ask.answered", "answer", say("approve.wide"))
	case a.State != Void:
		text = say("ask.answered", "answer", say("approve.once"))
	}
	return s.Transport.Send(ctx, a.Room, chat.Outgoing{ID: a.QuestionID(), Thread: a.Talk.Thread(), Text: text, Notice: true})
}

// PruneAndListPending lists the open and approved approvals, for a restart. It deletes old ended ones.
func (s Store) PruneAndListPending(ctx context.Context) ([]Approval, error) {
	_, err := s.DB.ExecContext(ctx, `DELETE FROM approval WHERE created < ? AND state NOT IN ('open', 'approved')`,
		s.Now().Add(-retention).UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("approval: delete old approvals: %w", err)
	}
	return list(ctx, s.DB, `WHERE state IN ('open', 'approved')`)
}

// ListNewest lists the newest n approvals that people were asked about, the newest first.
func (s Store) ListNewest(ctx context.Context, n int) ([]Approval, error) {
	all, err := list(ctx, s.DB, `WHERE rowid IN (SELECT rowid FROM approval WHERE state <> 'gathering' ORDER BY created DESC, rowid DESC
		LIMIT ?)`, n)
	slices.Reverse(all)
	return all, err
}

// Find returns the approval with that code; its state is empty if it does not exist.
func (s Store) Find(ctx context.Context, db store.DBTX, code string) (Approval, error) {
	all, err := list(ctx, db, `WHERE code = ?`, strings.ToLower(strings.TrimSpace(code)))
	if err != nil || len(all) == 0 {
		return Approval{}, err
	}
	return all[0], nil
}

// Placeholder results of calls that need approval, for the model.
const (
	resultAsked = "Not done yet: text was read here that did not come from the person, so they are asked first. Do not call this again. " +
		"Say in a sentence what you would do; when they agree, it is done without you."
	resultAskedEach = "Not done yet: the owner is asked about exactly this first. Do not call this again, and do not guess the output. " +
		"Say in a sentence what it is for; when they agree, it is done without you, and the output appears here."
	resultDuplicate = "The person is asked about this very act already. Do not call it again; end with your answer."
	resultTooMany   = "Not done, and the person is not asked: this is too long to be shown to them, or there are too many acts at once. " +
		"Do less at a time, in fewer words."
)

// AddActs adds acts to the gathering approval of a turn. Without one, it adds them to the new
// approval a. It returns a placeholder result for each act.
func (s Store) AddActs(ctx context.Context, tx *sql.Tx, a Approval, acts []Act) ([]string, error) {
	sources, fingerprint := a.Sources, a.Fingerprint
	found, err := list(ctx, tx, `WHERE thread = ? AND event = ? AND state = 'gathering'`, a.Talk, a.Event)
	if err != nil {
		return nil, err
	}
	open, err := list(ctx, tx, `WHERE thread = ? AND conversation = ? AND state = 'open' AND expires > ?`,
		a.Talk, a.Conversation, s.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	a.Code, a.State, a.Created = strings.ToLower(rand.Text()[:6]), Gathering, s.Now()
	if len(found) > 0 {
		a = found[0]
	}
	told := make([]string, len(acts))
	for i, act := range acts {
		same := func(o Act) bool { return o.Call.Name == act.Call.Name && o.Call.Arguments == act.Call.Arguments }
		switch {
		case slices.ContainsFunc(append(open, a), func(o Approval) bool { return slices.ContainsFunc(o.Acts, same) }):
			told[i] = resultDuplicate
		case len(a.Acts) >= maxActs || a.size()+len([]rune(act.Call.Arguments)) > maxArguments:
			told[i] = resultTooMany
		default:
			a.Acts = append(a.Acts, act)
			told[i] = resultAsked
			if act.Covers == "" {
				told[i] = resultAskedEach
			}
		}
	}
	for _, text := range sources {
		if !slices.Contains(a.Sources, text) {
			a.Sources = append(a.Sources, text)
		}
	}
	a.Fingerprint = fingerprint
	if len(a.Acts) == 0 {
		return told, nil
	}
	return told, s.Put(ctx, tx, a)
}

// Open opens the approvals gathered for event. They expire after answerTimeout.
func (s Store) Open(ctx context.Context, in store.DBTX, talk history.Timeline, event string) error {
	now := s.Now()
	return store.Exec(ctx, in, `UPDATE approval SET state = 'open', created = ?, expires = ?
		WHERE thread = ? AND event = ? AND state = 'gathering'`, now.UnixMilli(), now.Add(answerTimeout).UnixMilli(), talk, event)
}

// Answer records an answer to the question code. in is the answer's head and integrity its sender's.
// changed is the approval if its state changed, and text is what the person is told.
func (s Store) Answer(ctx context.Context, in chat.Head, integrity trust.Integrity, code, option string) (
	changed *Approval, text i18n.Text, err error,
) {
	err = store.InTx(ctx, s.DB, func(tx *sql.Tx) error {
		a, err := s.Find(ctx, tx, code)
		if err != nil {
			return err
		}
		now := s.Now()
		switch {
		case a.State == "", a.Room != in.Room:
			text = i18n.New("approve.none")
			return nil
		case integrity < trust.User, in.Sender != a.Asker && integrity < trust.Owner:
			text = i18n.New("approve.not_yours", "person", a.Asker)
			return nil
		case a.State == Open && (now.Before(a.Created) || !now.Before(a.Expires)): // too late, or the clock was set back
			a.State, text = Expired, i18n.New("approve.expired")
		case a.sameAnswer(in.Sender, option): // repeated, for example after an interruption
			if a.State == Denied {
				text = i18n.New("approve.denied")
			}
			return nil
		case a.State != Open:
			text = i18n.New("approve.over")
			return nil
		case option == No:
			a.State, text = Denied, i18n.New("approve.denied")
		default:
			a.State, a.Wide = Approved, option == Wide && a.mayCover()
		}
		a.Answer, changed = chat.Head{Sender: in.Sender, Unproven: in.Unproven}, &a
		return s.Put(ctx, tx, a)
	})
	return changed, text, err
}

// sqlClearTexts deletes the texts of an approval, and voids it if it is unfinished.
const sqlClearTexts = `UPDATE approval SET quote = '', acts = '[]', sources = '[]',
	state = iif(state IN ('gathering', 'open', 'approved'), 'void', state)`

// Redact deletes the texts of the approvals of the message event.
func (s Store) Redact(ctx context.Context, room, event string) error {
	return store.Exec(ctx, s.DB, sqlClearTexts+` WHERE room = ? AND event = ?`, room, event)
}

// Forget deletes the texts of the approvals that contain one of texts, in tx.
func Forget(ctx context.Context, tx *sql.Tx, texts []string) error {
	all, err := list(ctx, tx, `WHERE acts <> '[]' OR quote <> ''`)
	if err != nil {
		return err
	}
	for _, a := range all {
		if !slices.ContainsFunc(texts, a.contains) {
			continue
		}
		if _, err := tx.ExecContext(ctx, sqlClearTexts+` WHERE code = ?`, a.Code); err != nil {
			return fmt.Errorf("approval: forget in approvals: %w", err)
		}
	}
	return nil
}

// contains reports whether a contains text.
func (a *Approval) contains(text string) bool {
	if text == "" {
		return false
	}
	return strings.Contains(a.Quote, text) || slices.ContainsFunc(a.Acts, func(act Act) bool {
		escaped, _ := json.Marshal(text) //nolint:errchkjson // a string
		var plain any
		_ = json.Unmarshal([]byte(act.Call.Arguments), &plain)
		arguments, _ := json.Marshal(plain) //nolint:errchkjson // it came from JSON
		return strings.Contains(act.Result, text) || strings.Contains(act.Call.Arguments, text) ||
			strings.Contains(string(arguments), string(escaped[1:len(escaped)-1]))
	})
}
