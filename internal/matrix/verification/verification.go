// Package verification verifies people by emoji (SAS), in a room or by to-device events. The person
// starts it and confirms with the code shown beside the emoji.
package verification

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/verificationhelper"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/pace"
	"reverie/internal/text"
)

// stepTime limits one step of ours. mautrix ends a verification after ten minutes.
const stepTime = time.Minute

// stage is the progress of a verification.
type stage int

const (
	requested  stage = iota // the request was accepted
	emojiShown              // the emoji are shown
	confirmed               // the person has confirmed the emoji
)

// verification is an open verification.
type verification struct {
	txn     id.VerificationTransactionID
	person  id.UserID
	device  id.DeviceID // the other side's, once known
	room    string      // room of the notices
	name    string      // prefix of the IDs of its notices in the outbox
	stage   stage
	code    string                // shown with the emoji; the person confirms with it
	heldMAC func(context.Context) // passes the other side's MAC to the helper; nil until it arrives
}

// Config configures a Verifier.
type Config struct {
	Client  *mautrix.Client
	Machine *crypto.OlmMachine
	Log     *slog.Logger
	Now     func() time.Time
	Rooms   Rooms

	// Text returns a message text in the language of room.
	Text func(ctx context.Context, room, key string, fill ...string) string
}

// Rooms are the methods of the Matrix client that a Verifier needs.
type Rooms interface {
	// Send stores a message that is to be sent.
	Send(ctx context.Context, room string, m chat.Outgoing) error
	// Allowed reports whether user may talk to the bot.
	Allowed(user string) bool
	// PrepareSend fetches the room's state. It returns an error if no event may be sent there.
	PrepareSend(ctx context.Context, room id.RoomID) (encrypted bool, err error)
	// DirectWith returns the person with whom room is private, or "".
	DirectWith(ctx context.Context, room string) (string, error)
	// DirectChat returns a private room with person, or "".
	DirectChat(ctx context.Context, person string) (string, error)
}

// Verifier leads people through verifications. Each person sees the same seven emoji in two places,
// one being a notice of ours, and says whether they match. The bot never confirms by itself.
type Verifier struct {
	cfg      Config
	helper   *verificationhelper.VerificationHelper
	store    *transactions
	helperMu sync.Mutex // held while the helper handles an event or an answer
	wake     chan struct{}

	mu   sync.Mutex // never held during a call
	open map[id.VerificationTransactionID]*verification
	todo []func(context.Context)
}

func (v *Verifier) enqueue(f func(context.Context)) {
	v.mu.Lock()
	v.todo = append(v.todo, f)
	v.mu.Unlock()
	pace.Wake(v.wake)
}

// Open returns the transaction IDs of the open verifications.
func (v *Verifier) Open() (txns []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for txn := range v.open {
		txns = append(txns, txn.String())
	}
	return txns
}

// byTxn returns a copy of an open verification.
func (v *Verifier) byTxn(txn id.VerificationTransactionID) (found verification, ok bool) {
	ok = v.change(txn, func(o *verification) { found = *o })
	return found, ok
}

// byPerson returns a copy of a person's open verification.
func (v *Verifier) byPerson(person string) (verification, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, o := range v.open {
		if o.person.String() == person {
			return *o, true
		}
	}
	return verification{}, false
}

// change changes an open verification. It returns false if the verification is over.
func (v *Verifier) change(txn id.VerificationTransactionID, f func(*verification)) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	o := v.open[txn]
	if o != nil {
		f(o)
	}
	return o != nil
}

// remove removes an open verification. It returns false if it was over before.
func (v *Verifier) remove(txn id.VerificationTransactionID) (verification, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	o := v.open[txn]
	if o == nil {
		return verification{}, false
	}
	delete(v.open, txn)
	return *o, true
}

// notify sends a text to the person. part identifies the notice: each part of a verification is sent
// once.
func (v *Verifier) notify(ctx context.Context, o verification, part, key string, fill ...string) {
	text := v.cfg.Text(ctx, o.room, key, fill...)
	if err := v.cfg.Rooms.Send(ctx, o.room, chat.Outgoing{ID: o.name + "-" + part, Text: text, Notice: true}); err != nil {
		v.cfg.Log.Error("matrix: verification: notice not stored", "person", o.person, "err", err)
	}
}

// Run runs the steps that the callbacks queue, until ctx ends.
func (v *Verifier) Run(ctx context.Context) error {
	return pace.RunWhenDue(ctx, v.cfg.Now, v.wake, func(ctx context.Context) time.Time {
		v.mu.Lock()
		todo := v.todo
		v.todo = nil
		v.mu.Unlock()
		for _, f := range todo {
			v.step(ctx, f)
		}
		return time.Time{}
	})
}

