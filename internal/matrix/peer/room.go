package peer

import (
	"context"
	"fmt"
	"net/http"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/matrix/setup"
)

// Room describes a room to create.
type Room struct {
	Name      string
	Direct    bool     // a direct chat: marked as such in the invitations and in this person's m.direct
	Encrypted bool     // end-to-end encrypted from the first message on
	Invite    []string // user IDs
}

// CreateRoom creates a room, invites people, and returns the room ID.
func (p *Peer) CreateRoom(ctx context.Context, room Room) (string, error) {
	request := &mautrix.ReqCreateRoom{Name: room.Name, IsDirect: room.Direct, Preset: "private_chat"}
	if room.Direct {
		request.Preset = "trusted_private_chat"
	}
	for _, user := range room.Invite {
		request.Invite = append(request.Invite, id.UserID(user))
	}
	if room.Encrypted {
		request.InitialState = []*event.Event{{Type: event.StateEncryption,
			Content: event.Content{Parsed: &event.EncryptionEventContent{Algorithm: id.AlgorithmMegolmV1}}}}
	}
	// mautrix's own method marks all invited users as invited afterwards, even those who have joined
	// meanwhile; the sync has the right order.
	var made mautrix.RespCreateRoom
	if _, err := p.client.MakeRequest(ctx, http.MethodPost, p.client.BuildClientURL("v3", "createRoom"), request, &made); err != nil {
		return "", fmt.Errorf("create room: %w", err)
	}
	if !room.Direct {
		return made.RoomID.String(), nil
	}
	for _, user := range request.Invite {
		if err := setup.AddDirect(ctx, p.client, made.RoomID, user); err != nil {
			return "", fmt.Errorf("create room: note %s as a direct chat: %w", made.RoomID, err)
		}
	}
	return made.RoomID.String(), nil
}

// Join joins a room that this peer was invited to.
func (p *Peer) Join(ctx context.Context, room string) error {
	_, err := p.client.JoinRoomByID(ctx, id.RoomID(room))
	if err != nil {
		return fmt.Errorf("join %s: %w", room, err)
	}
	return nil
}

// Leave leaves a room.
func (p *Peer) Leave(ctx context.Context, room string) error {
	_, err := p.client.LeaveRoom(ctx, id.RoomID(room))
	if err != nil {
		return fmt.Errorf("leave %s: %w", room, err)
	}
	p.mu.Lock()
	delete(p.complete, id.RoomID(room)) // its state becomes outdated from now on
	p.mu.Unlock()
	return nil
}

// Upgrade upgrades a room to another version, invites people to the new one, and returns its ID.
func (p *Peer) Upgrade(ctx context.Context, room, version string, invite ...string) (string, error) {
	var made struct {
		Room id.RoomID `json:"replacement_room"`
	}
	_, err := p.client.MakeRequest(ctx, http.MethodPost, p.client.BuildClientURL("v3", "rooms", room, "upgrade"), map[string]string{"new_version": version}, &made)
	if err != nil {
		return "", fmt.Errorf("upgrade %s: %w", room, err)
	}
	for _, user := range invite {
		if _, err := p.client.InviteUser(ctx, made.Room, &mautrix.ReqInviteUser{UserID: id.UserID(user)}); err != nil {
			return "", fmt.Errorf("invite %s to %s: %w", user, made.Room, err)
		}
	}
	return made.Room.String(), nil
}

// WaitJoined waits until this peer sees that user has joined the room, or until ctx ends.
//
// It also asks the server: the state that CreateRoom fetches may be older than a join in a sync and
// undo it.
func (p *Peer) WaitJoined(ctx context.Context, room, user string) error {
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		if p.client.StateStore.IsInRoom(ctx, id.RoomID(room), id.UserID(user)) {
			return nil
		}
		if _, err := p.client.JoinedMembers(ctx, id.RoomID(room)); err == nil && p.client.StateStore.IsInRoom(ctx, id.RoomID(room), id.UserID(user)) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to join %s: %w", user, room, context.Cause(ctx))
		}
	}
}
