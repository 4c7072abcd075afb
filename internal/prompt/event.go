package prompt

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/history"
	"reverie/internal/store"
)

// Event is something that made a room's prompt anew.
type Event struct {
	Room   string    `json:"room"`
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"`   // conversation, prompt, mode, skills, tools, memory, history, day
	Detail string    `json:"detail"` // why, in words
}

// keptEvents is how many events are kept, of all rooms together.
const keptEvents = 1000

// Events returns the newest events of a room, the newest first; "" is all rooms.
func (a *Assembler) Events(ctx context.Context, room string, most int) ([]Event, error) {
	out, err := store.List(ctx, a.cfg.DB, func(row store.Row) (e Event, err error) {
		var at int64
		err = row.Scan(&e.Room, &at, &e.Kind, &e.Detail)
		e.At = time.UnixMilli(at).In(a.cfg.Location)
		return e, err
	}, `SELECT room, at, kind, detail FROM prompt_event WHERE ? IN ('', room) ORDER BY id DESC LIMIT ?`, room, most)
	if err != nil {
		return nil, fmt.Errorf("prompt: read events: %w", err)
	}
	return out, nil
}

// saveEvent keeps why the epoch e began.
func saveEvent(ctx context.Context, tx *sql.Tx, room history.Talk, e *epoch) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO prompt_event (room, at, kind, detail) VALUES (?, ?, ?, ?)`,
		room, e.started.UnixMilli(), kindOf(e.reason), e.reason)
	if err == nil {
		_, err = tx.ExecContext(ctx, `DELETE FROM prompt_event WHERE id <= (SELECT max(id) FROM prompt_event) - ?`, keptEvents)
	}
	if err != nil {
		return fmt.Errorf("prompt: save event: %w", err)
	}
	return nil
}

// kindOf sorts the reason of an epoch.
func kindOf(reason string) string {
	switch names := strings.Split(strings.TrimSuffix(reason, " changed"), ", "); {
	case reason == newConversation:
		return "conversation"
	case reason == outgrown, slices.Contains(names, "compaction"):
		return "history"
	case reason == newDay:
		return "day"
	case strings.HasPrefix(reason, "memories "):
		return "memory"
	case slices.Contains(names, "mode"):
		return "mode"
	case slices.Contains(names, "tools"):
		return "tools"
	case slices.Contains(names, "skills"):
		return "skills"
	}
	return "prompt"
}
