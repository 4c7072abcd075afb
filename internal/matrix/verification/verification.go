// Package verification verifies people by emoji (SAS). It runs in the room or to the device,
// started by the person, who confirms with the code shown beside the emoji.
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
	"reverie/internal/matrix/retry"
	"reverie/internal/text"
)

// stepTime is for what we do ourselves in one step. The library ends a verification that takes
// longer than ten minutes.
const stepTime = time.Minute

// stage is how far a verification has come.
type stage int

const (
	asked     stage = iota // a request was accepted
	compared               // the emoji are shown, and the person is to compare them
	confirmed              // the person said that they match
)

// verification is one that is under way.
type verification struct {
	txn    id.VerificationTransactionID
	person id.UserID
	device id.DeviceID // theirs, once known
	room   string      // where the person is told
	name   string      // of its notices in the outbox
	stage  stage
	code   string                // shown with the emoji; the person confirms with it
	held   func(context.Context) // gives the library their confirmation; nil until it comes
}

// Config is what a Verifier needs.
type Config struct {
	Client  *mautrix.Client
	Machine *crypto.OlmMachine
	Log     *slog.Logger
	Now     func() time.Time
	Rooms   Rooms

	// Text is a sentence in the language of room.
	Text func(ctx context.Context, room, key string, fill ...string) string
}

// Rooms is what a Verifier asks of the Matrix client.
type Rooms interface {
	// Send makes a message durable that is to be sent.
	Send(ctx context.Context, room string, m chat.Outgoing) error
	// Allowed tells whether user may talk to us.
	Allowed(user string) bool
	// PrepareSend fetches the room's state and fails where an event must not be sent.
	PrepareSend(ctx context.Context, room id.RoomID) error
	// DirectWith is the person with whom a room is private; empty when it is not.
	DirectWith(ctx context.Context, room string) (string, error)
	// DirectChat is a room that is private with person; empty when there is none.
	DirectChat(ctx context.Context, person string) (string, error)
}

// Verifier leads people through verifications: each sees the same seven emoji
// in two places, ours being a notice in a room, and says whether they match.
// We never say so ourselves.
type Verifier struct {
	cfg    Config
	helper *verificationhelper.VerificationHelper
	store  *transactions
	turn   sync.Mutex // held while the library works on an event or on an answer
	wake   chan struct{}

	mu   sync.Mutex // never held while calling anything
	open map[id.VerificationTransactionID]*verification
	todo []func(context.Context)
}

func (v *Verifier) do(f func(context.Context)) {
	v.mu.Lock()
	v.todo = append(v.todo, f)
	v.mu.Unlock()
	retry.Wake(v.wake)
}

// Open are the ids of the verifications that are under way.
func (v *Verifier) Open() (txns []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for txn := range v.open {
		txns = append(txns, txn.String())
	}
	return txns
}

// find returns a copy of an open verification.
func (v *Verifier) find(match func(*verification) bool) (verification, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, o := range v.open {
		if match(o) {
			return *o, true
		}
	}
	return verification{}, false
}

func (v *Verifier) byTxn(txn id.VerificationTransactionID) (verification, bool) {
	return v.find(func(o *verification) bool { return o.txn == txn })
}

func (v *Verifier) byPerson(person string) (verification, bool) {
	return v.find(func(o *verification) bool { return o.person.String() == person })
}

// change changes an open verification; false when it is over.
func (v *Verifier) change(txn id.VerificationTransactionID, f func(*verification)) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	o := v.open[txn]
	if o != nil {
		f(o)
	}
	return o != nil
}

// remove ends a verification; false when it was over before.
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

// say tells the person something, by the name of a sentence. part makes the notice's
// name: the same part of the same verification is said once.
func (v *Verifier) say(ctx context.Context, o verification, part, key string, fill ...string) {
	text := v.cfg.Text(ctx, o.room, key, fill...)
	if err := v.cfg.Rooms.Send(ctx, o.room, chat.Outgoing{ID: o.name + "-" + part, Text: text, Notice: true}); err != nil {
		v.cfg.Log.Error("matrix: verification: notice not stored", "person", o.person, "err", err)
	}
}

