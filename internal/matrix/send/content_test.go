package send

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/matrix/render"
	"reverie/internal/test/expect"
)

// An event may have 65,536 bytes: encrypted, as an edit, with the fields that servers add.
// Holds F41.
func TestBeginningsFitIntoEvents(t *testing.T) {
	const (
		servers = 3000 // previous events, authorisation, hashes and signatures
		megolm  = 200  // version, index, MAC, signature and padding
	)
	var worst int
	for name, md := range map[string]string{
		"words":   strings.Repeat("word ", 40_000),
		"signs":   strings.Repeat("<&>\"'", 30_000),
		"letters": strings.Repeat("日本語🙂", 20_000),
		"code":    "```\n" + strings.Repeat("if a < b && c > d {\n", 6000) + "```",
		"table":   "|a|b|\n|-|-|\n" + strings.Repeat("|1|2|\n", 20_000),
		"maths":   strings.Repeat("$x^2$ ", 20_000),
	} {
		p := render.Truncate(md, render.MaxSize, "")
		m := &event.MessageEventContent{MsgType: event.MsgText, Body: render.PlainBody(p), Mentions: &event.Mentions{}}
		if html := render.HTML(p); html != "" {
			m.Format, m.FormattedBody = event.FormatHTML, html
		}
		m.RelatesTo = (&event.RelatesTo{}).SetReplyTo(id.EventID("$" + strings.Repeat("e", 43)))
		m.Mentions.Add(id.UserID("@" + strings.Repeat("u", 200) + ":example.org"))
		target := id.EventID("$" + strings.Repeat("e", 43))
		payload := []byte{}
		for _, content := range []any{edit(m, target, false), live(edit(m, target, true))} { // the last edit, and one on the way
			said := expect.Must(json.Marshal(map[string]any{"type": "m.room.message", "room_id": "!" + strings.Repeat("r", 43), "content": content}))(t)
			if len(said) > len(payload) {
				payload = said
			}
		}
		outer, err := json.Marshal(map[string]any{"type": "m.room.encrypted", "sender": "@" + strings.Repeat("u", 253), "room_id": "!" + strings.Repeat("r", 43), "content": map[string]any{
			"algorithm": "m.megolm.v1.aes-sha2", "sender_key": strings.Repeat("k", 43), "session_id": strings.Repeat("s", 43), "device_id": strings.Repeat("d", 20),
			"m.relates_to": m.RelatesTo, "ciphertext": base64.RawStdEncoding.EncodeToString(make([]byte, len(payload)+megolm)),
		}})
		expect.OK(t, err)
		worst = max(worst, len(outer))
		if n := len(outer) + servers; n > 65_536 {
			t.Errorf("the beginning of %s would be an event of %d bytes", name, n)
		}
	}
	if worst < 45_000 {
		t.Errorf("the largest event has %d bytes: beginnings are smaller than they need be", worst)
	}
}
