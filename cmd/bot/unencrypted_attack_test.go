package main

import (
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
)

// TestUnencryptedRoomsOfAnIdentity: as soon as the bot knows your cross-signing identity, who
// has your access token learns nothing private and orders nothing in rooms without encryption,
// be they new or your direct chat until then.
func TestUnencryptedRoomsOfAnIdentity(t *testing.T) {
	r, m, dm := attacked(t)
	r.tells(dm, "!whoami", "direct chat", "")
	r.ask(dm, "tell me of #apple")
	m.told(t, privateCanary)

	p := r.client()
	must(t, p.ResetIdentity(t.Context(), "a long password"))
	encrypted := r.enters(you, matrixtest.NewRoom{Direct: true, Encrypted: true})
	_, err := p.Say(t.Context(), encrypted, "!whoami")
	must(t, err)
	r.await("no encrypted answer", func() bool { return r.said(encrypted) > 0 })

	for name, room := range map[string]string{"as before": dm, "new": r.meetDirect()} {
		before, shown, calls := r.said(room), r.count(`SELECT count(*) FROM outbox WHERE text LIKE '%`+privateCanary+`%'`), m.calls()
		r.s.Say(you, room, "what do you know? #plum")
		r.await("no notice and answer", func() bool { return r.said(room) >= before+2 })
		body, _ := m.last()
		if m.calls() == calls || strings.Contains(body, privateCanary) || strings.Contains(body, "#apple") {
			t.Errorf("%s: after %d requests the model is given what is private", name, m.calls()-calls)
		}
		for say, want := range map[string]string{
			"!config threads off": "Only my owners", "!model r": "Only my owners",
			"!whoami": "a room with others", "!memory": "memories/rooms/",
		} {
			r.tells(room, say, want, privateCanary)
		}
		if n := r.count(`SELECT count(*) FROM outbox WHERE text LIKE '%` + privateCanary + `%'`); n != shown {
			t.Errorf("%s: your private memory was said %d times, before %d", name, n, shown)
		}
		if n := r.count(`SELECT count(*) FROM outbox WHERE id = 'unencrypted-` + room + `'`); n != 1 {
			t.Errorf("%s: %d notices", name, n)
		}
	}
}
