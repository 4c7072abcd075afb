// Package setup creates accounts on a homeserver. It also creates the encrypted room of a person
// and the bot.
package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
	"maunium.net/go/mautrix/synapseadmin"
)

// loginDevice is the device of withLogin. Dendrite creates it when an account is registered by
// secret. So neither a registration nor an interrupted login leaves a device behind in the end.
const loginDevice = "shared_secret_registration"

// Account is an account on a homeserver.
type Account struct {
	Homeserver string // base URL
	User       string // "@you:server" or "you"
	Password   string
}

// withLogin logs in, calls do, and logs out, so that no device is left. The client has no encryption.
func withLogin(ctx context.Context, cfg Account, do func(*mautrix.Client) error) error {
	client, err := mautrix.NewClient(cfg.Homeserver, "", "")
	if err != nil {
		return fmt.Errorf("homeserver %q: %w", cfg.Homeserver, err)
	}
	client.DefaultHTTPRetries, client.DefaultHTTPBackoff = 3, 500*time.Millisecond
	_, err = client.Login(ctx, &mautrix.ReqLogin{
		Type:             mautrix.AuthTypePassword,
		Identifier:       mautrix.UserIdentifier{Type: mautrix.IdentifierTypeUser, User: cfg.User},
		Password:         cfg.Password,
		DeviceID:         loginDevice,
		StoreCredentials: true,
	})
	if err != nil {
		return fmt.Errorf("log in as %s on %s: %w", cfg.User, cfg.Homeserver, err)
	}
	err = do(client)
	if _, out := client.Logout(ctx); out != nil {
		err = errors.Join(err, fmt.Errorf("log out as %s: %w", cfg.User, out))
	}
	return err
}

// CheckPassword logs cfg.User in and out. That also removes the device of a registration by secret.
func CheckPassword(ctx context.Context, cfg Account) error {
	return withLogin(ctx, cfg, func(*mautrix.Client) error { return nil })
}

// IsWrongPassword reports whether a login failed because of its password.
func IsWrongPassword(err error) bool { return errors.Is(err, mautrix.MForbidden) }

// EnsureDirectRoom creates an encrypted direct chat of cfg.User with another user and invites them. It
// returns an existing room that this user has joined or is invited to. It leaves no device.
func EnsureDirectRoom(ctx context.Context, cfg Account, name, with string) (direct string, err error) {
	err = withLogin(ctx, cfg, func(client *mautrix.Client) error {
		joined, err := client.JoinedRooms(ctx)
		if err != nil {
			return fmt.Errorf("list the rooms of %s: %w", cfg.User, err)
		}
		for _, room := range joined.JoinedRooms {
			var member event.MemberEventContent
			err := client.StateEvent(ctx, room, event.StateMember, with, &member)
			if err != nil && !errors.Is(err, mautrix.MNotFound) {
				return fmt.Errorf("look who is in %s: %w", room, err)
			}
			if member.Membership == event.MembershipInvite || member.Membership == event.MembershipJoin {
				direct = room.String()
				return AddDirect(ctx, client, room, id.UserID(with))
			}
		}
		created, err := client.CreateRoom(ctx, &mautrix.ReqCreateRoom{
			Name: name, IsDirect: true, Preset: "trusted_private_chat", Invite: []id.UserID{id.UserID(with)},
			InitialState: []*event.Event{{Type: event.StateEncryption,
				Content: event.Content{Parsed: &event.EncryptionEventContent{Algorithm: id.AlgorithmMegolmV1}}}},
		})
		if err != nil {
			return fmt.Errorf("create room: %w", err)
		}
		direct = created.RoomID.String()
		return AddDirect(ctx, client, created.RoomID, id.UserID(with))
	})
	return direct, err
}

// AddDirect adds the room to m.direct as a chat with user.
func AddDirect(ctx context.Context, client *mautrix.Client, room id.RoomID, user id.UserID) error {
	direct := event.DirectChatsEventContent{}
	err := client.GetAccountData(ctx, event.AccountDataDirectChats.Type, &direct)
	if err != nil && !errors.Is(err, mautrix.MNotFound) {
		return err
	}
	if !slices.Contains(direct[user], room) {
		direct[user] = append(direct[user], room)
	}
	return client.SetAccountData(ctx, event.AccountDataDirectChats.Type, direct)
}

// Registrar creates accounts on a homeserver whose registration secret is known.
type Registrar struct {
	URL    string // the homeserver's base URL
	Name   string // its server name: the part after the colon in user IDs
	Secret string // registration_shared_secret of its configuration
}

// Register creates the user @localpart:Name and returns that ID. An existing user is no error and
// keeps its password. Passwords have at least eight characters.
func (r Registrar) Register(ctx context.Context, localpart, password string) (string, error) {
	userID := "@" + localpart + ":" + r.Name
	client, err := mautrix.NewClient(r.URL, "", "")
	if err != nil {
		return "", fmt.Errorf("homeserver %q: %w", r.URL, err)
	}
	admin := synapseadmin.Client{Client: client}
	_, err = admin.SharedSecretRegister(ctx, r.Secret, synapseadmin.ReqSharedSecretRegister{Username: localpart, Password: password})
	if err != nil && !errors.Is(err, mautrix.MUserInUse) {
		return "", fmt.Errorf("register %s: %w", userID, err)
	}
	return userID, nil
}
