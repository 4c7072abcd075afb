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
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/delivery"
	"reverie/internal/matrix/account"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/gate"
	"reverie/internal/matrix/room"
	"reverie/internal/matrix/send"
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
	*room.Rooms
	*send.Sender
	cfg    Config
	cli    *mautrix.Client
	acc    *account.Account
	inbox  *delivery.Inbox
	outbox *delivery.Outbox
	gate   *gate.Gate

	intake   *intake
	backup   *e2ee.Backup
	verifier *verification.Verifier
	typing   *typing
	receipts sync.Mutex // held while receipts are sent
	sync     *syncState
	keys     *missingKeys

	ending chan struct{} // closed when the context of Run ends

	inWake, outWake, redactWake chan struct{}
}

var _ chat.Transport = (*Client)(nil)

// Open logs in, or takes up the device it logged in with before, opens the
// crypto store and makes sure that the device is cross-signed. While the
// homeserver does not answer it keeps trying until ctx ends. Everything else
// that is wrong is an error that says what to do; nothing is ever wiped.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	c := &Client{
		cfg: cfg, sync: &syncState{synced: make(chan struct{})}, keys: newMissingKeys(),
		inWake: make(chan struct{}, 1), outWake: make(chan struct{}, 1), redactWake: make(chan struct{}, 1),
		ending: make(chan struct{}),
	}
	c.inbox, c.outbox = delivery.New(cfg.DB, c.cfg.now, command.IsRetry)
	keys := e2ee.NewStore(e2ee.StoreConfig{DB: cfg.DB, Log: c.cfg.Log, Ending: c.ending, Again: c.cfg.pace.again,
		Problem: c.sync.setProblem})
	login := cfg.account()
	login.Now, login.Store = c.cfg.now, keys
	login.Syncer = func() mautrix.Syncer { return library{mautrix.NewDefaultSyncer()} }
	login.Devices = e2ee.DevicesConfig{Rule: cfg.Devices, Owners: cfg.Owners, Allows: c.Allowed}
	var err error
	if c.acc, err = account.Open(ctx, login); err != nil {
		return nil, err
	}
	c.cli = c.acc.Client
	c.typing = newTyping(c.cli, c.cfg.Log, c.cfg.now)
	c.gate = gate.New(c.cli.UserID.String(), cfg.Owners, cfg.Allow, cfg.Bots...)
	c.Rooms = room.New(cfg.DB, c.acc, c.cfg.Log)
	c.intake = &intake{cfg: cfg, cli: c.cli, devices: c.acc.Devices, gate: c.gate, rooms: c.Rooms, outbox: c.outbox}
	e2ee.OnSession(c.machine(), c.keys.add)
	c.Sender, err = send.New(ctx, send.Config{
		Client: c.cli, Rooms: c.Rooms, Inbox: c.inbox, Outbox: c.outbox, DB: cfg.DB, Media: cfg.Media, MaxFile: cfg.MaxFile,
		Log: cfg.Log, Now: cfg.now, Text: cfg.Text, Echo: cfg.pace.echo, Restart: cfg.pace.restart,
		Numbers: c.sync.numbers, Hurry: c.sync.hurry, Synced: c.sync.synced, Ending: c.ending, InWake: c.inWake, OutWake: c.outWake,
	})
	if err != nil {
		return nil, err
	}
	c.acc.SignDevice(ctx)
	c.acc.Identity.Open(ctx)
	c.backup = e2ee.OpenBackup(ctx, c.acc.Keys(), c.acc.Identity)
	if c.verifier, err = verification.New(ctx, verification.Config{
		Client: c.cli, Machine: c.machine(), Log: c.cfg.Log, Now: c.cfg.now, Text: cfg.Text, Rooms: c,
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
	members := room.NewMemberships(room.Config{
		Rooms: c.Rooms, Inbox: c.inbox, Outbox: c.outbox, Log: c.cfg.Log, Now: c.cfg.now, Again: c.cfg.pace.again,
		Refuse: c.cfg.pace.refuse, Text: c.cfg.Text, Allows: c.gate.Allows, Tell: c.Tell,
		Cleared: func(room string) { c.DropDrafts(room); c.typing.set(room, false); h.RoomLeft(room) },
		Move:    h.RoomReplaced, InWake: c.inWake, OutWake: c.outWake,
	})
	out, stopOut := context.WithCancel(context.WithoutCancel(ctx))
	defer stopOut()
	stopping := make(chan struct{})
	var sender errgroup.Group
	sender.Go(func() error { c.Sender.Run(out, stopping); return nil })

	g, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() { close(c.ending) })()
	g.Go(func() error { return c.runSync(ctx, members) })
	g.Go(func() error { return c.runInbox(ctx, h.Deliver) })
	g.Go(func() error { return c.runUnread(ctx, members) })
	g.Go(func() error { return members.Run(ctx) })
	g.Go(func() error { return c.runRedactions(ctx, h.Redacted) })
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
