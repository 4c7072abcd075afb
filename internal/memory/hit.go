package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"reverie/internal/search"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Query and Turn are the query and the past message of package search.
type (
	Query = search.Query
	Turn  = search.Turn
)

// Hit is a search result with its entry.
type Hit struct {
	Entry Entry   `json:"entry,omitzero"`  // zero for a past message
	Shown string  `json:"shown,omitempty"` // the text of Entry's head, which prompts and files show; empty = Entry itself
	Head  int64   `json:"-"`               // the number of its head; 0 = none
	Until []Entry `json:"until,omitempty"` // what held before Entry updated it, the newest; none if a person corrected it by hand
	// Against is an entry that contradicts Entry, while no person has decided; at most one.
	Against []Entry `json:"against,omitempty"`
	search.Hit
}

// Search finds q with find, the Search of an index in db, and loads the entries of the hits. It drops entries deleted in
// the meantime and duplicates of a better hit, and returns as many hits as q has places for.
func Search(ctx context.Context, db *store.DB, find func(context.Context, Query) ([]search.Hit, error), q Query) ([]Hit, error) {
	found, err := find(ctx, q)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	docs := store.Map(found, func(h search.Hit) int64 { return h.Doc })
	old := map[string][]Entry{}
	against := map[int64]int64{}
	err = store.Each(ctx, db, func(row store.Row) error {
		var n, other int64
		err := row.Scan(&n, &other)
		against[n] = other
		docs = append(docs, other)
		return err
	}, contradictions, store.Array(docs))
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	byNumber := map[int64]Hit{}
	err = store.Each(ctx, db, func(row store.Row) (err error) {
		var h Hit
		h.Entry, err = scanEntry(row, &h.Head, &h.Shown)
		byNumber[h.Entry.N] = h
		return err
	}, `SELECT `+entryColumns+`, coalesce((SELECT n `+fromHead+`), 0), coalesce((SELECT text `+fromHead+`), '')
		FROM memory WHERE n IN (SELECT value FROM json_each(?)) AND state <> 'forgotten'`, store.Array(docs))
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	err = store.Each(ctx, db, func(row store.Row) error {
		e, err := scanEntry(row)
		old[e.By] = append(old[e.By], e)
		return err
	}, updatedBy, store.Array(docs))
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	hits := make([]Hit, 0, len(found))
	for _, f := range found {
		h, there := byNumber[f.Doc]
		if before := old[h.Entry.ID]; len(before) > 0 {
			h.Until = before[:1]
		}
		if other, ok := byNumber[against[f.Doc]]; ok {
			h.Against = []Entry{other.Entry}
		}
		if h.Hit = f; there || f.Turn != nil {
			hits = append(hits, h)
		}
	}
	hasPlace := q.Places(0)
	return slices.DeleteFunc(dedupe(hits), func(h Hit) bool { return !hasPlace(h.Turn == nil, h.Seen) }), nil
}

// updatedBy selects the entries that the active entries ?1 superseded, the newest first.
const updatedBy = `SELECT ` + entryColumns + ` FROM memory WHERE state = 'superseded' AND text <> '' AND n IN (
	SELECT was.n FROM json_each(?) AS j CROSS JOIN memory AS now ON now.n = j.value AND now.state = 'active' AND now.source <> 'file'
	CROSS JOIN memory AS was ON was.successor = now.id AND was.successor <> '' AND was.scope = now.scope) ORDER BY observed_at DESC, n DESC`

// contradictions selects the numbers of the entries ?1 that another contradicts, and its number.
const contradictions = `SELECT m.n, o.n FROM json_each(?) AS j CROSS JOIN memory AS m ON m.n = j.value
	CROSS JOIN contradiction AS c ON c.id = m.id CROSS JOIN memory AS o ON o.id = c.other AND o.scope = m.scope
	WHERE m.state = 'active' AND o.state = 'active'`

// Integrity is the lowest integrity of what Line shows of h.
func (h Hit) Integrity() trust.Integrity {
	if h.Turn != nil {
		return h.Hit.Integrity()
	}
	least := h.Entry.Integrity
	for _, e := range slices.Concat(h.Until, h.Against) {
		least = min(least, e.Integrity)
	}
	return least
}

// Text is the text of the entry or message that was found.
func (h Hit) Text() string {
	if h.Turn != nil {
		return h.Turn.Text
	}
	return h.Entry.Text
}

// Line formats h for a model: date and origin, then the text. See search.Hit.Line.
func (h Hit) Line(zone *time.Location, shown func(Turn) bool) string {
	if h.Turn != nil {
		return h.Hit.Line(zone, shown)
	}
	line := "- " + search.Day(h.Entry.ObservedAt, zone) + ", " + h.Entry.Origin() + ": " + h.Entry.Text
	for _, e := range h.Until {
		line += " (before that, " + search.Day(e.ObservedAt, zone) + ": " + e.Text + ")"
	}
	for _, e := range h.Against {
		line += " (against that, " + search.Day(e.ObservedAt, zone) + ": " + e.Text + ")"
	}
	return line
}

// dedupe removes hits that mean the same as a better one.
func dedupe(hits []Hit) []Hit {
	said := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(hits), func(h Hit) bool {
		same := h.Entry.ID
		if h.Shown != "" {
			same = h.Entry.By
		}
		was := said[same]
		said[same] = same != ""
		return was
	})
}

// Origin describes in a few words how e was learned.
func (e Entry) Origin() string {
	by := map[Source]string{
		UserExplicit: "remembered on request", Assistant: "noted by you", Harvest: "from a conversation",
		DreamingMerge: "put together", FromFile: "from a memory file", Imported: "imported",
	}[e.Source]
	if e.Subject != "" {
		by = e.Subject + ", " + by
	}
	return by
}
