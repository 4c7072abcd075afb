package matrix

import (
	"cmp"
	"context"
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
	"maunium.net/go/mautrix/id"

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
	"reverie/internal/store"
)

// flushTime is how long Run goes on sending after its context ended.
const flushTime = 5 * time.Second

// Config describes one bot account. Password or Token is needed until the account is stored in
// Dir. Afterwards a password still allows a new login when the access token expires.
type Config struct {
	Homeserver string // base URL, as in https://matrix.example.org
	User       string // @bot:example.org, or only the part before the colon
	Password   string
	Token      string // an access token instead of a password
	Name       string // the display name of an account that has none; empty = leave it
	DeviceName string // the display name of the bot's device; empty = Reverie
	Dir        string // data folder; secrets are kept in Dir/matrix, readable by the owner only
	Owners     []string
	Allow      []string        // who else may talk: @user:server or *:server; empty = owners only
	Bots       []string        // bots, answered only if Allow or Owners name them individually
	Devices    e2ee.DeviceRule // whose devices must be signed; empty = DevicesOwners
	DB         *store.DB       // bot.db, already migrated; the caller closes it after Run
	Media      *media.Store    // stores attachments
	MaxFile    int64           // maximum bytes of a file to fetch or send; 0 = 20 MB
	Log        *slog.Logger
	Location   *time.Location    // time zone of times in texts; nil = the machine's
	HTTP       http.RoundTripper // transport of all requests; nil = one like http.DefaultTransport

	// Text returns a message of session.Messages in the language of room; nil = in English.
	Text func(ctx context.Context, room, key string, fill ...string) string

	timings *timings         // for tests
	now     func() time.Time // for tests
}

// accountConfig returns the part of the configuration that a login needs.
func (cfg Config) accountConfig() account.Config {
	return account.Config{
		Homeserver: cfg.Homeserver, User: cfg.User, Password: cfg.Password, Token: cfg.Token, DeviceName: cfg.DeviceName,
		Dir: cfg.matrixPath(""), DB: cfg.DB, HTTP: cfg.HTTP, Log: cfg.Log,
	}
}

func (cfg Config) matrixPath(name string) string { return filepath.Join(cfg.Dir, "matrix", name) }

// withDefaults replaces empty fields by their defaults.
func (cfg Config) withDefaults() Config {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.HTTP == nil {
		usual := http.DefaultTransport.(*http.Transport).Clone()
		usual.MaxIdleConnsPerHost = usual.MaxIdleConns // all are to one homeserver; the usual 2 are fewer than the sends at a time
		cfg.HTTP = usual
	}
	if cfg.Text == nil {
		cfg.Text = (*settings.Messages)(nil).Text
	}
	if cfg.timings == nil {
		cfg.timings = &defaultTimings
	}
	if cfg.now == nil {
		cfg.now = time.Now
	}
	cfg.DeviceName, cfg.Devices = cmp.Or(cfg.DeviceName, "Reverie"), cmp.Or(cfg.Devices, e2ee.DevicesOwners)
	cfg.Location, cfg.MaxFile = cmp.Or(cfg.Location, time.Local), cmp.Or(cfg.MaxFile, 20_000_000)
	return cfg
}

// Client is the bot's connection to its homeserver. It implements chat.Transport. Its methods are
// safe for concurrent use. Send also works before and after Run: outbox rows that are not sent
// yet are sent after the next start.
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
	typing   *typingNotices
	receipts sync.Mutex // held while receipts are sent
	sync     *syncState
	keys     *missingKeys

	ending chan struct{} // closed when the context of Run ends

	inWake, outWake, redactWake chan struct{}
}

var _ chat.Transport = (*Client)(nil)

