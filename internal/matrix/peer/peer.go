// Package peer is a person's encrypted Matrix client: the other side of the conversation in
// `make try` and in the end-to-end tests.
//
// It behaves like a good client: it sends no plain text into an encrypted room, and encrypts nothing
// before it knows the recipients. It sets up no cross-signing, which needs a recovery key that the
// person keeps; their next client can do that.
package peer

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"go.mau.fi/util/dbutil"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto/cryptohelper"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/store"
)

//go:embed schema/*.sql
var schema embed.FS

// pickleKey encrypts the keys inside the database. It is not secret: a secret one would be stored
// next to the database, which only its owner can read.
const pickleKey = "reverie peer"

// Config describes the login of a Peer.
type Config struct {
	Homeserver string       // base URL
	User       string       // "@you:server" or "you"
	Password   string       // needed if DB has no valid session
	DB         string       // path of the SQLite file (0600), created if missing; the same file is the same device
	Log        *slog.Logger // warnings of mautrix; nil = silent

	HTTP http.RoundTripper // sends the requests; nil = http.DefaultTransport
}

// Peer is one logged-in device. Its methods are safe for concurrent use. Run must be running to
// receive events and before anything is sent.
type Peer struct {
	client *mautrix.Client
	crypto *cryptohelper.CryptoHelper
	db     *store.DB
	log    *slog.Logger
	events chan Event

	verifier *verifier // nil until EnableVerification

	sending sync.Mutex // held while a message is sent, to keep the order

	mu       sync.Mutex
	complete map[id.RoomID]bool        // rooms whose full state was fetched
	typing   map[id.RoomID][]id.UserID // users who are typing
	changed  chan struct{}             // closed and replaced after every sync
	dropped  int                       // events dropped from a full buffer

	synced     chan struct{} // closed after the first sync
	syncedOnce sync.Once
}

// Login opens the database, resumes its session or logs in with the password, and uploads the
// device keys. The caller calls Run, and Close after Run has returned.
func Login(ctx context.Context, cfg Config) (*Peer, error) {
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	client, err := newClient(cfg, log)
	if err != nil {
		return nil, fmt.Errorf("peer login: %w", err)
	}
	files, err := fs.Sub(schema, "schema")
	if err != nil {
		return nil, fmt.Errorf("peer login: %w", err)
	}
	db, err := store.Open(ctx, cfg.DB, files)
	if err != nil {
		return nil, fmt.Errorf("peer login: %w", err)
	}
	p := &Peer{
		client: client, db: db, log: log,
		events:   make(chan Event, eventBuffer),
		complete: map[id.RoomID]bool{}, typing: map[id.RoomID][]id.UserID{},
		changed: make(chan struct{}), synced: make(chan struct{}),
	}
	if err := p.login(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("peer login as %s on %s: %w", cfg.User, cfg.Homeserver, err), db.Close())
	}
	return p, nil
}

func newClient(cfg Config, log *slog.Logger) (*mautrix.Client, error) {
	client, err := mautrix.NewClient(cfg.Homeserver, "", "")
	if err != nil {
		return nil, fmt.Errorf("homeserver %q: %w", cfg.Homeserver, err)
	}
	client.Log = zerolog.New(logWriter{log}).Level(zerolog.WarnLevel)
	client.Client.Transport = cfg.HTTP
	client.DefaultHTTPRetries = 3
	client.DefaultHTTPBackoff = 500 * time.Millisecond
	return client, nil
}

