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

// Store keeps the approvals in bot.db, and closes the questions that have ended.
type Store struct {
	DB        *sql.DB // migrated
	Transport chat.Transport
	Messages  *settings.Messages
	Now       func() time.Time
}

const columns = `code, room, thread, conversation, event, asker, readers, quote, acts, sources, sources_hash, state, whole_conversation,
	answered_by, unverified, created, expires`

// list reads those that what, the rest of a query, is true of, the oldest first.
func list(ctx context.Context, from store.DBTX, what string, args ...any) ([]Approval, error) {
	all, err := store.List(ctx, from, scan, `SELECT `+columns+` FROM approval `+what+` ORDER BY created, rowid`, args...)
	if err != nil {
		return nil, fmt.Errorf("approval: read approvals: %w", err)
	}
	return all, nil
}

func scan(row store.Row) (a Approval, err error) {
	var created, expires int64
	if err := row.Scan(&a.Code, &a.Room, &a.Talk, &a.Conversation, &a.Event, &a.Asker, &a.Readers, &a.Quote, store.JSON(&a.Acts),
		store.JSON(&a.Seen), &a.Mark, &a.State, &a.Wide, &a.Answer.Sender, &a.Answer.Unproven, &created, &expires); err != nil {
		return a, err
	}
	a.Created, a.Expires = time.UnixMilli(created), time.UnixMilli(expires)
	return a, nil
}