// Run does what the library's callbacks have left to do, until ctx ends.
func (v *Verifier) Run(ctx context.Context) error {
	return retry.Loop(ctx, v.cfg.Now, v.wake, func(ctx context.Context) time.Time {
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

// cancel tells the other side that it is over, if it can be told, and why, by the name of a
// sentence: in the language of the room where the person is told, if there is one.
func (v *Verifier) cancel(ctx context.Context, txn id.VerificationTransactionID, code event.VerificationCancelCode, why string) {
	o, _ := v.byTxn(txn)
	reason := v.cfg.Text(ctx, o.room, why)
	v.turn.Lock()
	defer v.turn.Unlock()
	err := v.helper.CancelVerification(ctx, txn, code, reason)
	if err != nil && !errors.Is(err, verificationhelper.ErrUnknownVerificationTransaction) {
		v.cfg.Log.Warn("matrix: verification: the other side is not told that it is cancelled", "err", err)
		_ = v.helper.DismissVerification(ctx, txn) // unknown: nothing to forget
	}
}

// end tells both sides that a verification is over, and how, by the name of a sentence.
func (v *Verifier) end(ctx context.Context, txn id.VerificationTransactionID, code event.VerificationCancelCode, how string) {
	v.cancel(ctx, txn, code, how)
	v.over(ctx, txn, how)
}

// over ends a verification and says how, by the name of a sentence, unless it was over before.
func (v *Verifier) over(ctx context.Context, txn id.VerificationTransactionID, how string) {
	if o, ok := v.remove(txn); ok {
		v.cfg.Log.Info("matrix: verification: over", "person", o.person, "device", o.device, "how", how)
		v.say(ctx, o, "end", how)
	}
}

// accept answers a request. Who sent it has been judged.
func (v *Verifier) accept(ctx context.Context, txn id.VerificationTransactionID, from id.UserID, device id.DeviceID) {
	asked, err := v.store.GetVerificationTransaction(ctx, txn)
	if err != nil {
		return // cancelled again
	}
	room := v.place(ctx, from, asked.RoomID.String())
	if room == "" {
		v.cfg.Log.Info("matrix: verification: refused, because there is no room to show the emoji in", "person", from)
		v.cancel(ctx, txn, event.VerificationCancelCodeUser, "verify.no_room")
		return
	}
	if old, ok := v.byPerson(from.String()); ok { // they have begun anew
		v.cancel(ctx, old.txn, event.VerificationCancelCodeUser, "verify.cancelled")
		v.remove(old.txn)
	}
	v.mu.Lock()
	v.open[txn] = &verification{txn: txn, person: from, device: device, room: room, name: "verify-" + rand.Text()}
	v.mu.Unlock()
	if v.cfg.Machine.CrossSigningKeys == nil {
		v.end(ctx, txn, event.VerificationCancelCodeUser, "verify.no_identity")
		return
	}
	if asked.RoomID != "" { // what the library sends there is encrypted, and for everybody in it
		err = v.cfg.Rooms.PrepareSend(ctx, asked.RoomID)
	}
	if err == nil {
		v.turn.Lock()
		err = v.helper.AcceptVerification(ctx, txn)
		v.turn.Unlock()
	}
	if err != nil {
		v.cfg.Log.Warn("matrix: verification: failed", "err", err)
		v.end(ctx, txn, event.VerificationCancelCodeUser, "verify.failed")
		return
	}
	v.cfg.Log.Info("matrix: verification: accepted", "person", from, "device", device, "in_room", asked.RoomID != "")
}

// ready is called when both sides have agreed. Who has asked begins.
func (v *Verifier) ready(ctx context.Context, txn id.VerificationTransactionID, device id.DeviceID, sas bool) {
	v.change(txn, func(o *verification) { o.device = device })
	if !sas {
		v.end(ctx, txn, event.VerificationCancelCodeUnknownMethod, "verify.no_emoji")
	}
}

// show tells the person which emoji we see.
func (v *Verifier) show(ctx context.Context, txn id.VerificationTransactionID, emoji []rune, names []string) {
	if len(emoji) != 7 {
		v.end(ctx, txn, event.VerificationCancelCodeUnknownMethod, "verify.no_emoji")
		return
	}
	o, ok := v.byTxn(txn)
	if !ok {
		return
	}
	list := strings.Join(strings.Split(string(emoji), ""), " · ")
	code := strings.ToLower(rand.Text()[:4])
	v.change(txn, func(o *verification) { o.stage, o.code = compared, code })
	// In the log, too: who can read it compares without trusting the room.
	v.cfg.Log.Info("matrix: verification: emoji", "person", o.person, "device", o.device, "emoji", strings.Join(names, ", "))
	v.say(ctx, o, "emoji", "verify.emoji", "device", text.Clip(text.Clean(string(o.device)), 40), "emoji", list, "code", code)
}

func (v *Verifier) cancelled(ctx context.Context, txn id.VerificationTransactionID, code event.VerificationCancelCode, reason string) {
	v.cfg.Log.Info("matrix: verification: cancelled", "code", text.Clip(string(code), 60), "reason", text.Clip(text.Clean(reason), 200))
	how := "verify.cancelled"
	switch code {
	case event.VerificationCancelCodeTimeout:
		how = "verify.slow"
	case event.VerificationCancelCodeSASMismatch, event.VerificationCancelCodeKeyMismatch:
		how = "verify.mismatch"
	default: // by the person, or because the two clients do not understand each other
	}
	v.over(ctx, txn, how)
}

// place finds the room in which a person is told: the one of the request if it
// is a direct chat, or another direct chat with them, or any room at all.
func (v *Verifier) place(ctx context.Context, person id.UserID, room string) string {
	if with, err := v.cfg.Rooms.DirectWith(ctx, room); err == nil && with == person.String() {
		return room
	}
	direct, _ := v.cfg.Rooms.DirectChat(ctx, person.String()) // when in doubt there is none
	return cmp.Or(direct, room)
}
