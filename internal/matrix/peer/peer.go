// Package peer is a person's encrypted Matrix client: the other side of the
// conversation in `make try` and in the end-to-end tests.
//
// It holds the promises a good client holds: nothing leaves in the clear into
// an encrypted room, and nothing is encrypted before it is known for whom. It
// sets up no cross-signing: that needs a recovery key which somebody keeps, and
// the next client of the same person can do it properly.
package peer

import (
	"context"
	"database/sql"
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

// pickleKey wraps the keys inside the database. It is no secret, because a
// secret one would lie right beside the database, which is for its owner only.
const pickleKey = "reverie peer"

// Config says who to be, and where.
type Config struct {
	Homeserver string       // its base URL
	User       string       // "@you:server" or "you"
	Password   string       // needed when DB has no session that still holds
	DB         string       // path of the SQLite file (0600); made when missing. The same file again is the same device
	Log        *slog.Logger // warnings of the Matrix library; nil = silent

	HTTP http.RoundTripper // carries the requests; nil = http.DefaultTransport
}

// Peer is one logged-in device. All methods may be called from any goroutine.
// Run must be running for anything to arrive, and before anything is sent.
type Peer struct {
	client *mautrix.Client
	crypto *cryptohelper.CryptoHelper
	db     *sql.DB
	log    *slog.Logger
	events chan Event

	verifier *verifier // nil until EnableVerification

	sending sync.Mutex // one message at a time, so that they arrive in order

	mu      sync.Mutex
	known   map[id.RoomID]bool        // rooms whose full state was fetched
	typing  map[id.RoomID][]id.UserID // who is writing, to see who started and stopped
	changed chan struct{}             // closed and replaced after every sync
	dropped int                       // events nobody took in time

	synced     chan struct{} // closed after the first sync
	syncedOnce sync.Once
}

// Login opens the database, takes up its session or makes a new one with the
// password, and uploads the device's keys. The caller runs Run, and calls Close
// after Run has returned.
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
		events: make(chan Event, eventBuffer),
		known:  map[id.RoomID]bool{}, typing: map[id.RoomID][]id.UserID{},
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
	wrapped, err := dbutil.NewWithDB(p.db, "sqlite")
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
		// With a device id in the database this is the same device with a new token.
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

// resume takes up the stored session and tells whether the server still knows it.
func (p *Peer) resume(ctx context.Context) (bool, error) {
	row := p.db.QueryRowContext(ctx, `SELECT user_id, device_id, token FROM peer_session`)
	err := row.Scan(&p.client.UserID, &p.client.DeviceID, &p.client.AccessToken)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read session: %w", err)
	}
	_, err = p.client.Whoami(ctx)
	if errors.Is(err, mautrix.MUnknownToken) {
		p.client.UserID, p.client.DeviceID, p.client.AccessToken = "", "", ""
		return false, nil
	}
	return err == nil, err
}

// UserID is who this peer is: "@you:server".
func (p *Peer) UserID() string { return p.client.UserID.String() }

// Run receives until ctx ends, which is no error. It goes on through failures of
// the homeserver, trying again every half second. A session that the server has
// ended is an error.
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

// Close closes the database. The session stays: the next Login with the same
// file takes it up.
func (p *Peer) Close() error { return p.crypto.Close() }

// register wires the handlers; the crypto helper has put its own in front.
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

// syncer tells when a sync response has been worked through, and is patient with
// a homeserver that is down.
type syncer struct {
	*mautrix.DefaultSyncer
	after func()
}

// ProcessResponse hands the response to the handlers.
func (s *syncer) ProcessResponse(ctx context.Context, res *mautrix.RespSync, since string) error {
	err := s.DefaultSyncer.ProcessResponse(ctx, res, since)
	s.after()
	return err
}

// OnFailedSync says how long to wait before the next try.
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

// untilSynced waits for the first sync: before it, the lists of devices are out of date.
func (p *Peer) untilSynced(ctx context.Context) error {
	select {
	case <-p.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the first sync: %w", context.Cause(ctx))
	}
}
