package prompt

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt/section"
	"reverie/internal/store"
)

// An epoch is a stretch of a conversation. In it, every request extends the previous one. It is
// immutable: showing more makes a new epoch from it.
type epoch struct {
	conversation int64
	layout       Layout
	key          string
	prefix       string
	sections     []SectionReport
	shown        []shown
	nonce        string
	first, since int64 // message IDs: older messages, and tails of older messages, are left out
	started      time.Time
	reason       string
}

// shown records that the model has seen something, and in which message.
type shown struct {
	Source  string   `json:"source"`
	Message int64    `json:"message,omitempty"` // 0 = in the prefix
	Hash    string   `json:"hash,omitempty"`    // of the whole content
	Lines   []uint64 `json:"lines,omitempty"`   // of single lines
}

// lines returns the lines of source that the model has been shown, where holds.
func (e *epoch) lines(source string, where func(shown) bool) (ids []uint64) {
	for _, s := range e.shown {
		if s.Source == source && where(s) {
			ids = append(ids, s.Lines...)
		}
	}
	return ids
}

// unseen returns the lines of c (indices) that the model does not see. They are neither in the
// prefix nor in a message of past, which is still sent.
func (e *epoch) unseen(c *section.Content, past []history.Message) (fresh []int) {
	seen := map[uint64]bool{}
	for _, id := range e.lines(c.Source, func(s shown) bool { return s.Message == 0 || s.Message >= e.since && e.stillSent(s, past) }) {
		seen[id] = true
	}
	for i, l := range c.Lines {
		if !seen[l.ID] {
			fresh = append(fresh, i)
		}
	}
	return fresh
}

// lastShown returns the hash of the content of source that the model saw last.
func (e *epoch) lastShown(source string, past []history.Message) (hash string, ok bool) {
	for i := len(e.shown) - 1; i >= 0; i-- {
		if s := e.shown[i]; s.Source == source && s.Hash != "" && e.stillSent(s, past) {
			return s.Hash, true
		}
	}
	return "", false
}

// stillSent reports whether the message that showed s is still sent. Retries remove messages from the
// history, and with them what they showed.
func (e *epoch) stillSent(s shown, past []history.Message) bool {
	_, found := slices.BinarySearchFunc(past, s.Message, func(m history.Message, id int64) int { return cmp.Compare(m.ID, id) })
	return found
}

// saidInHistory reports whether a message that is still sent says the line.
func (e *epoch) saidInHistory(l *section.Line) bool { return l.SaidIn != 0 && l.SaidIn >= e.first }

// showsMemory reports whether the model still gets the memory line that says the same as l. It may be
// in the prefix or in a message that announced it.
func (e *epoch) showsMemory(l *section.Line, prefix string, past []history.Message) bool {
	if l.AsMemory == "" {
		return false
	}
	if strings.Contains(prefix, "\n"+l.AsMemory+"\n") {
		return true
	}
	return slices.ContainsFunc(e.shown, func(s shown) bool {
		return s.Source == "memories" && s.Message != 0 && slices.Contains(s.Lines, l.MemoryID) && e.stillSent(s, past)
	})
}

// endReason returns why the epoch e cannot continue for the request r, or "".
func (r *request) endReason(e *epoch) string {
	switch {
	case e == nil || e.conversation != r.conversation:
		return newConversation
	case e.layout != r.layout:
		return "layout changed"
	case e.key != r.epochKey(e):
		return changedKey(e.key, r.epochKey(e))
	}
	if r.answersPerson() && r.tooManyPictures(e) {
		return "many pictures"
	}
	for i := range r.rows {
		row, c := &r.rows[i], r.contents[i]
		if c == nil || r.errs[i] != nil { // an unreadable source is not a missing one
			continue
		}
		switch row.Change {
		case section.LinesEnd:
			if c.Lacks(e.lines(c.Source, func(shown) bool { return true })) {
				return c.Source + " edited"
			}
		case section.NewLines:
			if !r.inPrefix(i) { // a new epoch would only repeat it
				continue
			}
			if new := e.unseen(c, r.turn.History); len(new) > 0 {
				if _, over := c.Only(new).Cut(row.Shrink, row.Max); over != "" {
					return c.Source + " grew"
				}
			}
			if len(e.unseen(c, nil)) > 0 && r.answersPerson() && r.day(e.started) != r.day(r.turn.Now) {
				return newDay
			}
		}
	}
	return ""
}

// inPrefix reports whether the content of row i also has a place in the prefix. A new epoch moves
// it there.
func (r *request) inPrefix(i int) bool {
	return slices.ContainsFunc(r.rows, func(o row) bool { return o.Zone == section.Prefix && o.source == r.rows[i].source })
}

// answersPerson reports whether a person's message is to be answered, not a tool's result. Within a
// turn, no epoch ends for the date.
func (r *request) answersPerson() bool {
	n := len(r.turn.History)
	return n > 0 && r.turn.History[n-1].Role == llm.User
}

