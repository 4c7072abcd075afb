package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto/verificationhelper"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// Stage is the progress of a verification.
type Stage string

// The stages, in order; a verification ends Done or Cancelled.
const (
	Ready     Stage = "ready" // both sides have agreed; CompareEmoji continues
	Emoji     Stage = "emoji" // the emoji are shown
	Done      Stage = "done"
	Cancelled Stage = "cancelled"
)

// Verification is a change of a verification's stage.
type Verification struct {
	ID    string
	Stage Stage
	Emoji []string // Emoji: the seven emoji
	Code  string   // Cancelled: Matrix error code
	Why   string   // Cancelled: reason text
}

// verifier is the person's side of the verifications.
type verifier struct {
	self   id.UserID
	helper *verificationhelper.VerificationHelper
	store  *lockedStore
	events chan Verification

	mu       sync.Mutex
	heldMACs map[id.VerificationTransactionID]func() // the other side's MAC, until we have confirmed
}

// EnableVerification creates an identity if the person has none, and enables verifications. Call it
// once, before Run.
func (p *Peer) EnableVerification(ctx context.Context, password string) error {
	m := p.crypto.Machine()
	has, verified, err := m.GetOwnVerificationStatus(ctx)
	if err == nil && !has {
		_, _, err = m.GenerateAndUploadCrossSigningKeysWithPassword(ctx, password, "")
	}
	if err == nil && !verified && m.CrossSigningKeys != nil {
		err = errors.Join(m.SignOwnDevice(ctx, m.OwnIdentity()), m.SignOwnMasterKey(ctx))
	}
	if err != nil {
		return fmt.Errorf("make an identity: %w", err)
	}
	v := &verifier{
		self: p.client.UserID, store: &lockedStore{inner: verificationhelper.NewInMemoryVerificationStore()},
		events: make(chan Verification, eventBuffer), heldMACs: map[id.VerificationTransactionID]func(){},
	}
	syncer := p.client.Syncer
	catch := &handlerWrapper{Syncer: syncer, into: syncer.(mautrix.ExtensibleSyncer), wrap: v.wrap}
	p.client.Syncer = catch
	v.helper = verificationhelper.NewVerificationHelper(p.client, m, v.store, v, false, false, true)
	err = v.helper.Init(ctx)
	p.client.Syncer = syncer
	if err != nil {
		return fmt.Errorf("enable verification: %w", err)
	}
	p.verifier = v
	return nil
}

// handlerWrapper wraps the handlers that mautrix's helper registers.
type handlerWrapper struct {
	mautrix.Syncer
	into mautrix.ExtensibleSyncer
	wrap func(mautrix.EventHandler) mautrix.EventHandler
}

func (*handlerWrapper) OnSync(mautrix.SyncHandler)   {}
func (*handlerWrapper) OnEvent(mautrix.EventHandler) {}
func (c *handlerWrapper) OnEventType(t event.Type, h mautrix.EventHandler) {
	c.into.OnEventType(t, c.wrap(h))
}

// wrap corrects mautrix's helper. In rooms it takes each event's ID for the transaction ID and
// accepts events of all users. And the side that confirms second must not get the other's MAC first,
// or it compares the wrong keys.
func (v *verifier) wrap(h mautrix.EventHandler) mautrix.EventHandler {
	return func(ctx context.Context, evt *event.Event) {
		if evt.Sender == v.self {
			return
		}
		out := *evt
		var txn id.VerificationTransactionID
		if t, ok := evt.Content.Parsed.(event.VerificationTransactionable); ok {
			txn = t.GetTransactionID()
		}
		if r, ok := evt.Content.Parsed.(event.Relatable); ok && evt.RoomID != "" && evt.Type != event.EventMessage {
			if to := r.OptionalGetRelatesTo(); to != nil && to.Type == event.RelReference {
				out.ID, txn = to.EventID, id.VerificationTransactionID(to.EventID)
			}
		}
		known, err := v.store.GetVerificationTransaction(ctx, txn)
		if err == nil && known.TheirUserID != evt.Sender {
			return
		}
		if err == nil && !known.SentOurMAC && evt.Type.Type == event.InRoomVerificationMAC.Type {
			v.mu.Lock()
			v.heldMACs[txn] = func() { h(context.WithoutCancel(ctx), &out) }
			v.mu.Unlock()
			return
		}
		h(ctx, &out)
	}
}

// Verifications returns the channel of stage changes, in order. It is never closed.
func (p *Peer) Verifications() <-chan Verification { return p.verifier.events }

// VerifyUser sends a verification request to the devices of user and returns the transaction ID.
func (p *Peer) VerifyUser(ctx context.Context, user string) (string, error) {
	if _, err := p.crypto.Machine().FetchKeys(ctx, []id.UserID{id.UserID(user)}, true); err != nil {
		return "", fmt.Errorf("verify %s: %w", user, err)
	}
	txn, err := p.verifier.helper.StartVerification(ctx, id.UserID(user))
	return txn.String(), err
}

