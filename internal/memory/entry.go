package memory

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// Entry is one thing remembered: one line of text, and where it comes from.
type Entry struct {
	N       int64  `json:"-"` // number of its row, for the indexes; 0 if it was not read from the table
	ID      string `json:"id"`
	Scope   Scope  `json:"scope"`
	Text    string `json:"text"`
	Subject string `json:"subject,omitempty"` // whom or what it is about; in a conversation, the speaker
	Kind    Kind   `json:"kind"`
	// Integrity is that of the least trusted source of Text. It is never omitted: journals from
	// before labels lack it and are read as trust.User.
	Integrity trust.Integrity `json:"integrity"`

	Source Source `json:"source"`
	State  State  `json:"state"`
	By     string `json:"by,omitempty"` // the entry that replaced it; of an active member, its head (see member.go)
	Pinned bool   `json:"pinned,omitempty"`

	Event        string `json:"event,omitempty"`        // the message it was learned from
	Quote        string `json:"quote,omitempty"`        // the words of that message
	Ref          string `json:"ref,omitempty"`          // its id in an imported file
	Conversation string `json:"conversation,omitempty"` // entries of one conversation are neighbours,
	Seq          int    `json:"seq,omitempty"`          // in this order

	ObservedAt time.Time `json:"observed_at"` // when it was last said
	ValidFrom  time.Time `json:"valid_from,omitzero"`
	ValidTo    time.Time `json:"valid_to,omitzero"`

	Record
}

// Record holds the fields that the store maintains itself.
type Record struct {
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Hits      int       `json:"hits,omitempty"` // answers that used it
	LastHit   time.Time `json:"last_hit,omitzero"`
	Rev       int       `json:"rev"` // incremented by every change
}

// Kind classifies what an entry says.
type Kind string

// The kinds of entries.
const (
	Fact       Kind = "fact"
	Preference Kind = "preference"
	Happening  Kind = "event"
	Insight    Kind = "insight" // concluded by dreaming, never said
)

// Source says how an entry came to be.
type Source string

// The sources of entries.
const (
	UserExplicit  Source = "user_explicit"  // a person asked to remember it
	Assistant     Source = "assistant"      // the model noted it while it answered
	Harvest       Source = "harvest"        // extracted from a conversation afterwards
	DreamingMerge Source = "dreaming_merge" // others were merged into it; see LoadOriginalSources
	FromFile      Source = "file"           // a person wrote it into a memory file
	Imported      Source = "import"
)

// State is the life cycle of an entry.
type State string

// The states of entries. Only Active ones are in prompts and in files.
const (
	Active     State = "active"
	Merged     State = "merged"     // another entry includes it
	Superseded State = "superseded" // another entry corrects it
	Archived   State = "archived"   // retired; can still be searched for
	Forgotten  State = "forgotten"  // its text is deleted
)

const entryColumns = `n, id, scope, text, subject, kind, source, state, successor, pinned, event, quote, ref, conversation, seq,
	observed_at, valid_from, valid_to, created_at, updated_at, hits, last_hit, rev, integrity`

// scanEntry reads a row of entryColumns, followed by the columns for more.
func scanEntry(row store.Row, more ...any) (Entry, error) {
	var e Entry
	var observed, created, updated int64
	var from, to, hit sql.NullInt64
	err := row.Scan(append([]any{&e.N, &e.ID, &e.Scope, &e.Text, &e.Subject, &e.Kind, &e.Source, &e.State, &e.By, &e.Pinned, &e.Event,
		&e.Quote, &e.Ref, &e.Conversation, &e.Seq, &observed, &from, &to, &created, &updated, &e.Hits, &hit, &e.Rev,
		&e.Integrity}, more...)...)
	if err != nil {
		return Entry{}, err
	}
	e.ObservedAt, e.CreatedAt, e.UpdatedAt = fromMilli(observed), fromMilli(created), fromMilli(updated)
	e.ValidFrom, e.ValidTo, e.LastHit = optionalTime(from), optionalTime(to), optionalTime(hit)
	return e, nil
}

func fromMilli(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func optionalTime(ms sql.NullInt64) time.Time {
	if !ms.Valid {
		return time.Time{}
	}
	return fromMilli(ms.Int64)
}

func nullMilli(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

// insertEntry stores e as a new row and journals it. It returns the row number, by which the
// indexes know e. The entry must be complete: checked text, ID, times, Rev 1.
func insertEntry(ctx context.Context, tx store.DBTX, e Entry, actor, batch string) (n int64, err error) {
	row := []any{nil, e.ID, e.Scope, e.Text, e.Subject, e.Kind, e.Source, e.State, e.By, e.Pinned, e.Event, e.Quote, e.Ref,
		e.Conversation, e.Seq, e.ObservedAt.UnixMilli(), nullMilli(e.ValidFrom), nullMilli(e.ValidTo),
		e.CreatedAt.UnixMilli(), e.UpdatedAt.UnixMilli(), e.Hits, nullMilli(e.LastHit), e.Rev, e.Integrity, text.Hash(e.Text)}
	insert := `INSERT OR FAIL INTO memory (` + entryColumns + `, hash) VALUES (` + strings.Repeat("?, ", len(row)-1) + `?)`
	result, err := tx.ExecContext(ctx, insert, row...)
	if err == nil {
		n, err = result.LastInsertId()
	}
	if err != nil {
		return 0, fmt.Errorf("store a memory: %w", err)
	}
	return n, writeOp(ctx, tx, Op{Batch: batch, At: e.CreatedAt, Actor: actor, Op: "add", Entry: e.ID, After: &e})
}

// newID returns a new entry id, newBatch a new batch id.
func newID() string { return "mem_" + strings.ToLower(rand.Text()[:12]) }

func newBatch() string { return strings.ToLower(rand.Text()[:12]) }
