package matrix

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"maunium.net/go/mautrix/crypto"
	goolm "maunium.net/go/mautrix/crypto/goolm/account"
	"maunium.net/go/mautrix/id"

	"reverie/internal/matrix/account"
	"reverie/internal/matrix/doctor"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/pace"
	"reverie/internal/test/expect"
)

// ReadMessage fetches an event from the homeserver and decrypts it with the keys in the crypto store.
func (c *Client) ReadMessage(ctx context.Context, room, event string) (string, error) {
	evt, err := c.cli.GetEvent(ctx, id.RoomID(room), id.EventID(event))
	if err != nil {
		return "", err
	}
	evt.RoomID = id.RoomID(room)
	if err := evt.Content.ParseRaw(evt.Type); err != nil {
		return "", err
	}
	plain, err := c.acc.Crypto.Decrypt(ctx, evt)
	if err != nil {
		return "", err
	}
	return plain.Content.AsMessage().Body, nil
}

// KeptSecrets returns the secrets of the identity in the crypto store of cfg.DB.
func KeptSecrets(ctx context.Context, cfg Config) (string, error) {
	kept, err := e2ee.OpenStore(ctx, cfg.DB, cfg.matrixPath(""))
	if err != nil {
		return "", err
	}
	return kept.GetSecret(ctx, "reverie")
}

// KeepSecrets replaces them.
func KeepSecrets(ctx context.Context, cfg Config, data string) error {
	kept, err := e2ee.OpenStore(ctx, cfg.DB, cfg.matrixPath(""))
	if err != nil {
		return err
	}
	return kept.PutSecret(ctx, "reverie", data)
}

// Trusts reports whether the bot has verified user.
func (c *Client) Trusts(ctx context.Context, user string) (bool, error) {
	return c.olmMachine().IsUserTrusted(ctx, id.UserID(user))
}

// Verifications returns the transaction IDs of the open verifications.
func (c *Client) Verifications() []string { return c.verifier.Open() }

// Clock sets the clock of clients of this configuration.
func (cfg *Config) Clock(now func() time.Time) { cfg.now = now }

// PollQuickly shortens the polls of clients of this configuration and nothing else.
func (cfg *Config) PollQuickly() {
	p := defaultTimings
	p.poll, p.slack = 300*time.Millisecond, 300*time.Millisecond
	cfg.timings = &p
}

// Look makes the client check at once what is due by its clock.
func (c *Client) Look() {
	pace.Wake(c.keys.wake)
	pace.Wake(c.outWake)
}

// OneTimeKeys returns the public parts of the stored one-time keys.
func (c *Client) OneTimeKeys(ctx context.Context) (map[string]bool, error) {
	k := c.acc.Store
	acc, err := (&crypto.SQLCryptoStore{DB: k.DB, AccountID: k.AccountID, PickleKey: k.PickleKey}).GetAccount(ctx)
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for _, key := range acc.Internal.(*goolm.Account).OTKeys {
		keys[string(key.Key.PublicKey)] = true
	}
	return keys, nil
}

// Check returns the doctor's findings about the account.
func Check(ctx context.Context, cfg Config) []doctor.Finding {
	return doctor.Check(ctx, cfg.doctorConfig(), &doctor.Status{})
}

// Hurry shortens all delays of clients of this configuration.
func (cfg *Config) Hurry() {
	cfg.timings = &timings{poll: 300 * time.Millisecond, slack: 2 * time.Second, askKey: 20 * time.Millisecond, keyWait: 300 * time.Millisecond, retry: 10 * time.Millisecond, echo: 20 * time.Millisecond, restart: 200 * time.Millisecond, refuse: 10 * time.Millisecond}
}

// FetchWithin limits the time for the files of a message. Call it after Hurry.
func (cfg *Config) FetchWithin(d time.Duration) { cfg.timings.fetch = d }

// MaxPending limits the messages of a room that are delivered and not handled.
const MaxPending = maxPending

// MaxGap limits the missed events that are fetched.
const MaxGap = maxGap

// A typing notice is sent if an answer takes longer than a moment, refreshed before it times out, and ended once at the end.
// Holds F46.
func TestTypingIsRefreshed(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Typing  bool  `json:"typing"`
			Timeout int64 `json:"timeout"`
		}
		expect.OK(t, json.NewDecoder(r.Body).Decode(&q))
		line := "off"
		if q.Typing {
			line = (time.Duration(q.Timeout) * time.Millisecond).String()
		}
		got = append(got, strings.Split(r.URL.Path, "/")[5]+" "+line)
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	now := time.Unix(1_000_000, 0)
	cfg := Config{Homeserver: server.URL, User: "@reverie:example.org", Owners: []string{"@a:b"}}
	cfg = cfg.withDefaults()
	cli := expect.Must(account.NewClient(cfg.accountConfig()))(t)
	c := newTypingNotices(cli, cfg.Log, func() time.Time { return now })
	show := func(after time.Duration, end bool, want ...string) {
		t.Helper()
		now, got = now.Add(after), nil
		next := c.sendDueNotices(t.Context(), end)
		expect.NoDiff(t, got, want, "after %s", after)
		if !end && len(c.rooms) > 0 && next.Sub(now) > 25*time.Second {
			t.Errorf("looks again only after %s: the notice has run out by then", next.Sub(now))
		}
	}
	c.setRoomTyping("!a", true)
	show(typingAfter/2, false)
	c.setRoomTyping("!a", false) // answered at once
	show(typingAfter, false)
	c.setRoomTyping("!a", true)
	show(0, false)
	show(typingAfter, false, "!a 30s")
	show(10*time.Second, false)
	show(11*time.Second, false, "!a 30s")
	show(21*time.Second, false, "!a 30s")
	c.setRoomTyping("!a", false)
	show(time.Second, false, "!a off")
	show(time.Hour, false)
	c.setRoomTyping("!a", true)
	show(typingAfter, false, "!a 30s")
	show(0, true, "!a off") // the end of the program
}
