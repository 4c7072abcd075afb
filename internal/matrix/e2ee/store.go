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

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/olm"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// StoreConfig is what a Store needs.
type StoreConfig struct {
	DB      *sql.DB
	Log     *slog.Logger
	Ending  <-chan struct{}      // closed when the program ends: a write that fails waits no longer
	Again   time.Duration        // how long it waits for the first time
	Problem func(problem string) // hears that the database cannot be written, and that it can; empty = it can
}

// Store is mautrix's crypto store with another order of writes.
//
// mautrix first stores that an Olm message is done with, and how far that has
// brought the Olm session, and then the room key that the message carried. A
// program that dies in between gets the message again and takes it for a
// repeated one, or cannot decrypt it a second time: the key is lost. Here the
// key goes first. Whatever of the rest is missing then, the message that comes
// again does no harm: it is opened once more, or is of no use any more.
//
// No transaction holds this together: one would have to begin before locks that
// others hold while they wait for the database.
type Store struct {
	*crypto.SQLCryptoStore
	cfg     StoreConfig
	machine *crypto.OlmMachine
	devices *Devices
	behind  atomic.Bool // what a sync brought could not be stored before the end

	// mu is held while an Olm session in memory is ahead of the database. The
	// machine's olmLock may be held when it is taken, and not be taken while it is
	// held.
	mu sync.Mutex
}

// NewStore returns a Store that has only its Database yet.
func NewStore(cfg StoreConfig) *Store { return &Store{cfg: cfg} }

// Attach puts k between a machine and the crypto store that was made with k's Database.
// devices says which devices get room keys.
func (k *Store) Attach(m *crypto.OlmMachine, devices *Devices) {
	k.SQLCryptoStore, k.machine, k.devices = m.CryptoStore.(*crypto.SQLCryptoStore), m, devices
	m.SendKeysMinTrust = id.TrustStateCrossSignedUntrusted // see GetDevices
	m.CryptoStore = k
}

// opened is an Olm message that is being worked on: what is to be stored when
// what it carried is. It belongs to one goroutine.
type opened struct{ rest []func() error }

type openedKey struct{} // the *opened of a context

// errLater has mautrix keep the one-time key that a new Olm session has used.
var errLater = errors.New("it is stored when the key that came with it is")

// errBehind keeps a key that could not be stored from being lost.
var errBehind = errors.New("matrix: a room key waits for the next start, and with it what came after it in the same Olm session")

func (k *Store) later(ctx context.Context, step func() error) bool {
	o, _ := ctx.Value(openedKey{}).(*opened)
	if o == nil {
		return false
	}
	if len(o.rest) == 0 {
		k.mu.Lock()
	}
	o.rest = append(o.rest, step)
	return true
}

// settle stores the rest. When the key could not be stored because the program
// ends, nothing may say that its message is done with.
func (k *Store) settle(o *opened) {
	if len(o.rest) == 0 {
		return
	}
	defer k.mu.Unlock()
	for _, step := range o.rest {
		if k.behind.Load() {
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
	if k.later(ctx, put) {
		return nil
	}
	return put()
}

// UpdateSession implements crypto.Store. Who encrypts with a session that is
// ahead of the database waits until it no longer is.
func (k *Store) UpdateSession(ctx context.Context, key id.SenderKey, s *crypto.OlmSession) error {
	now := *s // somebody may encrypt with it meanwhile
	now.Internal = olm.NewBlankSession()
	pickled, err := s.Internal.Pickle(k.PickleKey)
	if err != nil {
		return err
	}
	if err := now.Internal.Unpickle(pickled, k.PickleKey); err != nil {
		return err
	}
	put := func() error { return k.SQLCryptoStore.UpdateSession(ctx, key, &now) }
	if k.later(ctx, put) {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.behind.Load() {
		return errBehind
	}
	err = put()
	if err != nil && ended(k.cfg.Ending) {
		k.behind.Store(true)
	}
	return err
}

// ended tells whether c is closed.
func ended(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// AddSession implements crypto.Store. The one-time key goes last: without it the
// message that made the session could not be opened again.
func (k *Store) AddSession(ctx context.Context, key id.SenderKey, s *crypto.OlmSession) error {
	add := func() error { return k.SQLCryptoStore.AddSession(ctx, key, s) }
	if k.later(ctx, func() error {
		if err := add(); err != nil {
			return err
		}
		acc := k.machine.GetAccount()
		if err := acc.Internal.RemoveOneTimeKeys(s.Internal); err != nil {
			return err
		}
		return k.PutAccount(ctx, acc)
	}) {
		return errLater
	}
	return add()
}

// Take takes out of a sync what the crypto machine is to know, as its
// ProcessSyncResponse does, but each message by itself: guard keeps a panic over
// one away from the others.
func (k *Store) Take(ctx context.Context, guard func(evt *event.Event, f func()), res *mautrix.RespSync, since string) {
	whole := func(f func()) { guard(&event.Event{}, f) }
	whole(func() { k.machine.HandleDeviceLists(ctx, &res.DeviceLists, since) })
	for _, evt := range res.ToDevice.Events {
		evt.Type.Class = event.ToDeviceEventType
		if err := evt.Content.ParseRaw(evt.Type); err == nil || errors.Is(err, event.ErrContentAlreadyParsed) {
			guard(evt, func() { k.takeKey(ctx, evt) })
		}
	}
	whole(func() { k.fillKeys(ctx, res.DeviceOTKCount) })
	whole(func() { k.machine.MarkOlmHashSavePoint(ctx) })
}

// fillKeys has enough one-time keys on the homeserver. A sync may leave their count out, so
// none is asked about: each start would put more there than the crypto store keeps.
func (k *Store) fillKeys(ctx context.Context, n mautrix.OTKCount) {
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

func (k *Store) takeKey(ctx context.Context, evt *event.Event) {
	if evt.Type == event.ToDeviceEncrypted { // others are answered in goroutines, which keep the context
		o := &opened{}
		ctx = context.WithValue(ctx, openedKey{}, o)
		defer k.settle(o)
	}
	k.machine.HandleToDeviceEvent(ctx, evt)
}

// HoldBack fails for a request that brings an Olm message whose session could not be stored: after
// the next start the other side could open nothing more of that session. What it was for is sent then.
func (k *Store) HoldBack(r *http.Request) error {
	if k.behind.Load() && strings.Contains(r.URL.Path, "/sendToDevice/"+event.ToDeviceEncrypted.Type+"/") {
		return errBehind
	}
	return nil
}