func (p *Peer) login(ctx context.Context, cfg Config) error {
	wrapped, err := dbutil.NewWithDB(p.db.DB, "sqlite")
	if err != nil {
		return err
	}
	p.crypto, err = cryptohelper.NewCryptoHelper(p.client, []byte(pickleKey), wrapped)
	if err != nil {
		return err
	}
	p.crypto.DecryptErrorCallback = p.onUndecryptable
	if ok, err := p.resume(ctx); err != nil {
		return err
	} else if !ok {
		// With a stored device ID this is the same device with a new token.
		p.crypto.LoginAs = &mautrix.ReqLogin{
			Type:                     mautrix.AuthTypePassword,
			Identifier:               mautrix.UserIdentifier{Type: mautrix.IdentifierTypeUser, User: cfg.User},
			Password:                 cfg.Password,
			InitialDeviceDisplayName: "Reverie terminal",
		}
	}
	if err := p.crypto.Init(ctx); err != nil {
		return err
	}
	p.client.Crypto = p.crypto
	_, err = p.db.ExecContext(ctx,
		`INSERT OR REPLACE INTO peer_session (user_id, device_id, token) VALUES (?, ?, ?)`,
		p.client.UserID, p.client.DeviceID, p.client.AccessToken)
	if err != nil {
		return fmt.Errorf("keep session: %w", err)
	}
	p.register()
	return nil
}

// resume loads the stored session and reports whether the server accepts it.
func (p *Peer) resume(ctx context.Context) (bool, error) {
	row := p.db.QueryRowContext(ctx, `SELECT user_id, device_id, token FROM peer_session`)
	err := row.Scan(&p.client.UserID, &p.client.DeviceID, &p.client.AccessToken)
	if found, err := store.Found(err); !found {
		return false, store.Wrap(err, "read session")
	}
	_, err = p.client.Whoami(ctx)
	if errors.Is(err, mautrix.MUnknownToken) {
		p.client.UserID, p.client.DeviceID, p.client.AccessToken = "", "", ""
		return false, nil
	}
	return err == nil, err
}

// UserID returns the user ID of this peer: "@you:server".
func (p *Peer) UserID() string { return p.client.UserID.String() }

// Run syncs until ctx ends, which is no error. It retries failed syncs every half second. It returns
// an error if the server has ended the session.
func (p *Peer) Run(ctx context.Context) error {
	err := p.client.SyncWithContext(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("peer sync: %w", err)
	}
	return errors.New("peer sync: stopped, because Run was called a second time")
}

// Close closes the database. The session stays: the next Login with the same file resumes it.
func (p *Peer) Close() error { return p.db.Close() }

// register registers the event handlers, after those of the crypto helper.
func (p *Peer) register() {
	inner := p.client.Syncer.(*mautrix.DefaultSyncer)
	inner.FilterJSON = &mautrix.Filter{
		Presence: &mautrix.FilterPart{NotTypes: []event.Type{event.NewEventType("*")}},
		Room:     &mautrix.RoomFilter{Timeline: &mautrix.FilterPart{Limit: 100}},
	}
	inner.OnEventType(event.EventMessage, p.onMessage)
	inner.OnEventType(event.EventUnstablePollStart, p.onPoll)
	inner.OnEventType(event.EventUnstablePollEnd, p.onPollEnd)
	inner.OnEventType(event.StateMember, p.onMember)
	inner.OnEventType(event.EphemeralEventTyping, p.onTyping)
	p.client.Syncer = &syncer{DefaultSyncer: inner, after: p.afterSync}
}

// syncer signals each processed sync and waits for a homeserver that is down.
type syncer struct {
	*mautrix.DefaultSyncer
	after func()
}

// ProcessResponse passes the response to the handlers.
func (s *syncer) ProcessResponse(ctx context.Context, res *mautrix.RespSync, since string) error {
	err := s.DefaultSyncer.ProcessResponse(ctx, res, since)
	s.after()
	return err
}

// OnFailedSync returns the delay before the next try.
func (s *syncer) OnFailedSync(_ *mautrix.RespSync, err error) (time.Duration, error) {
	if errors.Is(err, mautrix.MUnknownToken) {
		return 0, err
	}
	return 500 * time.Millisecond, nil
}

func (p *Peer) afterSync() {
	p.syncedOnce.Do(func() { close(p.synced) })
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
}

// untilSynced waits for the first sync: before it the device lists are outdated.
func (p *Peer) untilSynced(ctx context.Context) error {
	select {
	case <-p.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the first sync: %w", context.Cause(ctx))
	}
}