func (v *Verifier) step(ctx context.Context, f func(context.Context)) {
	defer func() {
		if r := recover(); r != nil {
			v.cfg.Log.Error("matrix: panic in a verification", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	f(ctx)
}

// cancel cancels a verification on the other side. The reason is the text why in the language of
// the room of the notices, if there is one.
func (v *Verifier) cancel(ctx context.Context, txn id.VerificationTransactionID, code event.VerificationCancelCode, why string) {
	o, _ := v.byTxn(txn)
	reason := v.cfg.Text(ctx, o.room, why)
	v.helperMu.Lock()
	defer v.helperMu.Unlock()
	err := v.helper.CancelVerification(ctx, txn, code, reason)
	if err != nil && !errors.Is(err, verificationhelper.ErrUnknownVerificationTransaction) {
		v.cfg.Log.Warn("matrix: verification: the other side is not told that it is cancelled", "err", err)
		_ = v.helper.DismissVerification(ctx, txn) // unknown transactions need no cleanup
	}
}

// abort cancels a verification and tells the person the text how.
func (v *Verifier) abort(ctx context.Context, txn id.VerificationTransactionID, code event.VerificationCancelCode, how string) {
	v.cancel(ctx, txn, code, how)
	v.finish(ctx, txn, how)
}

// finish removes a verification and tells the person the text how. It does nothing if the
// verification was over before.
func (v *Verifier) finish(ctx context.Context, txn id.VerificationTransactionID, how string) {
	if o, ok := v.remove(txn); ok {
		v.cfg.Log.Info("matrix: verification: over", "person", o.person, "device", o.device, "how", how)
		v.notify(ctx, o, "end", how)
	}
}

// accept accepts a request that admit has checked.
func (v *Verifier) accept(ctx context.Context, txn id.VerificationTransactionID, from id.UserID, device id.DeviceID) {
	request, err := v.store.GetVerificationTransaction(ctx, txn)
	if err != nil {
		return // cancelled meanwhile
	}
	room := v.noticeRoom(ctx, from, request.RoomID.String())
	if room == "" {
		v.cfg.Log.Info("matrix: verification: refused, because there is no room to show the emoji in", "person", from)
		v.cancel(ctx, txn, event.VerificationCancelCodeUser, "verify.no_room")
		return
	}
	if old, ok := v.byPerson(from.String()); ok { // the person has started again
		v.cancel(ctx, old.txn, event.VerificationCancelCodeUser, "verify.cancelled")
		v.remove(old.txn)
	}
	v.mu.Lock()
	v.open[txn] = &verification{txn: txn, person: from, device: device, room: room, name: "verify-" + rand.Text()}
	v.mu.Unlock()
	if v.cfg.Machine.CrossSigningKeys == nil {
		v.abort(ctx, txn, event.VerificationCancelCodeUser, "verify.no_identity")
		return
	}
	if request.RoomID != "" { // the helper's events there are encrypted for all members
		_, err = v.cfg.Rooms.PrepareSend(ctx, request.RoomID)
	}
	if err == nil {
		v.helperMu.Lock()
		err = v.helper.AcceptVerification(ctx, txn)
		v.helperMu.Unlock()
	}
	if err != nil {
		v.cfg.Log.Warn("matrix: verification: failed", "err", err)
		v.abort(ctx, txn, event.VerificationCancelCodeUser, "verify.failed")
		return
	}
	v.cfg.Log.Info("matrix: verification: accepted", "person", from, "device", device, "in_room", request.RoomID != "")
}

// ready is called when both sides have agreed. The side that asked starts.
func (v *Verifier) ready(ctx context.Context, txn id.VerificationTransactionID, device id.DeviceID, sas bool) {
	v.change(txn, func(o *verification) { o.device = device })
	if !sas {
		v.abort(ctx, txn, event.VerificationCancelCodeUnknownMethod, "verify.no_emoji")
	}
}

// showEmoji tells the person our emoji.
func (v *Verifier) showEmoji(ctx context.Context, txn id.VerificationTransactionID, emoji []rune, names []string) {
	if len(emoji) != 7 {
		v.abort(ctx, txn, event.VerificationCancelCodeUnknownMethod, "verify.no_emoji")
		return
	}
	o, ok := v.byTxn(txn)
	if !ok {
		return
	}
	list := strings.Join(strings.Split(string(emoji), ""), " · ")
	code := strings.ToLower(rand.Text()[:4])
	v.change(txn, func(o *verification) { o.stage, o.code = emojiShown, code })
	// In the log, too: the operator can compare there without trusting the room.
	v.cfg.Log.Info("matrix: verification: emoji", "person", o.person, "device", o.device, "emoji", strings.Join(names, ", "))
	v.notify(ctx, o, "emoji", "verify.emoji", "device", text.Clip(text.Clean(string(o.device)), 40), "emoji", list, "code", code)
}

func (v *Verifier) cancelled(ctx context.Context, txn id.VerificationTransactionID, code event.VerificationCancelCode, reason string) {
	v.cfg.Log.Info("matrix: verification: cancelled", "code", text.Clip(string(code), 60), "reason", text.Clip(text.Clean(reason), 200))
	how := "verify.cancelled"
	switch code {
	case event.VerificationCancelCodeTimeout:
		how = "verify.slow"
	case event.VerificationCancelCodeSASMismatch, event.VerificationCancelCodeKeyMismatch:
		how = "verify.mismatch"
	default: // cancelled by the person, or the two clients do not understand each other
	}
	v.finish(ctx, txn, how)
}

// noticeRoom returns the room for notices to a person: the room of the request if it is their direct
// chat, another direct chat with them, or the room of the request.
func (v *Verifier) noticeRoom(ctx context.Context, person id.UserID, room string) string {
	if with, err := v.cfg.Rooms.DirectWith(ctx, room); err == nil && with == person.String() {
		return room
	}
	direct, _ := v.cfg.Rooms.DirectChat(ctx, person.String()) // empty on an error
	return cmp.Or(direct, room)
}
