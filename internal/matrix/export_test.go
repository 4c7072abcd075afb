package matrix

import (
	"context"
	"time"

	"maunium.net/go/mautrix/crypto"
	goolm "maunium.net/go/mautrix/crypto/goolm/account"
	"maunium.net/go/mautrix/id"
)

// ReadMessage fetches an event from the homeserver and decrypts it with what the
// crypto store holds.
func (c *Client) ReadMessage(ctx context.Context, room, event string) (string, error) {
	evt, err := c.cli.GetEvent(ctx, id.RoomID(room), id.EventID(event))
	if err != nil {
		return "", err
	}
	evt.RoomID = id.RoomID(room)
	if err := evt.Content.ParseRaw(evt.Type); err != nil {
		return "", err
	}
	plain, err := c.crypto.Decrypt(ctx, evt)
	if err != nil {
		return "", err
	}
	return plain.Content.AsMessage().Body, nil
}

// KeptSecrets are the secrets of the identity as the crypto store in cfg.DB has them.
func KeptSecrets(ctx context.Context, cfg Config) (string, error) {
	kept, err := secretStore(ctx, cfg)
	if err != nil {
		return "", err
	}
	return kept.GetSecret(ctx, secretsName)
}

// KeepSecrets replaces them.
func KeepSecrets(ctx context.Context, cfg Config, data string) error {
	kept, err := secretStore(ctx, cfg)
	if err != nil {
		return err
	}
	return kept.PutSecret(ctx, secretsName, data)
}

// Trusts tells whether the bot has verified user.
func (c *Client) Trusts(ctx context.Context, user string) (bool, error) {
	return c.machine().IsUserTrusted(ctx, id.UserID(user))
}

// Verifications are the ids of those that are open.
func (c *Client) Verifications() (txns []string) {
	c.verifier.mu.Lock()
	defer c.verifier.mu.Unlock()
	for txn := range c.verifier.open {
		txns = append(txns, txn.String())
	}
	return txns
}

// Clock makes a client of this configuration believe that it is so late.
func (cfg *Config) Clock(now func() time.Time) { cfg.now = now }

// PollQuickly lets no poll of a client of this configuration take long, while it
// is as patient as ever with everything else.
func (cfg *Config) PollQuickly() {
	p := normalPace
	p.poll, p.slack = 300*time.Millisecond, 300*time.Millisecond
	cfg.pace = &p
}

// Look makes the client look at once at what is due by its clock.
func (c *Client) Look() {
	poke(c.unreadWake)
	poke(c.outWake)
}

// OneTimeKeys are the public parts of those that are stored.
func (c *Client) OneTimeKeys(ctx context.Context) (map[string]bool, error) {
	k := c.machine().CryptoStore.(*keyStore)
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

// Check is what the doctor finds about the account.
func Check(ctx context.Context, cfg Config) []Finding { return check(ctx, cfg, &Status{}) }

// Hurry makes a client of this configuration wait for little.
func (cfg *Config) Hurry() {
	cfg.pace = &pace{poll: 300 * time.Millisecond, slack: 2 * time.Second, askKey: 20 * time.Millisecond, keyWait: 300 * time.Millisecond, again: 10 * time.Millisecond, echo: 20 * time.Millisecond, restart: 200 * time.Millisecond, refuse: 10 * time.Millisecond}
}

// FetchWithin bounds how long the files of a message may take; after Hurry.
func (cfg *Config) FetchWithin(d time.Duration) { cfg.pace.fetch = d }

// AtOnce is how many messages of a room are handed over before one is handled.
const AtOnce = atOnce

// GapEvents is how many missed events are fetched.
const GapEvents = gapEvents
