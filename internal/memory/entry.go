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
	ID      string `json:"id"`
	Scope   Scope  `json:"scope"`
	Text    string `json:"text"`
	Subject string `json:"subject,omitempty"` // whom or what it is about; in a conversation, who says it
	Kind    Kind   `json:"kind"`
	// Integrity is the least trusted hand that Text went through. It is always written out:
	// journals from before labels lack it, and are read as trust.User.
	Integrity trust.Integrity `json:"integrity"`

	Source Source `json:"source"`
	State  State  `json:"state"`
	By     string `json:"by,omitempty"` // the entry that took its place; of an active one, that which is shown for it (member)
	Pinned bool   `json:"pinned,omitempty"`

	Event        string `json:"event,omitempty"`        // the message it was learned from
	Quote        string `json:"quote,omitempty"`        // its words there
	Ref          string `json:"ref,omitempty"`          // what an import called it
	Conversation string `json:"conversation,omitempty"` // entries of one conversation are neighbours,
	Seq          int    `json:"seq,omitempty"`          // in this order

	ObservedAt time.Time `json:"observed_at"` // when it was said
	ValidFrom  time.Time `json:"valid_from,omitzero"`
	ValidTo    time.Time `json:"valid_to,omitzero"`

	Record
}

// Record is what the store notes of an entry by itself.
type Record struct {
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Hits      int       `json:"hits,omitempty"` // answers that used it
	LastHit   time.Time `json:"last_hit,omitzero"`
	Rev       int       `json:"rev"` // grows with every change
}

// Kind is what sort of thing an entry says.
type Kind string

// The kinds of entries.
const (
	Fact       Kind = "fact"
	Preference Kind = "preference"
	Happening  Kind = "event"
	Insight    Kind = "insight" // concluded by dreaming, never said
)

// Source is who wrote an entry.
type Source string

// The sources of entries.
const (
	UserExplicit  Source = "user_explicit"  // a person asked to remember it
	Assistant     Source = "assistant"      // the model noted it while it answered
	Harvest       Source = "harvest"        // read out of a conversation afterwards
	DreamingMerge Source = "dreaming_merge" // others were put together in it; see origin
	FromFile      Source = "file"           // a person wrote it into a memory file
	Imported      Source = "import"
)

// State says whether an entry still counts.
type State string

// The states of entries. Only Active ones are in prompts and in files.
const (
	Active     State = "active"
	Merged     State = "merged"     // another entry says it too
	Superseded State = "superseded" // another entry corrects it
	Archived   State = "archived"   // put away; can still be searched for
	Forgotten  State = "forgotten"  // its text is gone
)

const entryColumns = `id, scope, text, subject, kind, source, state, successor, pinned, event, quote, ref, conversation, seq,
	observed_at, valid_from, valid_to, created_at, updated_at, hits, last_hit, rev, integrity`

// scanEntry reads a row of entryColumns, and what more there is.
func scanEntry(row store.Row, more ...any) (Entry, error) {
	var e Entry
	var observed, created, updated int64
	var from, to, hit sql.NullInt64
	err := row.Scan(append([]any{&e.ID, &e.Scope, &e.Text, &e.Subject, &e.Kind, &e.Source, &e.State, &e.By, &e.Pinned, &e.Event, &e.Quote,
		&e.Ref, &e.Conversation, &e.Seq, &observed, &from, &to, &created, &updated, &e.Hits, &hit, &e.Rev, &e.Integrity}, more...)...)
	if err != nil {
		return Entry{}, err
	}
	e.ObservedAt, e.CreatedAt, e.UpdatedAt = fromMilli(observed), fromMilli(created), fromMilli(updated)
	e.ValidFrom, e.ValidTo, e.LastHit = optional(from), optional(to), optional(hit)
	return e, nil
}

func fromMilli(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func optional(ms sql.NullInt64) time.Time {
	if !ms.Valid {
		return time.Time{}
	}
	return fromMilli(ms.Int64)
}

func milli(t time.Time) sql.NullInt64 { return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()} }

// insertEntry stores e as a new row, with the operation that says so, and
// returns its number, by which the indexes know it. It must be complete: checked text, ID, times, Rev 1.
func insertEntry(ctx context.Context, tx store.DBTX, e Entry, actor, batch string) (n int64, err error) {
	row := []any{e.ID, e.Scope, e.Text, e.Subject, e.Kind, e.Source, e.State, e.By, e.Pinned, e.Event, e.Quote, e.Ref,
		e.Conversation, e.Seq, e.ObservedAt.UnixMilli(), milli(e.ValidFrom), milli(e.ValidTo),
		e.CreatedAt.UnixMilli(), e.UpdatedAt.UnixMilli(), e.Hits, milli(e.LastHit), e.Rev, e.Integrity, text.Hash(e.Text)}
	insert := `INSERT OR FAIL INTO memory (` + entryColumns + `, hash) VALUES (` + strings.Repeat("?, ", len(row)-1) + `?)`
	result, err := tx.ExecContext(ctx, insert, row...)
	if err == nil {
		n, err = result.LastInsertId()
	}
	if err != nil {
		return 0, fmt.Errorf("store a memory: %w", err)
	}
	return n, journal(ctx, tx, Op{Batch: batch, At: e.CreatedAt, Actor: actor, Op: "add", Entry: e.ID, After: &e})
}

// newID names a new entry; newBatch names what is done together.
func newID() string { return "mem_" + strings.ToLower(rand.Text()[:12]) }

func newBatch() string { return strings.ToLower(rand.Text()[:12]) }