func (r *request) day(t time.Time) string { return t.In(r.turn.Now.Location()).Format(time.DateOnly) }

// epochKey joins the hashes of everything whose change ends an epoch. An unreadable source counts as
// unchanged since old, which may be nil.
func (r *request) epochKey(old *epoch) string {
	var b strings.Builder
	if r.turn.Compacted != 0 { // messages are shorter or gone, whatever the summary says
		fmt.Fprintf(&b, "compaction=%x ", r.turn.Compacted)
	}
	if r.rebuilt {
		return b.String()
	}
	fmt.Fprintf(&b, "labels=1 tools=%x", section.LineID(strings.Join(r.turn.Tools, " ")))
	fmt.Fprintf(&b, " scopes=%x", section.LineID(fmt.Sprint(r.turn.Scopes)))
	if r.turn.Mode != "" { // two modes may share a template
		fmt.Fprintf(&b, " mode=%x", section.LineID(r.turn.Mode))
	}
	if r.turn.Chosen != "" { // another server reads the request from its beginning
		fmt.Fprintf(&b, " model=%x", section.LineID(r.turn.Chosen))
	}
	for i := range r.rows {
		if r.rows[i].Change != section.EndsEpoch || r.rows[i].Name == "tools" { // tools are part of the key already
			continue
		}
		hash := "none"
		switch {
		case r.errs[i] != nil && old != nil:
			hash = keyPart(old.key, r.rows[i].Name)
		case r.contents[i] != nil: // its own, or its substitute
			hash = r.contents[i].Hash
		case r.errs[i] != nil:
			hash = "failed"
		}
		b.WriteString(" " + r.rows[i].Name + "=" + hash)
	}
	return b.String()
}

func keyPart(key, name string) string {
	for part := range strings.FieldsSeq(key) {
		if k, v, _ := strings.Cut(part, "="); k == name {
			return v
		}
	}
	return "none"
}

// changedKey names the difference of two keys.
func changedKey(old, new string) string {
	var names []string
	for part := range strings.FieldsSeq(new) {
		if name, hash, _ := strings.Cut(part, "="); keyPart(old, name) != hash {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "sources changed"
	}
	return strings.Join(names, ", ") + " changed"
}

// loadEpoch reads the room's epoch; nil if there is no readable one.
func loadEpoch(ctx context.Context, db *store.DB, room history.Timeline) (*epoch, error) {
	var e epoch
	var sections, shown string
	var started int64
	err := db.QueryRowContext(ctx, `SELECT conversation, layout, key, prefix, sections, shown,
		nonce, first_message, since_message, started_at, reason
		FROM prompt_epoch WHERE room = ?`, room).Scan(&e.conversation, &e.layout, &e.key, &e.prefix, &sections, &shown,
		&e.nonce, &e.first, &e.since, &started, &e.reason)
	if found, err := store.Found(err); !found {
		return nil, store.Wrap(err, "prompt: read epoch")
	}
	if json.Unmarshal([]byte(sections), &e.sections) != nil || json.Unmarshal([]byte(shown), &e.shown) != nil || e.nonce == "" {
		return nil, nil // this costs one new epoch
	}
	e.started = time.UnixMilli(started)
	return &e, nil
}

// saveEpoch stores the room's epoch.
func saveEpoch(ctx context.Context, tx *sql.Tx, room history.Timeline, e *epoch) error {
	sections, _ := json.Marshal(e.sections) // texts and numbers always encode
	shown, _ := json.Marshal(e.shown)
	_, err := tx.ExecContext(ctx, `INSERT INTO prompt_epoch
		(room, conversation, layout, key, prefix, sections, shown, nonce, first_message, since_message, started_at, reason)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (room) DO UPDATE SET
			conversation = excluded.conversation, layout = excluded.layout, key = excluded.key, prefix = excluded.prefix,
			sections = excluded.sections, shown = excluded.shown, nonce = excluded.nonce, first_message = excluded.first_message,
			since_message = excluded.since_message, started_at = excluded.started_at, reason = excluded.reason`,
		room, e.conversation, string(e.layout), e.key, e.prefix, string(sections), string(shown), e.nonce, e.first, e.since,
		e.started.UnixMilli(), e.reason)
	return store.Wrap(err, "prompt: save epoch")
}

// Forget deletes, in tx, the stored prompts that quote one of texts. The next request of such a
// room begins a new epoch.
func Forget(ctx context.Context, tx *sql.Tx, texts []string) error {
	for _, t := range texts {
		if t == "" {
			continue
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM prompt_epoch WHERE instr(prefix, ?) > 0`, section.MemoryLine(t)); err != nil {
			return fmt.Errorf("forget in prompts: %w", err)
		}
	}
	return nil
}
