package memory

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"reverie/internal/search"
	"reverie/internal/search/backend"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// What an index is asked for, and what it finds beside entries.
type (
	Query = search.Query
	Turn  = search.Turn
)

// Hit is something found.
type Hit struct {
	Entry Entry  `json:"entry,omitzero"`  // zero for a past message
	Shown string `json:"shown,omitempty"` // the text that prompts and files show for Entry, if that is another one's
	search.Hit
}

// Search asks index, which is of db, and gives what it finds its entries. One that is gone meanwhile, and what
// means the same as a better hit, is left out, and so is what q has no room for.
func Search(ctx context.Context, db *sql.DB, index backend.Finder, q Query) ([]Hit, error) {
	found, err := index.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	docs := make([]int64, 0, len(found))
	for _, h := range found {
		docs = append(docs, h.Doc)
	}
	at := map[int64]Hit{}
	err = store.Each(ctx, db, func(row store.Row) (err error) {
		var n int64
		var h Hit
		h.Entry, err = scanEntry(row, &n, &h.Shown)
		at[n] = h
		return err
	}, `SELECT `+entryColumns+`, n, iif(state = 'active' AND `+hidden+`, (SELECT text FROM memory AS head
		WHERE head.id = memory.successor), '')
		FROM memory WHERE n IN (SELECT value FROM json_each(?)) AND state <> 'forgotten'`, store.Array(docs))
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	hits := make([]Hit, 0, len(found))
	for _, f := range found {
		h, there := at[f.Doc]
		if h.Hit = f; there || f.Turn != nil {
			hits = append(hits, h)
		}
	}
	hits = eachOnce(hits)
	return hits[:min(len(hits), cmp.Or(q.K, search.DefaultK))], nil
}

// Integrity is the least trusted hand among those of what Line shows of h.
func (h Hit) Integrity() trust.Integrity {
	if h.Turn == nil {
		return h.Entry.Integrity
	}
	return h.Hit.Integrity()
}

// Text is what was found, as a person wrote it.
func (h Hit) Text() string {
	if h.Turn != nil {
		return h.Turn.Text
	}
	return h.Entry.Text
}

// Line is what a model reads of h: when it was said and where it comes from before the text; see search.Hit.
func (h Hit) Line(zone *time.Location, shown func(Turn) bool) string {
	if h.Turn == nil {
		return "- " + search.Day(h.Entry.ObservedAt, zone) + ", " + h.Entry.Origin() + ": " + h.Entry.Text
	}
	return h.Hit.Line(zone, shown)
}

// eachOnce leaves out of hits what means the same as a better one.
func eachOnce(hits []Hit) []Hit {
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

// Origin says in a few words where e comes from.
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
