package verification

import (
	"context"
	"errors"
	"sync"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto/verificationhelper"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// This file connects mautrix's verification helper: it selects the events that the helper sees, and
// their form. The helper runs the protocol and checks the codes; we decide who may take part.

// transactions stores verifications in memory, for the helper. They end with the process.
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

// FindVerificationTransactionForUserDevice finds nothing: mautrix would cancel both the old
// verification and the new one. accept cancels the old one.
func (*transactions) FindVerificationTransactionForUserDevice(context.Context, id.UserID, id.DeviceID) (transaction, error) {
	return transaction{}, verificationhelper.ErrUnknownVerificationTransaction
}

func (*transactions) GetAllVerificationTransactions(context.Context) ([]transaction, error) {
	return nil, nil // called at the start only
}

// handlerWrapper wraps the handlers that the helper registers.
type handlerWrapper struct {
	mautrix.Syncer
	wrap func(mautrix.EventHandler) mautrix.EventHandler
}

func (handlerWrapper) OnSync(mautrix.SyncHandler)   {}
func (handlerWrapper) OnEvent(mautrix.EventHandler) {}
func (w handlerWrapper) OnEventType(t event.Type, h mautrix.EventHandler) {
	w.Syncer.(mautrix.ExtensibleSyncer).OnEventType(t, w.wrap(h))
}

// New connects the verification helper with the syncer of cfg.Client. It must be called before the
// first sync.
func New(ctx context.Context, cfg Config) (*Verifier, error) {
	v := &Verifier{cfg: cfg, wake: make(chan struct{}, 1), open: map[id.VerificationTransactionID]*verification{}, store: &transactions{}}
	real := cfg.Client.Syncer
	cfg.Client.Syncer = handlerWrapper{real, v.wrap}
	v.helper = verificationhelper.NewVerificationHelper(cfg.Client, cfg.Machine, v.store, callbacks{v}, false, false, true)
	err := v.helper.Init(ctx)
	cfg.Client.Syncer = real
	return v, err
}

// wrap passes admitted events to the helper, one at a time. It waits while an answer is handled:
// the helper reads a transaction, unlocks it, and writes it back later.
func (v *Verifier) wrap(h mautrix.EventHandler) mautrix.EventHandler {
	return func(ctx context.Context, evt *event.Event) {
		if evt.Type == event.EventMessage && evt.Content.AsMessage().MsgType != event.MsgVerificationRequest {
			return
		}
		v.helperMu.Lock()
		defer v.helperMu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, stepTime)
		defer cancel()
		seen, err := v.admit(ctx, evt)
		if err != nil {
			v.cfg.Log.Debug("matrix: verification: event ignored",
				"type", evt.Type.Type, "sender", evt.Sender, "room", evt.RoomID, "because", err)
			return
		}
		if v.holdMAC(ctx, seen, h) {
			return
		}
		h(ctx, seen)
	}
}

// holdMAC holds back the other side's MAC until our person has answered. With the MAC first, the
// helper would compare the identities too early.
func (v *Verifier) holdMAC(ctx context.Context, evt *event.Event, h mautrix.EventHandler) bool {
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
		o.heldMAC = func(ctx context.Context) { h(ctx, evt) }
	})
}

// confirm tells the helper that the emoji match, and passes it the held MAC.
func (v *Verifier) confirm(ctx context.Context, txn id.VerificationTransactionID) error {
	v.helperMu.Lock()
	defer v.helperMu.Unlock()
	if err := v.helper.ConfirmSAS(ctx, txn); err != nil {
		return err
	}
	if o, ok := v.byTxn(txn); ok && o.heldMAC != nil {
		o.heldMAC(ctx)
	}
	return nil
}

// admit checks an event of a verification and returns it in the helper's form. In rooms the helper
// expects the request's ID as event ID, and it checks neither sender nor room.
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
	// Other clients send these unencrypted even in encrypted rooms: the emoji and the MAC protect a
	// verification.
	txn := id.VerificationTransactionID("")
	if evt.Type == event.EventMessage || evt.Type == event.ToDeviceVerificationRequest {
		if txn = id.VerificationTransactionID(evt.ID); evt.Type == event.ToDeviceVerificationRequest {
			txn = evt.Content.AsVerificationRequest().TransactionID
		}
		if _, err := v.store.GetVerificationTransaction(ctx, txn); err == nil {
			return nil, errors.New("the verification is open already") // a repeated sync
		}
		return &out, nil
	}
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
	stored, err := v.store.GetVerificationTransaction(ctx, txn)
	if txn == "" || err != nil {
		return nil, errors.New("the verification is not known")
	}
	if stored.TheirUserID != evt.Sender || stored.RoomID != out.RoomID {
		return nil, errors.New("the verification belongs to another user")
	}
	return &out, nil
}

// callbacks are called by the helper while it holds its lock. Each only queues a step for Run.
type callbacks struct{ v *Verifier }

func (cb callbacks) VerificationRequested(_ context.Context, txn id.VerificationTransactionID, from id.UserID, device id.DeviceID) {
	cb.v.enqueue(func(ctx context.Context) { cb.v.accept(ctx, txn, from, device) })
}

func (cb callbacks) VerificationReady(
	_ context.Context, txn id.VerificationTransactionID, device id.DeviceID, sas, _ bool, _ *verificationhelper.QRCode,
) {
	cb.v.enqueue(func(ctx context.Context) { cb.v.ready(ctx, txn, device, sas) })
}

func (cb callbacks) VerificationCancelled(
	_ context.Context, txn id.VerificationTransactionID, code event.VerificationCancelCode, reason string,
) {
	cb.v.enqueue(func(ctx context.Context) { cb.v.cancelled(ctx, txn, code, reason) })
}

func (cb callbacks) VerificationDone(_ context.Context, txn id.VerificationTransactionID, _ event.VerificationMethod) {
	cb.v.enqueue(func(ctx context.Context) { cb.v.finish(ctx, txn, "verify.done") })
}

func (cb callbacks) ShowSAS(_ context.Context, txn id.VerificationTransactionID, emoji []rune, names []string, _ []int) {
	cb.v.enqueue(func(ctx context.Context) { cb.v.showEmoji(ctx, txn, emoji, names) })
}
