package history

import (
	"context"
	"strings"
	"time"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Filter selects messages, of any conversation. Zero fields select all; an empty list selects none.
type Filter struct {
	IDs     []int64 // sets the order, too
	Rooms   []Timeline
	Readers []trust.Readers
	Before  int64     // with a smaller id
	Since   time.Time // inclusive
	Until   time.Time // inclusive
	People  bool      // written by a person
	Newest  bool      // newest first
	Limit   int       // maximum number; 0 = no limit
}

// Each calls do with each message that f selects. Text is the full text, also of shortened
// messages.
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
		f.Limit = -1 // no limit
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

// EarlierEnds returns the last message of each of at most most earlier conversations of room, the newest first.
func (s *Store) EarlierEnds(ctx context.Context, room Timeline, most int) ([]int64, error) {
	return store.Column[int64](ctx, s.db, `SELECT max(id) FROM message WHERE room = ?1 AND retired = 0 AND conversation <
		(SELECT conversation FROM room WHERE id = ?1) GROUP BY conversation ORDER BY conversation DESC LIMIT ?2`, room, most)
}

// TimelineCount counts the messages of one timeline.
type TimelineCount struct {
	Room     Timeline
	Messages int
	Last     time.Time // time of the last message
}

// CountByTimeline counts the messages ids by timeline, the one with the oldest message first.
func CountByTimeline(ctx context.Context, db store.DBTX, ids []int64) ([]TimelineCount, error) {
	return store.List(ctx, db, func(row store.Row) (s TimelineCount, err error) {
		var at int64
		err = row.Scan(&s.Room, &s.Messages, &at)
		s.Last = time.UnixMilli(at).UTC()
		return s, err
	}, `SELECT room, count(*), max(at) FROM message WHERE id IN (SELECT value FROM json_each(?))
		GROUP BY room ORDER BY min(id)`, store.Array(ids))
}
