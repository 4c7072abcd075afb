package delivery

import (
	"crypto/sha256"
	"encoding/hex"

	"reverie/internal/chat"
)

// Poll is a question with options, stored in the outbox as JSON.
type Poll struct {
	Question string        `json:"question"`
	Options  []chat.Option `json:"options"`
}

// AnswerID is the id of an option in events, unique per message. Relations are not encrypted, so a
// homeserver could redirect an encrypted vote to another poll.
func AnswerID(message, option string) string {
	sum := sha256.Sum256([]byte(message))
	return option + "-" + hex.EncodeToString(sum[:8])
}
