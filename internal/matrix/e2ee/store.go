package e2ee

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mau.fi/util/dbutil"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/olm"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/store"
)

// StoreConfig configures a Store.
type StoreConfig struct {
	DB         *store.DB
	Log        *slog.Logger
	Ending     <-chan struct{}      // closed when the program ends: a failed write is not retried any more
	RetryDelay time.Duration        // first delay of a retry
	OnProblem  func(problem string) // called when the database cannot be written; empty = it can again
}

// Store is mautrix's crypto store with another order of writes.
//
// mautrix first stores that an Olm message is handled and the advanced Olm session, and then the
// room key in the message. If the program dies in between, mautrix takes the message for a replay
// or cannot decrypt it again: the key is lost. Store writes the key first. If the rest is missing
// after a crash, the repeated message is harmless: it is decrypted again or has no effect.
//
// This is no transaction: it would begin before locks that others hold while they wait for the
// database.
type Store struct {
	*crypto.SQLCryptoStore
	cfg       StoreConfig
	machine   *crypto.OlmMachine
	devices   *Devices
	writeLost atomic.Bool // a part of a sync could not be stored before the program ended

	// mu is held while an Olm session in memory is ahead of the database. It may be locked while
	// the machine's olmLock is held, but not the other way round.
	mu sync.Mutex
}

// NewStore returns a Store that can only be used for its Database until Attach.
func NewStore(cfg StoreConfig) *Store { return &Store{cfg: cfg} }

// Attach puts k between a machine and the crypto store. That store was made with k's Database.
// devices selects the devices that get room keys.
func (k *Store) Attach(m *crypto.OlmMachine, devices *Devices) {
	k.SQLCryptoStore, k.machine, k.devices = m.CryptoStore.(*crypto.SQLCryptoStore), m, devices
	m.SendKeysMinTrust = id.TrustStateCrossSignedUntrusted // see GetDevices
	m.CryptoStore = k
}

// olmMessage is an Olm message that is being handled. It holds the writes that follow its room key.
// It belongs to one goroutine.
type olmMessage struct{ deferred []func() error }

type olmMessageKey struct{} // context key of an *olmMessage

// errDeferred makes mautrix keep the one-time key that a new Olm session has used.
var errDeferred = errors.New("it is stored after the room key")

// errNotStored makes mautrix keep the Olm message of a room key. The room key could not be stored.
var errNotStored = errors.New("matrix: a room key waits for the next start, and with it what came after it in the same Olm session")

// deferWrite defers step until the room key of the current Olm message is stored. It returns false
// outside the handling of an Olm message.
func (k *Store) deferWrite(ctx context.Context, step func() error) bool {
	o, _ := ctx.Value(olmMessageKey{}).(*olmMessage)
	if o == nil {
		return false
	}
	if len(o.deferred) == 0 {
		k.mu.Lock()
	}
	o.deferred = append(o.deferred, step)
	return true
}

// flushDeferred runs the deferred writes. If the room key could not be stored because the program
// ends, it drops them: the Olm message must not count as handled.
func (k *Store) flushDeferred(o *olmMessage) {
	if len(o.deferred) == 0 {
		return
	}
	defer k.mu.Unlock()
	for _, step := range o.deferred {
		if k.writeLost.Load() {
			return
		}
		if err := step(); err != nil {
			k.cfg.Log.Error("matrix: the state of an Olm session could not be stored", "err", err)
		}
	}
}

// PutOlmHash implements crypto.Store.
func (k *Store) PutOlmHash(ctx context.Context, hash [32]byte, at time.Time) error {
	put := func() error { return k.SQLCryptoStore.PutOlmHash(ctx, hash, at) }
	if k.deferWrite(ctx, put) {
		return nil
	}
	return put()
}

