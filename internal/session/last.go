package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"reverie/internal/chat"
)

// lastWritten is the chat.Rooms of a program without a connection: a room is as it was when
// somebody last wrote in it.
type lastWritten struct {
	chat.OneRoom // of nobody
	db           *sql.DB
}

// in is who wrote in room last, and whether it was a direct chat then; false if nobody has.
func (l lastWritten) in(ctx context.Context, room string) (in chat.Head, known bool, err error) {
	in.Room = room
	err = l.db.QueryRowContext(ctx, `SELECT person, private FROM session WHERE room = ?`, room).Scan(&in.Sender, &in.Private)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return in, false, fmt.Errorf("session: read room: %w", err)
	}
	return in, err == nil, nil
}

func (l lastWritten) DirectWith(ctx context.Context, room string) (string, error) {
	last, _, err := l.in(ctx, room)
	if !last.Private {
		return "", err
	}
	return last.Sender, err
}

// People implements chat.Rooms: nobody knows.
func (l lastWritten) People(context.Context, string) (int, error) { return 0, nil }
