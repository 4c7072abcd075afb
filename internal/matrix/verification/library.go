package verification

import (
	"context"
	"errors"
	"sync"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto/verificationhelper"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// What is in this file stands between the Matrix library's verification and
// the rest: which of its events the library may see, and in which form. It does
// the protocol and checks the codes; who may take part is decided here.

// transactions is the library's memory of verifications. It ends with the process.
type transactions struct{ all sync.Map } // id.VerificationTransactionID → transaction

type transaction = verificationhelper.VerificationTransaction

func (t *transactions) DeleteVerification(_ context.Context, txn id.VerificationTransactionID) error {
	if _, ok := t.all.LoadAndDelete(txn); !ok {
		return verificationhelper.ErrUnknownVerificationTransaction
	}
	return nil
}

func (t *transactions) GetVerificationTransaction(_ context.Context, txn id.VerificationTransactionID) (transaction, error) {
	v, ok := t.all.Load(txn)
	if !ok {
		return transaction{}, verificationhelper.ErrUnknownVerificationTransaction
	}
	return v.(transaction), nil
}

func (t *transactions) SaveVerificationTransaction(_ context.Context, v transaction) error {
	t.all.Store(v.TransactionID, v)
	return nil
}

// FindVerificationTransactionForUserDevice finds nothing: the library would
// cancel the old verification and the new one, too. We cancel the old one.
func (*transactions) FindVerificationTransactionForUserDevice(context.Context, id.UserID, id.DeviceID) (transaction, error) {
	return transaction{}, verificationhelper.ErrUnknownVerificationTransaction
}

func (*transactions) GetAllVerificationTransactions(context.Context) ([]transaction, error) {
	return nil, nil // asked at the start only, and then there are none
}

// catcher takes the handlers that the library means to register with the
// syncer, so that they can be wrapped.
type catcher struct {
	mautrix.Syncer
	caught []caught
}

type caught struct {
	kind   event.Type
	handle mautrix.EventHandler
}

func (*catcher) OnSync(mautrix.SyncHandler)   {}
func (*catcher) OnEvent(mautrix.EventHandler) {}
func (c *catcher) OnEventType(t event.Type, h mautrix.EventHandler) {
	c.caught = append(c.caught, caught{t, h})
}

// New connects the library's verification with the syncer of cfg.Client. Nothing may run yet.
func New(ctx context.Context, cfg Config) (*Verifier, error) {
	v := &Verifier{cfg: cfg, wake: make(chan struct{}, 1), open: map[id.VerificationTransactionID]*verification{}, store: &transactions{}}
	real := cfg.Client.Syncer
	catch := &catcher{Syncer: real}
	cfg.Client.Syncer = catch
	v.helper = verificationhelper.NewVerificationHelper(cfg.Client, cfg.Machine, v.store, callbacks{v}, false, false, true)
	err := v.helper.Init(ctx)
	cfg.Client.Syncer = real
	if err != nil {
		return nil, err
	}
	for _, h := range catch.caught {
		real.(mautrix.ExtensibleSyncer).OnEventType(h.kind, v.wrap(h.handle))
	}
	return v, nil
}

// wrap shows the library the events that are meant for it, one at a time, and
// none while somebody's answer is worked on: it reads a verification, lets go
// of it, and writes it back later.
func (v *Verifier) wrap(h mautrix.EventHandler) mautrix.EventHandler {
	return func(ctx context.Context, evt *event.Event) {
		if evt.Type == event.EventMessage && evt.Content.AsMessage().MsgType != event.MsgVerificationRequest {
			return
		}
		v.turn.Lock()
		defer v.turn.Unlock()
		ctx, cancel := context.WithTimeout(ctx, stepTime)
		defer cancel()
		seen, err := v.admit(ctx, evt)
		if err != nil {
			v.cfg.Log.Debug("matrix: verification: event ignored",
				"type", evt.Type.Type, "sender", evt.Sender, "room", evt.RoomID, "because", err)
			return
		}
		if v.hold(ctx, seen, h) {
			return
		}
		h(ctx, seen)
	}
}

// hold keeps the other side's confirmation until our person has answered:
// getting it first, the library would compare their identity with ours.
func (v *Verifier) hold(ctx context.Context, evt *event.Event, h mautrix.EventHandler) bool {
	if evt.Type.Type != event.InRoomVerificationMAC.Type {
		return false
	}
	txn := id.VerificationTransactionID(evt.ID)
	if t, ok := evt.Content.Parsed.(event.VerificationTransactionable); ok && evt.RoomID == "" {
		txn = t.GetTransactionID()
	}
	if t, err := v.store.GetVerificationTransaction(ctx, txn); err != nil || t.SentOurMAC {
		return false
	}
	return v.change(txn, func(o *verification) {
		o.held = func(ctx context.Context) { h(ctx, evt) }
	})
}

// confirm tells the library that the emoji match, and shows it the other
// side's confirmation if that has come.
func (v *Verifier) confirm(ctx context.Context, txn id.VerificationTransactionID) error {
	v.turn.Lock()
	defer v.turn.Unlock()
	if err := v.helper.ConfirmSAS(ctx, txn); err != nil {
		return err
	}
	if o, ok := v.byTxn(txn); ok && o.held != nil {
		o.held(ctx)
	}
	return nil
}

// admit decides about an event of a verification and returns it as the library
// should see it: in rooms it expects the id of the request where the id of the
// event is, and it looks neither at the sender nor at the room.
func (v *Verifier) admit(ctx context.Context, evt *event.Event) (*event.Event, error) {
	out := *evt
	if evt.Type.Class == event.ToDeviceEventType {
		out.ID, out.RoomID = "", ""
	}
	switch {
	case evt.Sender == v.cfg.Client.UserID:
		return nil, errors.New("it is our own")
	case !v.cfg.Rooms.Allowed(evt.Sender.String()):
		return nil, errors.New("the sender is not allowed")
	case evt.StateKey != nil || evt.Mautrix.EventSource&event.SourceLeave != 0:
		return nil, errors.New("it is no message of a room we are in")
	}
	// Other clients send these unencrypted, in encrypted rooms too: the emoji and
	// the MAC are what protects a verification.
	if evt.Type == event.EventMessage || evt.Type == event.ToDeviceVerificationRequest {
		return v.admitRequest(ctx, &out)
	}
	txn := id.VerificationTransactionID("")
	if out.RoomID != "" {
		if r, ok := evt.Content.Parsed.(event.Relatable); ok {
			if to := r.OptionalGetRelatesTo(); to != nil && to.Type == event.RelReference {
				txn = id.VerificationTransactionID(to.EventID)
			}
		}
		out.ID = id.EventID(txn)
	} else if t, ok := evt.Content.Parsed.(event.VerificationTransactionable); ok {
		txn = t.GetTransactionID()
	}
	known, err := v.store.GetVerificationTransaction(ctx, txn)
	if txn == "" || err != nil {
		return nil, errors.New("the verification is not known")
	}
	if known.TheirUserID != evt.Sender || known.RoomID != out.RoomID {
		return nil, errors.New("the verification is somebody else's")
	}
	return &out, nil
}

func (v *Verifier) admitRequest(ctx context.Context, evt *event.Event) (*event.Event, error) {
	now := v.cfg.Now()
	txn := id.VerificationTransactionID(evt.ID)
	if evt.Type == event.ToDeviceVerificationRequest {
		req := *evt.Content.AsVerificationRequest()
		txn = req.TransactionID
		if req.Timestamp.After(now) { // it would be kept for longer than the time that we give
			req.Timestamp.Time = now
		}
		evt.Content.Parsed = &req
	} else if time.UnixMilli(evt.Timestamp).After(now) {
		evt.Timestamp = now.UnixMilli()
	}
	if _, err := v.store.GetVerificationTransaction(ctx, txn); err == nil {
		return nil, errors.New("the verification has begun already") // a sync that came twice
	}
	return evt, nil
}

// callbacks is what the library calls, holding its lock: each only leaves a
// note for Run.
type callbacks struct{ v *Verifier }

func (cb callbacks) VerificationRequested(_ context.Context, txn id.VerificationTransactionID, from id.UserID, device id.DeviceID) {
	cb.v.do(func(ctx context.Context) { cb.v.accept(ctx, txn, from, device) })
}

func (cb callbacks) VerificationReady(
	_ context.Context, txn id.VerificationTransactionID, device id.DeviceID, sas, _ bool, _ *verificationhelper.QRCode,
) {
	cb.v.do(func(ctx context.Context) { cb.v.ready(ctx, txn, device, sas) })
}

func (cb callbacks) VerificationCancelled(
	_ context.Context, txn id.VerificationTransactionID, code event.VerificationCancelCode, reason string,
) {
	cb.v.do(func(ctx context.Context) { cb.v.cancelled(ctx, txn, code, reason) })
}

func (cb callbacks) VerificationDone(_ context.Context, txn id.VerificationTransactionID, _ event.VerificationMethod) {
	cb.v.do(func(ctx context.Context) { cb.v.over(ctx, txn, "verify.done") })
}

func (cb callbacks) ShowSAS(_ context.Context, txn id.VerificationTransactionID, emoji []rune, names []string, _ []int) {
	cb.v.do(func(ctx context.Context) { cb.v.show(ctx, txn, emoji, names) })
}
