package chat

import (
	"context"
	"database/sql"
)

// Transport sends the replies of a session. The matrix client and the terminal of `bot chat`
// implement it.
type Transport interface {
	// Send sets the text of the message m.ID in room. A final message (Draft false) is durable before
	// Send returns; drafts are best effort.
	Send(ctx context.Context, room string, m Outgoing) error
	// SendFinal is Send of the final message m in one transaction with what also stores. The messages
	// done need no more work if the program ends before their Ack.
	SendFinal(ctx context.Context, room string, m Outgoing, done []string, also func(context.Context, *sql.Tx) error) error
	// Redact redacts our message id in room. It is durable when it returns, and repeatable.
	Redact(ctx context.Context, room, id string) error
	// ShowTyping shows or hides the typing notice. Best effort.
	ShowTyping(ctx context.Context, room string, on bool)
	// MessageCancelled reports whether the inbound message id needs no answer any more: it was redacted, or
	// the bot has left its room.
	MessageCancelled(ctx context.Context, id string) (bool, error)
	// Ack records that the inbound message id needs no more work. It is not delivered again after a
	// restart.
	Ack(ctx context.Context, id string) error
}

// Rooms reports the members of rooms. The matrix client and the terminal of `bot chat` implement it.
type Rooms interface {
	// UserID returns the bot's user ID, or "" if only one person can write.
	UserID() string
	// Allowed reports whether user may talk to the bot.
	Allowed(user string) bool
	// People returns the number of joined members of a room, including the bot.
	People(ctx context.Context, room string) (int, error)
	// DirectWith returns the person with whom room is private now, or "".
	DirectWith(ctx context.Context, room string) (person string, err error)
	// DirectChat returns a private direct chat with person, or "".
	DirectChat(ctx context.Context, person string) (room string, err error)
	// Left reports whether the bot has left a room; no work is done for it.
	Left(ctx context.Context, room string) (bool, error)
}
