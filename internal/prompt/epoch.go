package prompt

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt/section"
	"reverie/internal/store"
)

// An epoch is a stretch of a conversation in which every request is the one before plus new bytes at
// its end. It never changes: what is shown later makes a new one from it.
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

// shown says that the model has seen something, and in which message.
type shown struct {
	Source  string   `json:"source"`
	Message int64    `json:"message,omitempty"` // 0: in the prefix
	Hash    string   `json:"hash,omitempty"`    // of the whole content
	Lines   []uint64 `json:"lines,omitempty"`   // of single lines
}

// compare says how c differs from what has been shown of its source: whether a
// line is gone, and which lines (indices) are not known to stand in the prefix.
func (e *epoch) compare(c *section.Content) (gone bool, fresh []int) {
	var all []uint64
	inPrefix := map[uint64]bool{}
	for _, s := range e.shown {
		if s.Source != c.Source {
			continue
		}
		all = append(all, s.Lines...)
		if s.Message == 0 {
			for _, id := range s.Lines {
				inPrefix[id] = true
			}
		}
	}
	gone = c.Lacks(all)
	for i, l := range c.Lines {
		if !inPrefix[l.ID] {
			fresh = append(fresh, i)
		}
	}
	return gone, fresh
}

// unseen returns the lines of c (indices) that stand neither in the prefix nor
// in a message that the model still gets.
func (e *epoch) unseen(c *section.Content, past []history.Message) []int {
	_, fresh := e.compare(c)
	if len(fresh) == 0 {
		return nil
	}
	seen := map[uint64]bool{}
	for _, s := range e.shown {
		if s.Source != c.Source || !e.stands(s, past) {
			continue
		}
		for _, id := range s.Lines {
			seen[id] = true
		}
	}
	var out []int
	for _, i := range fresh {
		if !seen[c.Lines[i].ID] {
			out = append(out, i)
		}
	}
	return out
}

// lastShown returns the hash of the content of source that the model saw last.
func (e *epoch) lastShown(source string, past []history.Message) (hash string, ok bool) {
	for i := len(e.shown) - 1; i >= 0; i-- {
		if s := e.shown[i]; s.Source == source && s.Hash != "" && e.stands(s, past) {
			return s.Hash, true
		}
	}
	return "", false
}

// stands reports whether the model still gets the message that showed it. A retried turn
// takes messages out of the history, and what they showed with them.
func (e *epoch) stands(s shown, past []history.Message) bool {
	_, found := slices.BinarySearchFunc(past, s.Message, func(m history.Message, id int64) int { return cmp.Compare(m.ID, id) })
	return found
}

// holds reports whether a message that is still sent says the line.
func (e *epoch) holds(l *section.Line) bool { return l.In != 0 && l.In >= e.first }

// knows reports whether the model still gets a line of memory: from the section of all
// memories, or from a message in which it was said to be new.
func (e *epoch) knows(line, prefix string, past []history.Message) bool {
	if line == "" {
		return false
	}
	if strings.Contains(prefix, "\n"+line+"\n") {
		return true
	}
	id := section.LineID(line)
	return slices.ContainsFunc(e.shown, func(s shown) bool {
		return s.Source == "memories" && s.Message != 0 && slices.Contains(s.Lines, id) && e.stands(s, past)
	})
}

// ended says why the epoch e cannot go on for the request r, or "".
func (r *request) ended(e *epoch) string {
	switch {
	case e == nil || e.conversation != r.conversation:
		return newConversation
	case e.layout != r.layout:
		return "layout changed"
	case e.key != r.key(e):
		return changedKey(e.key, r.key(e))
	}
	if r.byPerson() && r.tooManyPictures(e) {
		return "many pictures"
	}
	for i := range r.rows {
		row, c := &r.rows[i], r.contents[i]
		if c == nil || r.errs[i] != nil { // what cannot be read is not gone
			continue
		}
		switch row.Change {
		case section.LinesEnd:
			if gone, _ := e.compare(c); gone {
				return c.Source + " edited"
			}
		case section.NewLines:
			if !r.inPrefix(i) { // a new epoch would only say it again
				continue
			}
			if new := e.unseen(c, r.turn.History); len(new) > 0 {
				if _, over := c.Only(new).Cut(row.Shrink, row.Max); over != "" {
					return c.Source + " grew"
				}
			}
			if _, fresh := e.compare(c); len(fresh) > 0 && r.byPerson() && r.day(e.started) != r.day(r.turn.Now) {
				return newDay
			}
		}
	}
	return ""
}