// VerifyInRoom sends user a verification request in a room and returns the transaction ID.
func (p *Peer) VerifyInRoom(ctx context.Context, room, user string) (string, error) {
	store := p.verifier.store
	store.mu.Lock() // the response must find the transaction in the store
	defer store.mu.Unlock()
	sent, err := p.send(ctx, room, &event.MessageEventContent{
		MsgType: event.MsgVerificationRequest, Body: "verify?", FromDevice: p.client.DeviceID, To: id.UserID(user),
		Methods: []event.VerificationMethod{event.VerificationMethodSAS},
	})
	if err != nil {
		return "", fmt.Errorf("verify %s: %w", user, err)
	}
	return sent, store.inner.SaveVerificationTransaction(ctx, verificationhelper.VerificationTransaction{
		RoomID: id.RoomID(room), TransactionID: id.VerificationTransactionID(sent), TheirUserID: id.UserID(user),
	})
}

// CompareEmoji starts the comparison of a ready verification.
func (p *Peer) CompareEmoji(ctx context.Context, txn string) error {
	return p.verifier.helper.StartSAS(ctx, id.VerificationTransactionID(txn))
}

// ConfirmEmoji confirms that both sides show the same emoji.
func (p *Peer) ConfirmEmoji(ctx context.Context, txn string) error {
	v := p.verifier
	if err := v.helper.ConfirmSAS(ctx, id.VerificationTransactionID(txn)); err != nil {
		return err
	}
	v.mu.Lock()
	theirs := v.heldMACs[id.VerificationTransactionID(txn)]
	v.mu.Unlock()
	if theirs != nil {
		theirs()
	}
	return nil
}

// Trusts reports whether this person has verified user.
func (p *Peer) Trusts(ctx context.Context, user string) (bool, error) {
	return p.crypto.Machine().IsUserTrusted(ctx, id.UserID(user))
}

// VerificationRequested is called by mautrix, like the methods below.
func (*verifier) VerificationRequested(context.Context, id.VerificationTransactionID, id.UserID, id.DeviceID) {
}

func (v *verifier) VerificationReady(_ context.Context, txn id.VerificationTransactionID, _ id.DeviceID, _, _ bool, _ *verificationhelper.QRCode) {
	v.events <- Verification{ID: txn.String(), Stage: Ready}
}

func (v *verifier) VerificationCancelled(_ context.Context, txn id.VerificationTransactionID, code event.VerificationCancelCode, why string) {
	v.events <- Verification{ID: txn.String(), Stage: Cancelled, Code: string(code), Why: why}
}

func (v *verifier) VerificationDone(_ context.Context, txn id.VerificationTransactionID, _ event.VerificationMethod) {
	v.events <- Verification{ID: txn.String(), Stage: Done}
}

func (v *verifier) ShowSAS(_ context.Context, txn id.VerificationTransactionID, emoji []rune, _ []string, _ []int) {
	v.events <- Verification{ID: txn.String(), Stage: Emoji, Emoji: strings.Split(string(emoji), "")}
}

// lockedStore makes mautrix's transaction store safe for concurrent use.
type lockedStore struct {
	mu    sync.Mutex
	inner *verificationhelper.InMemoryVerificationStore
}

func (s *lockedStore) DeleteVerification(ctx context.Context, txn id.VerificationTransactionID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inner.DeleteVerification(ctx, txn)
}

func (s *lockedStore) GetVerificationTransaction(ctx context.Context, txn id.VerificationTransactionID) (verificationhelper.VerificationTransaction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inner.GetVerificationTransaction(ctx, txn)
}

func (s *lockedStore) SaveVerificationTransaction(ctx context.Context, t verificationhelper.VerificationTransaction) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inner.SaveVerificationTransaction(ctx, t)
}

func (s *lockedStore) FindVerificationTransactionForUserDevice(ctx context.Context, user id.UserID, device id.DeviceID) (verificationhelper.VerificationTransaction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inner.FindVerificationTransactionForUserDevice(ctx, user, device)
}

func (s *lockedStore) GetAllVerificationTransactions(ctx context.Context) ([]verificationhelper.VerificationTransaction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inner.GetAllVerificationTransactions(ctx)
}

// SendCancel sends a cancellation of any user's verification into a room.
func (p *Peer) SendCancel(ctx context.Context, room, txn string) error {
	if err := p.untilSynced(ctx); err != nil {
		return err
	}
	if err := p.ensureState(ctx, id.RoomID(room)); err != nil {
		return err
	}
	_, err := p.client.SendMessageEvent(ctx, id.RoomID(room), event.InRoomVerificationCancel, &event.VerificationCancelEventContent{
		InRoomVerificationEvent: event.InRoomVerificationEvent{RelatesTo: &event.RelatesTo{Type: event.RelReference, EventID: id.EventID(txn)}},
		Code:                    event.VerificationCancelCodeUser, Reason: "because I can",
	})
	return err
}
