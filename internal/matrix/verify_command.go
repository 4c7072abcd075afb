package matrix

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"go.mau.fi/util/jsontime"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto/verificationhelper"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// Verify is the command !verify: what person asks for or answers in room. The
// text is for them. An answer counts for verifications of that person only.
func (c *Client) Verify(ctx context.Context, person, room, args string) (string, error) {
	v := c.verifier
	if !c.gate.allows(person) {
		return "I do not verify people I do not listen to.", nil
	}
	switch strings.ToLower(strings.TrimSpace(args)) {
	case "":
		return v.explain(ctx, person)
	case "start":
		return v.start(ctx, id.UserID(person), room)
	case "yes":
		return v.answerYes(ctx, person), nil
	case "no":
		return v.answerNo(ctx, person), nil
	}
	return "I understand `!verify`, `!verify start`, `!verify yes` and `!verify no`.", nil
}

func (v *verifier) answerYes(ctx context.Context, person string) string {
	o, ok := v.byPerson(person)
	switch {
	case !ok:
		return "There is no verification to answer. `!verify` says how to begin one."
	case o.stage == confirmed:
		return "You have confirmed it already. Your client has to be told, too, that the emoji match."
	case o.stage != compared:
		return "The emoji are not there yet: accept the verification in your client first."
	}
	ctx, cancel := context.WithTimeout(ctx, verifyStep)
	defer cancel()
	if !v.change(o.txn, func(o *verification) { o.stage = confirmed }) {
		return "The verification is over already."
	}
	if err := v.confirm(ctx, o.txn); err != nil {
		v.c.log.Warn("matrix: verification: failed", "person", person, "err", err)
		v.cancel(ctx, o.txn, event.VerificationCancelCodeUser, "it failed here")
		v.remove(o.txn)
		return "The verification failed on my side. Nobody was verified. `!verify` says how to try again."
	}
	return "Thank you. If you have not done so yet, tell your client, too, that the emoji match."
}

func (v *verifier) answerNo(ctx context.Context, person string) string {
	o, ok := v.byPerson(person)
	if !ok {
		return "There is no verification to answer. `!verify` says how to begin one."
	}
	ctx, cancel := context.WithTimeout(ctx, verifyStep)
	defer cancel()
	if o.stage == asked {
		v.cancel(ctx, o.txn, event.VerificationCancelCodeUser, "cancelled")
		v.remove(o.txn)
		return "Cancelled. Nobody was verified."
	}
	v.cancel(ctx, o.txn, event.VerificationCancelCodeSASMismatch, "the emoji do not match")
	v.remove(o.txn)
	v.c.log.Warn("matrix: verification: the emoji do not match", "person", person, "device", o.device)
	return mismatch
}

// start asks a person to verify: in a direct chat by a message there, so that
// all of their clients see it, else by asking their devices.
func (v *verifier) start(ctx context.Context, person id.UserID, room string) (string, error) {
	c := v.c
	if c.machine().CrossSigningKeys == nil {
		return noIdentity, nil
	}
	if old, ok := v.byPerson(person.String()); ok {
		v.cancel(ctx, old.txn, event.VerificationCancelCodeUser, "a newer verification takes its place")
		v.remove(old.txn)
	}
	ctx, cancel := context.WithTimeout(ctx, verifyStep)
	defer cancel()
	in := id.RoomID("")
	if room != "" && v.private(ctx, room) {
		in = id.RoomID(room)
	}
	v.turn.Lock() // the answer must not come before we know what it is about
	defer v.turn.Unlock()
	txn, err := v.request(ctx, person, in)
	if err != nil {
		c.log.Warn("matrix: verification: request not sent", "person", person, "err", err)
		return "I could not ask your client. Try again later, or begin in your client: open my profile there and choose to verify.", nil
	}
	v.add(verification{txn: txn, person: person, room: v.place(ctx, person, room), ours: true})
	return "I have asked your client to verify. Accept it there; then I show my emoji.", nil
}

func (v *verifier) request(ctx context.Context, person id.UserID, room id.RoomID) (id.VerificationTransactionID, error) {
	if room == "" {
		return v.helper.StartVerification(ctx, person)
	}
	if err := v.prepare(ctx, room); err != nil {
		return "", err
	}
	resp, err := v.c.cli.SendMessageEvent(ctx, room, event.EventMessage, &event.MessageEventContent{
		MsgType: event.MsgVerificationRequest, FromDevice: v.c.cli.DeviceID, To: person, Methods: []event.VerificationMethod{event.VerificationMethodSAS},
		Body: v.c.UserID() + " would like to verify you, but your client does not know how to. Another client may.",
	}, mautrix.ReqSendEvent{TransactionID: "verify-" + rand.Text()})
	if err != nil {
		return "", err
	}
	txn := id.VerificationTransactionID(resp.EventID)
	return txn, v.store.SaveVerificationTransaction(ctx, verificationhelper.VerificationTransaction{
		ExpirationTime: jsontime.UM(v.c.now().Add(verifyTime)), RoomID: room,
		VerificationState: verificationhelper.VerificationStateRequested, TransactionID: txn, TheirUserID: person,
	})
}

func (v *verifier) explain(ctx context.Context, person string) (string, error) {
	m := v.c.machine()
	own := m.OwnIdentity()
	lines := []string{fmt.Sprintf("I am %s, device `%s`, with the fingerprint `%s`.", own.UserID, own.DeviceID, Fingerprint(own.SigningKey.String()))}
	trusted, err := m.IsUserTrusted(ctx, id.UserID(person))
	switch {
	case m.CrossSigningKeys == nil:
		lines = append(lines, noIdentity)
	case err == nil && trusted:
		lines = append(lines, "You are verified: I know your identity. To do it again:")
	default:
		lines = append(lines, "You are not verified yet. To do it:")
	}
	if o, ok := v.byPerson(person); ok {
		switch o.stage {
		case asked:
			lines = append(lines, "A verification is under way: accept it in your client. `!verify no` cancels it.")
		case compared:
			lines = append(lines, "A verification is under way: compare the emoji and answer `!verify yes` or `!verify no`.")
		case confirmed:
			lines = append(lines, "A verification is under way: tell your client, too, that the emoji match.")
		}
		return strings.Join(lines, "\n\n"), nil
	}
	if m.CrossSigningKeys != nil {
		lines = append(lines, "- in your client open my profile and choose to verify; or say `!verify start`, and I ask your client\n"+
			"- your client shows seven emoji, and I show mine here: compare them\n"+
			"- tell your client what you saw, and answer `!verify yes` or `!verify no`")
	}
	return strings.Join(lines, "\n\n"), nil
}

// Fingerprint writes a key in groups of four, as other clients do.
func Fingerprint(key string) string {
	var b strings.Builder
	for i, r := range key {
		if i > 0 && i%4 == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}
