package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"reverie/internal/chat"
)

// offlineRooms is the chat.Rooms of a program without a connection: rooms as of their last message.
type offlineRooms struct {
	chat.OneRoom // without a room
	db           *sql.DB
}

// lastHead returns who wrote in room last, and whether it was a direct chat then; false = no messages.
func (l offlineRooms) lastHead(ctx context.Context, room string) (in chat.Head, known bool, err error) {
	in.Room = room
	err = l.db.QueryRowContext(ctx, `SELECT person, private FROM session WHERE room = ?`, room).Scan(&in.Sender, &in.Private)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return in, false, fmt.Errorf("session: read room: %w", err)
	}
	return in, err == nil, nil
}

func (l offlineRooms) DirectWith(ctx context.Context, room string) (string, error) {
	last, _, err := l.lastHead(ctx, room)
	if !last.Private {
		return "", err
	}
	return last.Sender, err
}

// People implements chat.Rooms; 0 = not known.
func (l offlineRooms) People(context.Context, string) (int, error) { return 0, nil }
