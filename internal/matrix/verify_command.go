package matrix

import (
	"context"
	"strings"

	"reverie/internal/i18n"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// Verify is the command !verify: what person asks for or answers in room. The
// text is for them. An answer counts for verifications of that person only.
func (c *Client) Verify(ctx context.Context, person, room, args string) (string, error) {
	v := c.verifier
	say := c.said(ctx, room)
	if !c.gate.allows(person) {
		return say("verify.stranger"), nil
	}
	args = strings.ToLower(strings.TrimSpace(args))
	if word, code, _ := strings.Cut(args, " "); word == "yes" {
		return say(v.answerYes(ctx, person, strings.TrimSpace(code))), nil
	}
	switch args {
	case "":
		return v.explain(ctx, person, say)
	case "no":
		return say(v.answerNo(ctx, person)), nil
	}
	return say("verify.usage"), nil
}

// answerYes names the sentence that answers the person. The code binds the answer to one
// verification: a newer one, which the person has not seen, has another code.
func (v *verifier) answerYes(ctx context.Context, person, code string) string {
	o, ok := v.byPerson(person)
	switch {
	case !ok:
		return "verify.none"
	case o.stage == confirmed:
		return "verify.confirmed"
	case o.stage != compared:
		return "verify.early"
	case o.code != code:
		return "verify.code"
	}
	ctx, cancel := context.WithTimeout(ctx, verifyStep)
	defer cancel()
	if !v.change(o.txn, func(o *verification) { o.stage = confirmed }) {
		return "verify.over"
	}
	if err := v.confirm(ctx, o.txn); err != nil {
		v.c.log.Warn("matrix: verification: failed", "person", person, "err", err)
		v.cancel(ctx, o.txn, event.VerificationCancelCodeUser, "verify.reason.failed")
		v.remove(o.txn)
		return "verify.failed"
	}
	return "verify.thanks"
}

// answerNo names the sentence that answers the person.
func (v *verifier) answerNo(ctx context.Context, person string) string {
	o, ok := v.byPerson(person)
	if !ok {
		return "verify.none"
	}
	ctx, cancel := context.WithTimeout(ctx, verifyStep)
	defer cancel()
	if o.stage == asked {
		v.cancel(ctx, o.txn, event.VerificationCancelCodeUser, "verify.reason.cancelled")
		v.remove(o.txn)
		return "verify.cancelled_by_you"
	}
	v.cancel(ctx, o.txn, event.VerificationCancelCodeSASMismatch, "verify.reason.mismatch")
	v.remove(o.txn)
	v.c.log.Warn("matrix: verification: the emoji do not match", "person", person, "device", o.device)
	return "verify.mismatch"
}

func (v *verifier) explain(ctx context.Context, person string, say i18n.Say) (string, error) {
	m := v.c.machine()
	own := m.OwnIdentity()
	lines := []string{say("verify.self", "user", own.UserID.String(), "device", own.DeviceID.String(), "fingerprint", Fingerprint(own.SigningKey.String()))}
	trusted, err := m.IsUserTrusted(ctx, id.UserID(person))
	switch {
	case m.CrossSigningKeys == nil:
		lines = append(lines, say("verify.no_identity"))
	case err == nil && trusted:
		lines = append(lines, say("verify.again"))
	default:
		lines = append(lines, say("verify.not_yet"))
	}
	if o, ok := v.byPerson(person); ok {
		switch o.stage {
		case asked:
			lines = append(lines, say("verify.accept"))
		case compared:
			lines = append(lines, say("verify.compare"))
		case confirmed:
			lines = append(lines, say("verify.tell"))
		}
		return strings.Join(lines, "\n\n"), nil
	}
	if m.CrossSigningKeys != nil {
		lines = append(lines, say("verify.how"))
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