// UpdateSession implements crypto.Store. Encryption with a session that is ahead of the database
// waits until the session is stored.
func (k *Store) UpdateSession(ctx context.Context, key id.SenderKey, s *crypto.OlmSession) error {
	now := *s // a concurrent encryption may change *s
	now.Internal = olm.NewBlankSession()
	pickled, err := s.Internal.Pickle(k.PickleKey)
	if err != nil {
		return err
	}
	if err := now.Internal.Unpickle(pickled, k.PickleKey); err != nil {
		return err
	}
	put := func() error { return k.SQLCryptoStore.UpdateSession(ctx, key, &now) }
	if k.deferWrite(ctx, put) {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.writeLost.Load() {
		return errNotStored
	}
	if err = put(); err != nil {
		select {
		case <-k.cfg.Ending:
			k.writeLost.Store(true)
		default:
		}
	}
	return err
}

// AddSession implements crypto.Store. It removes the one-time key last: without it the message
// that made the session could not be decrypted again.
func (k *Store) AddSession(ctx context.Context, key id.SenderKey, s *crypto.OlmSession) error {
	add := func() error { return k.SQLCryptoStore.AddSession(ctx, key, s) }
	if k.deferWrite(ctx, func() error {
		if err := add(); err != nil {
			return err
		}
		acc := k.machine.GetAccount()
		if err := acc.Internal.RemoveOneTimeKeys(s.Internal); err != nil {
			return err
		}
		return k.PutAccount(ctx, acc)
	}) {
		return errDeferred
	}
	return add()
}

// ProcessSync passes a sync's to-device events and key counts to the Olm machine. It works like the
// machine's ProcessSyncResponse, but handles each message on its own. guard stops a panic over one
// of them.
func (k *Store) ProcessSync(ctx context.Context, guard func(evt *event.Event, f func()), res *mautrix.RespSync, since string) {
	whole := func(f func()) { guard(&event.Event{}, f) }
	whole(func() { k.machine.HandleDeviceLists(ctx, &res.DeviceLists, since) })
	for _, evt := range res.ToDevice.Events {
		evt.Type.Class = event.ToDeviceEventType
		if err := evt.Content.ParseRaw(evt.Type); err == nil || errors.Is(err, event.ErrContentAlreadyParsed) {
			guard(evt, func() { k.handleToDevice(ctx, evt) })
		}
	}
	whole(func() { k.uploadOneTimeKeys(ctx, res.DeviceOTKCount) })
	whole(func() { k.machine.MarkOlmHashSavePoint(ctx) })
}

// uploadOneTimeKeys uploads one-time keys if the homeserver has too few. A sync may omit their count, which
// mautrix takes for 0; without the request here each start would upload more keys than are stored.
func (k *Store) uploadOneTimeKeys(ctx context.Context, n mautrix.OTKCount) {
	if n.SignedCurve25519 == 0 {
		now, err := k.machine.Client.UploadKeys(ctx, &mautrix.ReqUploadKeys{})
		if err != nil {
			k.cfg.Log.Debug("matrix: how many one-time keys there are is not known; the next sync asks again", "err", err)
			return
		}
		n = now.OneTimeKeyCounts
	}
	k.machine.HandleOTKCounts(ctx, &n)
}

func (k *Store) handleToDevice(ctx context.Context, evt *event.Event) {
	if evt.Type == event.ToDeviceEncrypted { // other events are answered in goroutines that keep the context
		o := &olmMessage{}
		ctx = context.WithValue(ctx, olmMessageKey{}, o)
		defer k.flushDeferred(o)
	}
	k.machine.HandleToDeviceEvent(ctx, evt)
}

// CheckRequest returns an error for a request with an Olm message of an unstored session. After the
// next start the recipient could decrypt nothing more of that session. The message is sent then.
func (k *Store) CheckRequest(r *http.Request) error {
	if k.writeLost.Load() && strings.Contains(r.URL.Path, "/sendToDevice/"+event.ToDeviceEncrypted.Type+"/") {
		return errNotStored
	}
	return nil
}

// retryingDB repeats writes of mautrix that fail because of a full disk or locked database. mautrix
// only logs a failed write of a room key, and the Olm message that carried the key cannot be
// decrypted twice. So the write waits, and the sync with it, until it succeeds or the program ends.
type retryingDB struct {
	*store.DB
	dbutil.DatabaseLogger
	s *Store
}

// ExecContext implements dbutil.UnderlyingExecable.
func (p retryingDB) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	for attempt := 0; ; attempt++ {
		res, err := p.DB.ExecContext(ctx, query, args...)
		if err == nil || !store.IsTransient(err) {
			if attempt > 0 {
				p.s.cfg.OnProblem("")
			}
			return res, err
		}
		p.s.cfg.OnProblem("the database cannot be written: " + err.Error())
		p.s.cfg.Log.Error("matrix: the database cannot be written; waiting until it can", "err", err)
		select {
		case <-time.After(min(p.s.cfg.RetryDelay<<min(attempt, 10), time.Minute)):
		case <-ctx.Done():
			return nil, err
		case <-p.s.cfg.Ending:
			if ctx.Value(failedKey{}) != nil {
				p.s.writeLost.Store(true)
			}
			return nil, err
		}
	}
}

// QueryTiming implements dbutil.DatabaseLogger. It gets the result of every statement. After a
// failed write the batch is processed again, with the same sync token.
func (p retryingDB) QueryTiming(ctx context.Context, _, _ string, _ []any, _ int, _ time.Duration, err error) {
	if failed, ok := ctx.Value(failedKey{}).(func(error)); ok && store.IsTransient(err) {
		failed(err)
	}
}

type failedKey struct{} // the func(error) of a context

// WithFailures returns a context in which failed is called for each failed write of mautrix, whether or not
// mautrix returns the error.
func WithFailures(ctx context.Context, failed func(error)) context.Context {
	return context.WithValue(ctx, failedKey{}, failed)
}

// Database wraps the database for mautrix.
func (s *Store) Database() (*dbutil.Database, error) {
	db, err := dbutil.NewWithDB(s.cfg.DB.DB, "sqlite")
	if err != nil {
		return nil, err
	}
	p := retryingDB{DB: s.cfg.DB, DatabaseLogger: dbutil.NoopLogger, s: s}
	db.LoggingDB.UnderlyingExecable, db.Log = p, p
	return db, nil
}
