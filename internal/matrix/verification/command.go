package verification

import (
	"context"
	"slices"
	"strings"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/i18n"
)

// Command runs !verify of person in room and returns the text to show. An answer only affects
// verifications of that person.
func (v *Verifier) Command(ctx context.Context, person, room, args string) string {
	say := func(key string, fill ...string) string { return v.cfg.Text(ctx, room, key, fill...) }
	if !v.cfg.Rooms.Allowed(person) {
		return say("verify.stranger")
	}
	args = strings.ToLower(strings.TrimSpace(args))
	if word, code, _ := strings.Cut(args, " "); word == "yes" {
		return say(v.answerYes(ctx, person, strings.TrimSpace(code)))
	}
	switch args {
	case "":
		return v.explain(ctx, person, say)
	case "no":
		return say(v.answerNo(ctx, person))
	}
	return say("verify.usage")
}

// answerYes handles "yes" and returns the key of the reply text. The code binds the answer to one
// verification: a newer one, which the person has not seen, has another code.
func (v *Verifier) answerYes(ctx context.Context, person, code string) string {
	o, ok := v.byPerson(person)
	switch {
	case !ok:
		return "verify.none"
	case o.stage == confirmed:
		return "verify.thanks"
	case o.stage != emojiShown:
		return "verify.early"
	case o.code != code:
		return "verify.code"
	}
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	if !v.change(o.txn, func(o *verification) { o.stage = confirmed }) {
		return "verify.none"
	}
	if err := v.confirm(ctx, o.txn); err != nil {
		v.cfg.Log.Warn("matrix: verification: failed", "person", person, "err", err)
		v.cancel(ctx, o.txn, event.VerificationCancelCodeUser, "verify.failed")
		v.remove(o.txn)
		return "verify.failed"
	}
	return "verify.thanks"
}

// answerNo handles "no" and returns the key of the reply text.
func (v *Verifier) answerNo(ctx context.Context, person string) string {
	o, ok := v.byPerson(person)
	if !ok {
		return "verify.none"
	}
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	code, how := event.VerificationCancelCodeSASMismatch, "verify.mismatch"
	if o.stage == requested {
		code, how = event.VerificationCancelCodeUser, "verify.cancelled"
	}
	v.cancel(ctx, o.txn, code, how)
	v.remove(o.txn)
	v.cfg.Log.Info("matrix: verification: over", "person", person, "device", o.device, "how", how)
	return how
}

// explain returns the bot's identity and how to verify.
func (v *Verifier) explain(ctx context.Context, person string, say i18n.Say) string {
	m := v.cfg.Machine
	own := m.OwnIdentity()
	lines := []string{say("verify.self", "user", own.UserID.String(), "device", own.DeviceID.String(),
		"fingerprint", Fingerprint(own.SigningKey.String()))}
	trusted, err := m.IsUserTrusted(ctx, id.UserID(person))
	switch {
	case m.CrossSigningKeys == nil:
		lines = append(lines, say("verify.no_identity"))
	case err == nil && trusted:
		lines = append(lines, say("verify.again"), say("verify.how"))
	default:
		lines = append(lines, say("verify.not_yet"), say("verify.how"))
	}
	return strings.Join(lines, "\n\n")
}

// Fingerprint formats a key in groups of four, like other clients.
func Fingerprint(key string) string {
	var groups []string
	for group := range slices.Chunk([]byte(key), 4) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, " ")
}
