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
	if got := r.ask(dm, "!whoami"); !strings.Contains(got, "direct chat") {
		t.Errorf("without an identity: %q", got)
	}
	r.ask(dm, "tell me of #apple")
	if body, _ := m.last(); !strings.Contains(body, privateCanary) {
		t.Error("without an identity your memory is not used")
	}

	p := r.client()
	if err := p.ResetIdentity(t.Context(), "a long password"); err != nil {
		t.Fatal(err)
	}
	encrypted := r.meet(matrixtest.NewRoom{Direct: true, Encrypted: true, Invite: []string{itself}})
	if _, err := p.Say(t.Context(), encrypted, "!whoami"); err != nil {
		t.Fatal(err)
	}
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
			if got := r.ask(room, say); !strings.Contains(got, want) || strings.Contains(got, privateCanary) {
				t.Errorf("%s: %s is answered %q", name, say, got)
			}
		}
		if n := r.count(`SELECT count(*) FROM outbox WHERE text LIKE '%` + privateCanary + `%'`); n != shown {
			t.Errorf("%s: your private memory was said %d times, before %d", name, n, shown)
		}
		if n := r.count(`SELECT count(*) FROM outbox WHERE id = 'unencrypted-` + room + `'`); n != 1 {
			t.Errorf("%s: %d notices", name, n)
		}
	}
}
