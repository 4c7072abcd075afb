package history

import (
	"strings"

	"reverie/internal/trust"
)

// Readers is who may read m. The header names the sender in rooms of several people only.
func (m Message) Readers() trust.Readers {
	return trust.Place{Room: m.Room.Room(), Person: m.Sender, Private: !strings.Contains(m.Header, ",")}.Readers()
}
