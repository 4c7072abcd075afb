package matrix

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/event"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/delivery"
	"reverie/internal/i18n"
	"reverie/internal/matrix/account"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/gate"
	"reverie/internal/matrix/verification"
	"reverie/internal/media"
	"reverie/internal/settings"
)

// flushTime is how long Run goes on sending after its context ended.
const flushTime = 5 * time.Second

// Config is one bot account. Password or Token is needed until the account is
// known in Dir; afterwards a password still lets the bot log in again by itself.
type Config struct {
	Homeserver string // base URL, as in https://matrix.example.org
	User       string // @bot:example.org, or only the part before the colon
	Password   string
	Token      string // an access token instead of a password
	DeviceName string // how the bot's device is called in other clients; empty = Reverie
	Dir        string // data folder; secrets are kept in Dir/matrix, readable by the owner only
	Owners     []string
	Allow      []string        // who else may talk: @user:server or *:server; empty = owners only
	Bots       []string        // programs, which are answered only if Allow or Owners name them one by one
	Devices    e2ee.DeviceRule // whose devices must be signed; empty = DevicesOwners
	DB         *sql.DB         // bot.db, already migrated; the caller closes it after Run
	Media      *media.Store    // where files are kept
	MaxFile    int64           // bytes of a file that is fetched or sent; 0 = 20 MB
	Log        *slog.Logger
	Location   *time.Location    // for times that people read; nil = the machine's
	HTTP       http.RoundTripper // carries the requests; nil = http.DefaultTransport

	// Text is a sentence of session.Messages in the language of room; nil = in English.
	Text func(ctx context.Context, room, key string, fill ...string) string

	pace *pace            // for tests
	now  func() time.Time // for tests
}

// account is the part of the configuration that logging in needs.
func (cfg Config) account() account.Config {
	return account.Config{
		Homeserver: cfg.Homeserver, User: cfg.User, Password: cfg.Password, Token: cfg.Token, DeviceName: cfg.DeviceName,
		Dir: cfg.dir(""), DB: cfg.DB, HTTP: cfg.HTTP, Log: cfg.Log,
	}
}

func (cfg Config) dir(name string) string { return filepath.Join(cfg.Dir, "matrix", name) }

// said is what says sentences in the language of room.
func (c *Client) said(ctx context.Context, room string) i18n.Say {
	return func(key string, fill ...string) string { return c.cfg.Text(ctx, room, key, fill...) }
}

// withDefaults fills in what is empty.
func (cfg Config) withDefaults() Config {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.HTTP == nil {
		cfg.HTTP = http.DefaultTransport
	}
	if cfg.Text == nil {
		cfg.Text = (*settings.Messages)(nil).Text
	}
	if cfg.pace == nil {
		cfg.pace = &normalPace
	}
	if cfg.now == nil {
		cfg.now = time.Now
	}
	cfg.DeviceName, cfg.Devices = cmp.Or(cfg.DeviceName, "Reverie"), cmp.Or(cfg.Devices, e2ee.DevicesOwners)
	cfg.Location, cfg.MaxFile = cmp.Or(cfg.Location, time.Local), cmp.Or(cfg.MaxFile, 20_000_000)
	return cfg
}

// Client is the bot's connection to its homeserver. It implements
// chat.Transport. Its methods may be called from any goroutine; Send works
// before and after Run, and what could not be sent by then is sent at the next
// start.
type Client struct {
	*rooms
	cfg         Config
	cli         *mautrix.Client
	acc         *account.Account
	inbox       *delivery.Inbox
	outbox      *delivery.Outbox
	unconfirmed *unconfirmed
	gate        *gate.Gate

	backup     *e2ee.Backup
	verifier   *verification.Verifier
	typing     *typing
	receipts   *receipts
	sync       *syncState
	keys       *missingKeys
	drafts     *drafts
	redactions *redactions

	ending chan struct{} // closed when the context of Run ends

	inWake, outWake chan struct{}
}

var _ chat.Transport = (*Client)(nil)