// Put stores a, in db or a transaction. It changes none that has ended.
func (s Store) Put(ctx context.Context, db store.DBTX, a Approval) error {
	var expires int64
	if a.State != Gathering {
		expires = a.Expires.UnixMilli()
	}
	_, err := db.ExecContext(ctx, `INSERT INTO approval (`+columns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (code) DO UPDATE SET acts = excluded.acts, sources = excluded.sources, sources_hash = excluded.sources_hash,
			state = excluded.state, whole_conversation = excluded.whole_conversation,
			answered_by = excluded.answered_by, unverified = excluded.unverified WHERE approval.state IN ('gathering', 'open', 'approved')`,
		a.Code, a.Room, a.Talk, a.Conversation, a.Event, a.Asker, a.Readers, a.Quote, store.JSON(&a.Acts), store.JSON(&a.Seen), a.Mark,
		a.State, a.Wide, a.Answer.Sender, a.Answer.Unproven, a.Created.UnixMilli(), expires)
	if err != nil {
		return fmt.Errorf("approval: store an approval: %w", err)
	}
	return nil
}

// Granted lists what asker was allowed for a conversation, as long as mark is the same.
func (s Store) Granted(ctx context.Context, talk history.Timeline, conversation int64, asker, mark string) ([]Approval, error) {
	return list(ctx, s.DB, `WHERE thread = ? AND conversation = ? AND asker = ? AND whole_conversation = 1 AND sources_hash = ?
		AND state IN ('approved', 'done')`, talk, conversation, asker, mark)
}

// Asked lists the open questions about event.
func (s Store) Asked(ctx context.Context, talk history.Timeline, event string) ([]Approval, error) {
	return list(ctx, s.DB, `WHERE thread = ? AND event = ? AND state = 'open'`, talk, event)
}

// Void takes back what is asked because of the messages or questions targets, which were edited,
// redacted or stopped. What has been done stays done.
func (s Store) Void(ctx context.Context, room string, targets ...string) error {
	for _, target := range targets {
		all, err := list(ctx, s.DB, `WHERE room = ?1 AND ?2 IN (event, ?3 || code) AND state IN ('gathering', 'open', 'approved')`,
			room, target, prefix)
		if err != nil {
			return err
		}
		for _, a := range all {
			if err := s.End(ctx, a, Void, a.State != Gathering && target != a.Question()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Stop takes back what is approved in a conversation and has not run; it tells whether there was any.
func (s Store) Stop(ctx context.Context, talk history.Timeline) (bool, error) {
	all, err := list(ctx, s.DB, `WHERE thread = ? AND state = 'approved'`, talk)
	for i := 0; err == nil && i < len(all); i++ {
		err = s.End(ctx, all[i], Void, true)
	}
	return len(all) > 0, err
}

// End stores how a ended that nobody can answer any more, and closes its poll if that can be seen.
func (s Store) End(ctx context.Context, a Approval, as State, seen bool) error {
	a.State = as
	if err := s.Put(ctx, s.DB, a); err != nil || !seen {
		return err
	}
	return s.Close(ctx, a)
}

// Close ends the poll of a question.
func (s Store) Close(ctx context.Context, a Approval) error {
	key := "approve.over"
	if a.State == Expired {
		key = "approve.expired"
	}
	text := s.Messages.Text(ctx, a.Room, key)
	return s.Transport.Send(ctx, a.Room, chat.Outgoing{ID: a.Question(), Thread: a.Talk.Thread(), Text: text, Notice: true})
}

// Left deletes what ended long ago, and lists what is to go on with at a start.
func (s Store) Left(ctx context.Context) ([]Approval, error) {
	_, err := s.DB.ExecContext(ctx, `DELETE FROM approval WHERE created < ? AND state NOT IN ('open', 'approved')`,
		s.Now().Add(-keptTime).UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("approval: delete old approvals: %w", err)
	}
	return list(ctx, s.DB, `WHERE state IN ('open', 'approved')`)
}

// One is the approval code; its state is empty if there is none.
func (s Store) One(ctx context.Context, db store.DBTX, code string) (Approval, error) {
	all, err := list(ctx, db, `WHERE code = ?`, strings.ToLower(strings.TrimSpace(code)))
	if err != nil || len(all) == 0 {
		return Approval{}, err
	}
	return all[0], nil
}

// What the model is told of a call that a person must allow first.
const (
	toldAsked = "Not done yet: text was read here that did not come from the person, so they are asked first. Do not call this again. " +
		"Say in a sentence what you would do; when they agree, it is done without you."
	toldKnown = "The person is asked about this very act already. Do not call it again; end with your answer."
	toldMany  = "Not done, and the person is not asked: this is too long to be shown to them, or there are too many acts at once. " +
		"Do less at a time, in fewer words."
)

// Gather adds acts to the approval of a turn, for which a is new, and returns what the model is told of each.
func (s Store) Gather(ctx context.Context, tx *sql.Tx, a Approval, acts []Act) ([]string, error) {
	seen, mark := a.Seen, a.Mark
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
			told[i] = toldKnown
		case len(a.Acts) >= mostActs || a.size()+len([]rune(act.Call.Arguments)) > mostAsked:
			told[i] = toldMany
		default:
			a.Acts = append(a.Acts, act)
			told[i] = toldAsked
		}
	}
	for _, text := range seen {
		if !slices.Contains(a.Seen, text) {
			a.Seen = append(a.Seen, text)
		}
	}
	a.Mark = mark
	if len(a.Acts) == 0 {
		return told, nil
	}
	return told, s.Put(ctx, tx, a)
}

// Open lets what was gathered for event be asked, from now on for ten minutes.
func (s Store) Open(ctx context.Context, in store.DBTX, talk history.Timeline, event string) error {
	now := s.Now()
	_, err := in.ExecContext(ctx, `UPDATE approval SET state = 'open', created = ?, expires = ?
		WHERE thread = ? AND event = ? AND state = 'gathering'`, now.UnixMilli(), now.Add(answerTime).UnixMilli(), talk, event)
	if err != nil {
		return fmt.Errorf("approval: open an approval: %w", err)
	}
	return nil
}

// Answer takes an answer to the question code in a room, and returns what the person is told. in is whose it is,
// and level how far they are trusted. changed is the approval if it has another state now.
func (s Store) Answer(ctx context.Context, in chat.Head, level trust.Integrity, code, option string) (
	changed *Approval, said i18n.Text, err error,
) {
	err = store.InTx(ctx, s.DB, func(tx *sql.Tx) error {
		a, err := s.One(ctx, tx, code)
		if err != nil {
			return err
		}
		now := s.Now()
		switch {
		case a.State == "", a.Room != in.Room:
			said = i18n.New("approve.none")
			return nil
		case level < trust.User, in.Sender != a.Asker && level < trust.Owner:
			said = i18n.New("approve.not_yours", "person", a.Asker)
			return nil
		case a.State == Open && (now.Before(a.Created) || !now.Before(a.Expires)): // late, or the clock was set back
			a.State, said = Expired, i18n.New("approve.expired")
		case a.answered(in.Sender, option): // the same once more, as after an interruption
			if a.State == Denied {
				said = i18n.New("approve.denied")
			}
			return nil
		case a.State != Open:
			said = i18n.New("approve.over")
			return nil
		case option == No:
			a.State, said = Denied, i18n.New("approve.denied")
		default:
			a.State, a.Wide = Approved, option == Wide
		}
		a.Answer, changed = chat.Head{Sender: in.Sender, Unproven: in.Unproven}, &a
		return s.Put(ctx, tx, a)
	})
	return changed, said, err
}

// blank takes the texts out of an approval, and ends it if it has not ended.
const blank = `UPDATE approval SET quote = '', acts = '[]', sources = '[]',
	state = iif(state IN ('gathering', 'open', 'approved'), 'void', state)`

// Redact takes the texts out of the approvals of the message event.
func (s Store) Redact(ctx context.Context, room, event string) error {
	if _, err := s.DB.ExecContext(ctx, blank+` WHERE room = ? AND event = ?`, room, event); err != nil {
		return fmt.Errorf("approval: forget in approvals: %w", err)
	}
	return nil
}

// Forget takes the texts out of the approvals that hold one of these, in tx.
func Forget(ctx context.Context, tx *sql.Tx, texts []string) error {
	all, err := list(ctx, tx, `WHERE acts <> '[]' OR quote <> ''`)
	if err != nil {
		return err
	}
	for _, a := range all {
		if !slices.ContainsFunc(texts, a.holds) {
			continue
		}
		if _, err := tx.ExecContext(ctx, blank+` WHERE code = ?`, a.Code); err != nil {
			return fmt.Errorf("approval: forget in approvals: %w", err)
		}
	}
	return nil
}

// holds reports whether text stands in a.
func (a *Approval) holds(text string) bool {
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