// inPrefix reports whether what row i shows in the tail has a place in the prefix
// too, where a new epoch takes it.
func (r *request) inPrefix(i int) bool {
	return slices.ContainsFunc(r.rows, func(o row) bool { return o.Zone == section.Prefix && o.source == r.rows[i].source })
}

// byPerson reports whether a person's message is to be answered, rather than a
// tool's result: in the middle of a turn, no epoch ends for the date's sake.
func (r *request) byPerson() bool {
	n := len(r.turn.History)
	return n > 0 && r.turn.History[n-1].Role == llm.User
}

func (r *request) day(t time.Time) string { return t.In(r.a.cfg.Location).Format(time.DateOnly) }

// key joins the hashes of everything whose change ends an epoch. A source that
// could not be read counts as unchanged since the epoch old, which may be nil.
func (r *request) key(old *epoch) string {
	var b strings.Builder
	if r.turn.Compacted != 0 { // messages are shorter or gone, whatever the summary says
		fmt.Fprintf(&b, "compaction=%x ", r.turn.Compacted)
	}
	if r.rebuilt {
		return b.String()
	}
	fmt.Fprintf(&b, "labels=1 tools=%x", section.LineID(strings.Join(r.turn.Tools, " ")))
	fmt.Fprintf(&b, " scopes=%x", section.LineID(fmt.Sprint(r.turn.Scopes)))
	if r.turn.Mode != "" { // two modes may have the same template
		fmt.Fprintf(&b, " mode=%x", section.LineID(r.turn.Mode))
	}
	if r.turn.Chosen != "" { // another server reads it, from its beginning
		fmt.Fprintf(&b, " model=%x", section.LineID(r.turn.Chosen))
	}
	for i := range r.rows {
		if r.rows[i].Change != section.EndsEpoch || r.rows[i].Name == "tools" { // which are named above
			continue
		}
		hash := "none"
		switch {
		case r.errs[i] != nil && old != nil:
			hash = keyPart(old.key, r.rows[i].Name)
		case r.contents[i] != nil: // its own, or what stands in for it
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

// changedKey names what differs between two keys.
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

// loadEpoch reads the room's epoch; nil if it has none that can be read.
func loadEpoch(ctx context.Context, db *sql.DB, room history.Timeline) (*epoch, error) {
	var e epoch
	var sections, shown string
	var started int64
	err := db.QueryRowContext(ctx, `SELECT conversation, layout, key, prefix, sections, shown,
		nonce, first_message, since_message, started_at, reason
		FROM prompt_epoch WHERE room = ?`, room).Scan(&e.conversation, &e.layout, &e.key, &e.prefix, &sections, &shown,
		&e.nonce, &e.first, &e.since, &started, &e.reason)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("prompt: read epoch: %w", err)
	}
	if json.Unmarshal([]byte(sections), &e.sections) != nil || json.Unmarshal([]byte(shown), &e.shown) != nil || e.nonce == "" {
		return nil, nil // costs one new epoch, no more
	}
	e.started = time.UnixMilli(started)
	return &e, nil
}

// saveEpoch writes the room's epoch.
func saveEpoch(ctx context.Context, tx *sql.Tx, room history.Timeline, e *epoch) error {
	sections, _ := json.Marshal(e.sections) // texts and numbers
	shown, _ := json.Marshal(e.shown)
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO prompt_epoch
		(room, conversation, layout, key, prefix, sections, shown, nonce, first_message, since_message, started_at, reason)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		room, e.conversation, string(e.layout), e.key, e.prefix, string(sections), string(shown), e.nonce, e.first, e.since,
		e.started.UnixMilli(), e.reason)
	return store.Wrap(err, "prompt: save epoch")
}

// Forget throws away, in tx, the stored prompts that quote one of texts. The
// next request of such a room begins a new epoch.
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