// Open logs in or reuses the stored device. It opens the crypto store and cross-signs the device.
// While the homeserver does not answer, it retries until ctx ends. Any other failure is an error
// that says what to do. Open never deletes stored data.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	c := &Client{
		cfg: cfg, sync: &syncState{synced: make(chan struct{})},
		keys:   &missingKeys{wake: make(chan struct{}, 1), asked: map[id.SessionID]bool{}, arrived: map[id.SessionID]struct{}{}},
		inWake: make(chan struct{}, 1), outWake: make(chan struct{}, 1), redactWake: make(chan struct{}, 1),
		ending: make(chan struct{}),
	}
	c.inbox, c.outbox = delivery.New(cfg.DB, c.cfg.now, command.IsRetry)
	keys := e2ee.NewStore(e2ee.StoreConfig{DB: cfg.DB, Log: c.cfg.Log, Ending: c.ending, RetryDelay: c.cfg.timings.retry,
		OnProblem: c.sync.setProblem})
	login := cfg.accountConfig()
	login.Now, login.Store = c.cfg.now, keys
	login.Syncer = func() mautrix.Syncer { return mautrixSyncer{mautrix.NewDefaultSyncer()} }
	login.Devices = e2ee.DevicesConfig{Rule: cfg.Devices, Owners: cfg.Owners, Allows: c.Allowed}
	var err error
	if c.acc, err = account.Open(ctx, login); err != nil {
		return nil, err
	}
	c.cli = c.acc.Client
	c.typing = newTypingNotices(c.cli, c.cfg.Log, c.cfg.now)
	c.gate = gate.New(c.cli.UserID.String(), cfg.Owners, cfg.Allow, cfg.Bots...)
	c.Rooms = room.New(cfg.DB, c.acc, c.cfg.Log)
	c.intake = &intake{cfg: cfg, cli: c.cli, devices: c.acc.Devices, gate: c.gate, rooms: c.Rooms, outbox: c.outbox}
	e2ee.OnSession(c.olmMachine(), c.keys.addArrivedSessionAndWake)
	c.Sender, err = send.New(ctx, send.Config{
		Client: c.cli, ThreadRelation: send.ThreadRelation(ctx, c.cli),
		Rooms: c.Rooms, Inbox: c.inbox, Outbox: c.outbox, DB: cfg.DB, Media: cfg.Media, MaxFile: cfg.MaxFile,
		Log: cfg.Log, Now: cfg.now, Text: cfg.Text, Echo: cfg.timings.echo, Restart: cfg.timings.restart,
		SyncNumbers: func() (begun, done int64) { return c.sync.begun.Load(), c.sync.done.Load() },
		SyncNow:     c.sync.syncNow, Synced: c.sync.synced, Ending: c.ending, InWake: c.inWake, OutWake: c.outWake,
	})
	if err != nil {
		return nil, err
	}
	if err := (recovery{c}).storeSent(ctx); err != nil {
		return nil, err
	}
	c.acc.CrossSignDevice(ctx)
	c.acc.SetDisplayNameOnce(ctx, cfg.Name)
	c.acc.Identity.Open(ctx)
	c.backup = e2ee.OpenBackup(ctx, c.acc.E2EEConfig(), c.acc.Identity)
	if c.verifier, err = verification.New(ctx, verification.Config{
		Client: c.cli, Machine: c.olmMachine(), Log: c.cfg.Log, Now: c.cfg.now, Text: cfg.Text, Rooms: c,
	}); err != nil {
		return nil, fmt.Errorf("matrix: open verification: %w", err)
	}
	return c, nil
}

// Handler receives the messages and room changes that Run reads from the sync.
type Handler interface {
	// Deliver gets each message that passed the gate, in order. After a restart it gets a message
	// again unless Ack was called for it.
	Deliver(ctx context.Context, in chat.Inbound) error
	// RoomReplaced moves the data of room from to its successor to. It runs after all questions
	// in from are answered and before any message of to is delivered. It must be repeatable.
	RoomReplaced(ctx context.Context, from, to string) error
	// RoomLeft cancels the work for a room that the bot has left. It returns at once.
	RoomLeft(room string)
	// Redacted deletes a redacted message. It is retried, also after a restart, until it succeeds.
	Redacted(ctx context.Context, event string) error
}

// Run receives messages and sends replies until ctx ends. It then stops receiving, sends what is
// due for up to five seconds, and returns nil. Run must be called once.
//
// It returns an error only if continuing is pointless, for example if the access token is
// invalid and there is no password to get a new one.
func (c *Client) Run(ctx context.Context, h Handler) error {
	members := room.NewMemberships(room.Config{
		Rooms: c.Rooms, Inbox: c.inbox, Outbox: c.outbox, Log: c.cfg.Log, Now: c.cfg.now, RetryDelay: c.cfg.timings.retry,
		RefuseDelay: c.cfg.timings.refuse, Text: c.cfg.Text, Allows: c.gate.Allows, Notify: c.Notify,
		OnLeft: func(room string) { c.DropDrafts(room); c.typing.setRoomTyping(room, false); h.RoomLeft(room) },
		Move:   h.RoomReplaced, InWake: c.inWake, OutWake: c.outWake,
	})
	out, stopOut := context.WithCancel(context.WithoutCancel(ctx))
	defer stopOut()
	stopping := make(chan struct{})
	var sender errgroup.Group
	sender.Go(func() error { c.Sender.Run(out, stopping); return nil })

	g, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() { close(c.ending) })()
	g.Go(func() error { return c.runSyncLoop(ctx, members) })
	g.Go(func() error { return c.runInboxDelivery(ctx, h.Deliver) })
	g.Go(func() error { return c.runUnreadableEventRetries(ctx, members) })
	g.Go(func() error { return members.Run(ctx) })
	g.Go(func() error { return c.runRedactedMessageDeletion(ctx, h.Redacted) })
	g.Go(func() error { return c.typing.runTypingSender(ctx) })
	g.Go(func() error { return c.backup.Run(ctx) })
	g.Go(func() error { return c.verifier.Run(ctx) })
	err := g.Wait()

	close(stopping)
	stop := time.AfterFunc(flushTime, stopOut)
	defer stop.Stop()
	_ = sender.Wait()
	c.olmMachine().Destroy()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// RunVerifyCommand runs the command !verify of person in room. It returns the text to show.
func (c *Client) RunVerifyCommand(ctx context.Context, person, room, args string) (string, error) {
	return c.verifier.Command(ctx, person, room, args), nil
}

// Allowed reports whether user may talk to the bot.
func (c *Client) Allowed(user string) bool { return c.gate.Allows(user) }

// UserID returns the bot's Matrix user ID.
func (c *Client) UserID() string { return c.cli.UserID.String() }

// olmMachine returns the Olm machine of the account.
func (c *Client) olmMachine() *crypto.OlmMachine { return c.acc.Crypto.Machine() }
