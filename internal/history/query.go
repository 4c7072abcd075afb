package history

import (
	"context"
	"strings"
	"time"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Filter picks messages, whatever became of their conversations since. A zero field picks all,
// an empty list none.
type Filter struct {
	IDs     []int64    // only these, and in this order
	Rooms   []Timeline // only in these
	Readers []trust.Readers
	Before  int64     // with a smaller id than that
	Since   time.Time // said at that time or later
	Until   time.Time // said at that time or before
	People  bool      // said by a person
	Newest  bool      // the newest come first
	Limit   int       // so many of them
}

// Each calls do with each message that f picks. Text is what was said, also of one that the model
// gets in a short form.
func Each(ctx context.Context, db store.DBTX, f Filter, do func(Message) error) error {
	from, order, where, args := `message`, `id`, []string{`TRUE`}, []any{}
	if f.IDs != nil {
		from, order = `(SELECT key AS place, value AS wanted FROM json_each(?)) CROSS JOIN message ON id = wanted`, `place`
		args = append(args, store.Array(f.IDs))
	}
	for _, c := range []struct {
		holds bool
		what  string
		args  []any
	}{
		{f.Rooms != nil, `room IN (SELECT value FROM json_each(?))`, []any{store.Array(f.Rooms)}},
		{f.Readers != nil, `readers IN (SELECT value FROM json_each(?))`, []any{store.Array(f.Readers)}},
		{f.Before != 0, `id < ?`, []any{f.Before}},
		{!f.Since.IsZero(), `at >= ?`, []any{f.Since.UnixMilli()}},
		{!f.Until.IsZero(), `at <= ?`, []any{f.Until.UnixMilli()}},
		{f.People, `role = 'user' AND event_id <> '' AND sender <> ''`, nil},
	} {
		if c.holds {
			where, args = append(where, c.what), append(args, c.args...)
		}
	}
	if f.Newest {
		order += ` DESC`
	}
	if f.Limit == 0 {
		f.Limit = -1 // SQLite's word for all
	}
	err := store.Each(ctx, db, func(row store.Row) error {
		m, err := scanMessage(row)
		if err != nil {
			return err
		}
		return do(m)
	}, `SELECT `+strings.Replace(columns, `iif(short <> '', short, text)`, `text`, 1)+` FROM `+from+
		` WHERE `+strings.Join(where, ` AND `)+` ORDER BY `+order+` LIMIT ?`, append(args, f.Limit)...)
	return store.Wrap(err, "read messages")
}

// Share is what a conversation has of a list of messages.
type TimelineCount struct {
	Room     Timeline
	Messages int
	Last     time.Time // when the last of them was said
}

// Shares counts the messages ids by conversation, the one with the oldest message first.
func CountByTimeline(ctx context.Context, db store.DBTX, ids []int64) ([]TimelineCount, error) {
	all, err := store.List(ctx, db, func(row store.Row) (s TimelineCount, err error) {
		var at int64
		err = row.Scan(&s.Room, &s.Messages, &at)
		s.Last = time.UnixMilli(at).UTC()
		return s, err
	}, `SELECT room, count(*), max(at) FROM message WHERE id IN (SELECT value FROM json_each(?))
		GROUP BY room ORDER BY min(id)`, store.Array(ids))
	return all, store.Wrap(err, "count messages by conversation")
}