// Open logs in, or takes up the device it logged in with before, opens the
// crypto store and makes sure that the device is cross-signed. While the
// homeserver does not answer it keeps trying until ctx ends. Everything else
// that is wrong is an error that says what to do; nothing is ever wiped.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	c := &Client{
		cfg: cfg, sync: &syncState{synced: make(chan struct{})}, keys: newMissingKeys(), drafts: &drafts{all: map[string]*draft{}},
		inWake: make(chan struct{}, 1), outWake: make(chan struct{}, 1), ending: make(chan struct{}),
	}
	c.inbox, c.outbox = delivery.New(cfg.DB, c.cfg.now, command.Retries)
	c.redactions = &redactions{inbox: c.inbox, log: cfg.Log, now: cfg.now, wake: make(chan struct{}, 1)}
	c.unconfirmed = newUnconfirmed(cfg.now, *cfg.pace)
	keys := e2ee.NewStore(e2ee.StoreConfig{DB: cfg.DB, Log: c.cfg.Log, Ending: c.ending, Again: c.cfg.pace.again,
		Problem: c.sync.setProblem})
	login := cfg.account()
	login.Now, login.Store = c.cfg.now, keys
	login.Syncer = func() mautrix.Syncer { return &syncer{DefaultSyncer: mautrix.NewDefaultSyncer(), c: c} }
	login.Devices = e2ee.DevicesConfig{Rule: cfg.Devices, Owners: cfg.Owners, Allows: c.Allowed}
	var err error
	if c.acc, err = account.Open(ctx, login); err != nil {
		return nil, err
	}
	c.cli = c.acc.Client
	c.typing, c.receipts = newTyping(c.cli, c.cfg.Log, c.cfg.now), newReceipts(c.cli, c.cfg.Log)
	c.gate = gate.New(c.cli.UserID.String(), cfg.Owners, cfg.Allow, cfg.Bots...)
	c.rooms = newRooms(cfg.DB, c.acc, c.cfg.Log)
	c.register()
	c.acc.SignDevice(ctx)
	c.acc.Identity.Open(ctx)
	c.backup = e2ee.OpenBackup(ctx, c.acc.Keys(), c.acc.Identity)
	left, err := c.outbox.Unconfirmed(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, r := range left { // an earlier run may have been sending them when it died
		c.unconfirmed.add(r.ID)
	}
	if c.verifier, err = verification.New(ctx, verification.Config{
		Client: c.cli, Machine: c.machine(), Log: c.cfg.Log, Now: c.cfg.now, Text: cfg.Text, Guard: c.guard, Rooms: verifyRooms{c.rooms, c},
	}); err != nil {
		return nil, fmt.Errorf("matrix: open verification: %w", err)
	}
	return c, nil
}

// Handler takes what happens in rooms, while Run runs.
type Handler interface {
	// Deliver gets each message that passed the gate, in order, and again after a restart until
	// Ack is called for it.
	Deliver(ctx context.Context, in chat.Inbound) error
	// RoomReplaced brings along what belongs to the room from when the room to takes its place. It
	// is called when all that was asked in from is answered, and before anything said in to is
	// delivered. It must be repeatable.
	RoomReplaced(ctx context.Context, from, to string) error
	// RoomLeft ends what is worked on for a room that we are no longer in. It returns at once.
	RoomLeft(room string)
	// Redacted forgets a message. It is called again, also after a restart, until it succeeds.
	Redacted(ctx context.Context, event string) error
}

// Run takes messages and sends replies until ctx ends; it then stops taking,
// sends what is due for up to five seconds, and returns nil. Run must be called once.
//
// An error means that going on is pointless, as when the access token is no
// longer valid and there is no password to get a new one.
func (c *Client) Run(ctx context.Context, h Handler) error {
	members := newMemberships(c, h)
	c.on(members.onMember, event.StateMember)
	c.on(members.onTombstone, event.StateTombstone)
	out, stopOut := context.WithCancel(context.WithoutCancel(ctx))
	defer stopOut()
	stopping := make(chan struct{})
	var sender errgroup.Group
	sender.Go(func() error { c.runOutbox(out, stopping); return nil })

	g, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() { close(c.ending) })()
	g.Go(func() error { return c.runSync(ctx) })
	g.Go(func() error { return c.runInbox(ctx, h.Deliver) })
	g.Go(func() error { return c.runUnread(ctx) })
	g.Go(func() error { return members.run(ctx) })
	g.Go(func() error { return c.redactions.run(ctx, h.Redacted) })
	g.Go(func() error { return c.receipts.run(ctx) })
	g.Go(func() error { return c.typing.run(ctx) })
	g.Go(func() error { return c.backup.Run(ctx) })
	g.Go(func() error { return c.verifier.Run(ctx) })
	err := g.Wait()

	close(stopping)
	stop := time.AfterFunc(flushTime, stopOut)
	defer stop.Stop()
	_ = sender.Wait()
	c.machine().Destroy()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Verify is the command !verify: what person asks for or answers in room. The text is for them.
func (c *Client) Verify(ctx context.Context, person, room, args string) (string, error) {
	return c.verifier.Command(ctx, person, room, args), nil
}

// Allowed tells whether user may talk to us.
func (c *Client) Allowed(user string) bool { return c.gate.Allows(user) }

// UserID is the bot's own Matrix id.
func (c *Client) UserID() string { return c.cli.UserID.String() }

// machine is the Olm machine of the account.
func (c *Client) machine() *crypto.OlmMachine { return c.acc.Crypto.Machine() }
