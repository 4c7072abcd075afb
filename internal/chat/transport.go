package chat

import (
	"context"
	"database/sql"
)

// Transport carries replies out of a session. The matrix client and the
// terminal of `bot chat` are its two implementations.
type Transport interface {
	// Send makes the message m.ID in room read m.Text. A final message
	// (Draft false) is durable before Send returns; drafts are best effort.
	Send(ctx context.Context, room string, m Outgoing) error
	// SendFinal is Send of the final message m in one transaction with what also stores: all of it
	// or nothing. The messages done need no more work if the program ends before their Ack.
	SendFinal(ctx context.Context, room string, m Outgoing, done []string, also func(context.Context, *sql.Tx) error) error
	// Redact removes the message id, an Outgoing's, from room for everybody. It is durable when it
	// returns, and may be repeated.
	Redact(ctx context.Context, room, id string) error
	// Typing shows or hides that an answer is being written. Best effort.
	Typing(ctx context.Context, room string, on bool)
	// Cancelled reports whether the inbound message id needs no answer any more: its sender
	// redacted it, or we are no longer in its room.
	Cancelled(ctx context.Context, id string) (bool, error)
	// Ack records that the inbound message id needs no more work, so that it is not delivered
	// again after a restart.
	Ack(ctx context.Context, id string) error
}

// Rooms knows who is in a room. The matrix client and the terminal of `bot chat` are its two
// implementations.
type Rooms interface {
	// UserID is our own id; empty where nobody but one person can write.
	UserID() string
	// Allowed reports whether user may talk to us.
	Allowed(user string) bool
	// People is how many have joined a room, we among them.
	People(ctx context.Context, room string) (int, error)
	// DirectWith is the person with whom a room is private right now; empty when it is not.
	DirectWith(ctx context.Context, room string) (person string, err error)
	// DirectChat is a private direct chat with person; empty when there is none.
	DirectChat(ctx context.Context, person string) (room string, err error)
	// Left reports whether we are no longer in a room: nothing is worked on for it.
	Left(ctx context.Context, room string) (bool, error)
}
