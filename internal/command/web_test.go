package command

import (
	"testing"

	"reverie/internal/chat"
	"reverie/internal/memory"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// TestInspectorLink: only an owner gets the link, for themselves, and only where nobody else reads it.
func TestInspectorLink(t *testing.T) {
	asked := ""
	inspector := func(person string) string { asked += person; return "http://127.0.0.1:8090/login#abc" }
	for _, c := range []struct {
		level   trust.Integrity
		private bool
		off     bool
		want    string
	}{
		{trust.Owner, true, false, "This link opens the inspector. It works once, within five minutes:\n\nhttp://127.0.0.1:8090/login#abc"},
		{trust.Owner, false, false, "I give this link only in a direct chat, where nobody else can read it."},
		{trust.User, true, false, "Only my owners can open the inspector."}, // also an owner whose device is not proven
		{trust.Guest, false, false, "Only my owners can open the inspector."},
		{trust.Owner, true, true, "The inspector is turned off. `web.listen` in the configuration turns it on."},
	} {
		call := &Call{Config: &Config{Inspector: inspector}, Access: memory.Access{Integrity: c.level, Owner: true},
			In: chat.Message{Head: chat.Head{Sender: "@ada:example.org", Private: c.private}}}
		if c.off {
			call.Inspector = nil
		}
		expect.Equal(t, expect.Must(Run(t.Context(), call, "web", ""))(t), c.want)
	}
	expect.Equal(t, asked, "@ada:example.org")
}
