package delivery

import (
	"crypto/sha256"
	"encoding/hex"

	"reverie/internal/chat"
)

// Poll is a question with its options, as a row of the outbox has it in JSON.
type Poll struct {
	Question string        `json:"question"`
	Options  []chat.Option `json:"options"`
}

// AnswerID names an option of a message in events. The homeserver can point an encrypted
// vote at another poll, because relations are not encrypted; so no two polls share such an id.
func AnswerID(message, option string) string {
	sum := sha256.Sum256([]byte(message))
	return option + "-" + hex.EncodeToString(sum[:8])
}
