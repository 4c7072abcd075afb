package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// visitDevice is the device of a visit: the one that Dendrite makes with an account by registration
// secret. So neither registration nor a visit that was cut short leaves a device in the end.
const visitDevice = "shared_secret_registration"

// visit logs in, calls do, and logs out, so that no device of the visit is left.
// The Peer that do gets has no encryption.
func visit(ctx context.Context, cfg Config, do func(*Peer) error) error {
	client, err := newClient(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	_, err = client.Login(ctx, &mautrix.ReqLogin{
		Type:             mautrix.AuthTypePassword,
		Identifier:       mautrix.UserIdentifier{Type: mautrix.IdentifierTypeUser, User: cfg.User},
		Password:         cfg.Password,
		DeviceID:         visitDevice,
		StoreCredentials: true,
	})
	if err != nil {
		return fmt.Errorf("log in as %s on %s: %w", cfg.User, cfg.Homeserver, err)
	}
	err = do(&Peer{client: client})
	if _, out := client.Logout(ctx); out != nil {
		err = errors.Join(err, fmt.Errorf("log out as %s: %w", cfg.User, out))
	}
	return err
}

// CheckPassword logs cfg.User in and out. DB is not needed. It
// leaves no device of a registration by secret either.
func CheckPassword(ctx context.Context, cfg Config) error {
	return visit(ctx, cfg, func(*Peer) error { return nil })
}

// IsWrongPassword reports whether the homeserver refused a login for its password.
func IsWrongPassword(err error) bool { return errors.Is(err, mautrix.MForbidden) }

// EnsureDirectRoom makes an encrypted direct room of cfg.User with another user, and invites
// them. A room in which that user is already, or invited, is taken instead. No device is left;
// DB is not needed.
func EnsureDirectRoom(ctx context.Context, cfg Config, name, with string) (direct string, err error) {
	err = visit(ctx, cfg, func(p *Peer) error {
		joined, err := p.client.JoinedRooms(ctx)
		if err != nil {
			return fmt.Errorf("list the rooms of %s: %w", cfg.User, err)
		}
		for _, room := range joined.JoinedRooms {
			var member event.MemberEventContent
			err := p.client.StateEvent(ctx, room, event.StateMember, with, &member)
			if err != nil && !errors.Is(err, mautrix.MNotFound) {
				return fmt.Errorf("look who is in %s: %w", room, err)
			}
			if member.Membership == event.MembershipInvite || member.Membership == event.MembershipJoin {
				direct = room.String()
				return p.noteDirect(ctx, room, []id.UserID{id.UserID(with)})
			}
		}
		direct, err = p.CreateRoom(ctx, Room{Name: name, Direct: true, Encrypted: true, Invite: []string{with}})
		return err
	})
	return direct, err
}
