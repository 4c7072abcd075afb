package matrix

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
	"maunium.net/go/mautrix/sqlstatestore"

	"reverie/internal/matrix/retry"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/text"
)

// joinTries is how often joining or refusing is tried. Joining over federation
// can take a while; an invitation from a server that is gone never works.
const joinTries = 12

// refuseAtOnce is how many invitations are refused before the others are looked
// at again: who sends thousands must not hold up those that are welcome, nor use
// up what the homeserver allows us.
const refuseAtOnce = 10

// onMember follows our own membership: invitations, joining, leaving.
func (c *Client) onMember(ctx context.Context, b *batch, evt *event.Event) error {
	if evt.GetStateKey() != c.cli.UserID.String() {
		return c.watch(ctx, b, evt)
	}
	content, ok := evt.Content.Parsed.(*event.MemberEventContent)
	if !ok {
		return nil
	}
	c.member.Lock()
	defer c.member.Unlock()
	c.memberships[evt.RoomID]++
	switch content.Membership {
	case event.MembershipInvite:
		if evt.Mautrix.EventSource&event.SourceInvite != 0 {
			return c.invited(ctx, evt.RoomID, evt.Sender, content.IsDirect)
		}
	case event.MembershipJoin:
		if evt.Mautrix.EventSource&event.SourceJoin == 0 {
			return nil
		}
		if prev := evt.Unsigned.PrevContent; prev == nil || prev.Raw["membership"] != string(event.MembershipJoin) {
			c.forgetState(evt.RoomID) // others may have come or gone while we were not there
		}
		err := errors.Join(c.setMembership(ctx, evt.RoomID, "joined"), c.holdBack(ctx, evt.RoomID))
		retry.Wake(c.roomWake) // now that it is noted: the room may take the place of another one
		return err
	case event.MembershipLeave, event.MembershipBan:
		if evt.Mautrix.EventSource&event.SourceLeave != 0 {
			return c.left(ctx, evt.RoomID)
		}
	default: // knock, and what later versions invent
	}
	return nil
}

// invited notes an invitation, to be accepted or refused by runRooms. A direct chat is one with
// who invited us to it first.
func (c *Client) invited(ctx context.Context, room id.RoomID, by id.UserID, direct bool) error {
	membership, with := "refused", id.UserID("")
	if c.gate.allows(by.String()) {
		membership = "invited"
		if direct {
			with = by
		}
	}
	_, err := c.cfg.DB.ExecContext(ctx, `INSERT INTO matrix_room (id, membership, direct_with, inviter) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET membership = excluded.membership, inviter = excluded.inviter, attempts = 0, next_at = 0,
			direct_with = CASE direct_with WHEN '' THEN excluded.direct_with ELSE direct_with END`,
		room.String(), membership, with.String(), by.String())
	if err == nil && membership == "invited" {
		err = c.holdBack(ctx, room)
	}
	if err != nil {
		return fmt.Errorf("note an invitation: %w", err)
	}
	c.log.Info("matrix: invitation", "room", room, "sender", by, "direct", direct, "accepted", membership == "invited")
	retry.Wake(c.roomWake)
	return nil
}

func (c *Client) left(ctx context.Context, room id.RoomID) error {
	// Of an unknown room there is nothing to clear.
	was, _ := store.Value[string](ctx, c.cfg.DB, `SELECT membership FROM matrix_room WHERE id = ?`, room.String())
	c.forgetState(room)
	if err := c.setMembership(ctx, room, "left"); err != nil || was != "joined" {
		return err
	}
	c.log.Info("matrix: no longer in this room", "room", room)
	c.dropDrafts(room.String())
	c.typing.set(room.String(), false)
	if c.handler != nil {
		c.handler.RoomLeft(room.String())
	}
	return c.inbox.Leave(ctx, room.String())
}

func (c *Client) setMembership(ctx context.Context, room id.RoomID, membership string) error {
	_, err := c.cfg.DB.ExecContext(ctx, `INSERT INTO matrix_room (id, membership) VALUES (?, ?)
		ON CONFLICT (id) DO UPDATE SET membership = excluded.membership, attempts = 0, next_at = 0`, room.String(), membership)
	return doing("note a membership", err)
}

// onEncryption remembers that a room is encrypted, for ever: encryption cannot
// be turned off, and who says otherwise must not be believed.
func (c *Client) onEncryption(ctx context.Context, _ *batch, evt *event.Event) error {
	return c.markEncrypted(ctx, evt.RoomID)
}

func (c *Client) markEncrypted(ctx context.Context, room id.RoomID) error {
	_, err := c.cfg.DB.ExecContext(ctx,
		`INSERT INTO matrix_room (id, encrypted) VALUES (?, 1) ON CONFLICT (id) DO UPDATE SET encrypted = 1`, room.String())
	return doing("note that a room is encrypted", err)
}

// facts gathers what the gate must know of a room.
func (c *Client) facts(ctx context.Context, room id.RoomID) (f roomFacts, err error) {
	err = c.cfg.DB.QueryRowContext(ctx, `SELECT direct_with, exposed, encrypted FROM matrix_room WHERE id = ?`, room.String()).
		Scan(&f.with, &f.exposed, &f.encrypted)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return f, fmt.Errorf("look up a room: %w", err)
	}
	enc, err := c.cli.StateStore.IsEncrypted(ctx, room)
	if err != nil {
		return f, fmt.Errorf("look up the encryption of a room: %w", err)
	}
	f.encrypted = f.encrypted || enc
	members, err := c.cli.StateStore.GetRoomJoinedOrInvitedMembers(ctx, room)
	if err != nil {
		return f, fmt.Errorf("look up the members of a room: %w", err)
	}
	f.members = len(members)
	kept := settings.Store{DB: c.cfg.DB}
	set, err := kept.All(ctx, room.String())
	if err != nil {
		return f, err
	}
	f.open = set[settings.Mention] == "off"
	switch direct := set[settings.Direct]; {
	case direct == "off":
		f.with = ""
	case direct == "on" && f.with == "":
		if f.with, err = kept.Person(ctx, room.String(), settings.Direct); err != nil {
			return f, err
		}
	}
	if !f.exposed {
		if f.exposed, err = c.exposedNow(ctx, room, f.with); err != nil {
			return f, err
		}
	}
	f.name = c.displayName(ctx, room, c.cli.UserID)
	f.unproven, err = c.acc.Devices.Unproven(ctx, f.encrypted, id.UserID(f.with))
	return f, err
}

// everEncrypted tells whether somebody noted that a room is encrypted: for good, whatever
// the homeserver says now.
func (c *Client) everEncrypted(ctx context.Context, room id.RoomID) (bool, error) {
	ever, err := store.Value[bool](ctx, c.cfg.DB, `SELECT encrypted FROM matrix_room WHERE id = ?`, room.String())
	return ever, doing("look up a room", err)
}

// displayName is what a member is called in the room; empty when unknown.
func (c *Client) displayName(ctx context.Context, room id.RoomID, user id.UserID) string {
	m, err := c.cli.StateStore.(*sqlstatestore.SQLStateStore).TryGetMember(ctx, room, user)
	if err != nil || m == nil {
		return ""
	}
	return text.Clip(strings.ReplaceAll(text.Clean(m.Displayname), "\n", " "), 100)
}

// runRooms accepts and refuses invitations, those of the last run included.
func (c *Client) runRooms(ctx context.Context) error {
	return retry.Loop(ctx, c.now, c.roomWake, func(ctx context.Context) time.Time {
		next, err := c.settleInvitations(ctx)
		if err != nil {
			c.log.Error("matrix: invitations", "err", err)
			next = c.now().Add(time.Minute)
		}
		if at, err := c.followUpgrades(ctx); err == nil {
			next = earlier(next, at)
		} else if ctx.Err() == nil {
			c.log.Error("matrix: replaced rooms", "err", err)
			next = earlier(next, c.now().Add(time.Minute))
		}
		return next
	})
}

type invitation struct {
	room, membership, inviter string
	with                      string // the person whose direct chat it is; empty = it is none
	attempts                  int
	nextAt                    int64
}

// settleInvitations acts on what is due and returns when to look again.
func (c *Client) settleInvitations(ctx context.Context) (next time.Time, err error) {
	next = c.now().Add(time.Hour)
	list, err := c.invitations(ctx)
	if err != nil {
		return next, err
	}
	refused := 0
	for _, v := range list {
		if at := time.UnixMilli(v.nextAt); at.After(c.now()) {
			next = earlier(next, at)
			continue
		}
		if v.membership == "refused" {
			if refused++; refused > refuseAtOnce {
				return c.now().Add(c.pace.refuse), nil
			}
		}
		err := c.settle(ctx, v)
		if ctx.Err() != nil {
			return next, nil
		}
		verdict, wait := retry.Classify(err, v.attempts)
		switch {
		case verdict == retry.Fine:
			continue
		case verdict == retry.Never || v.attempts+1 >= joinTries:
			c.log.Warn("matrix: invitation dropped", "room", v.room, "sender", v.inviter, "err", err)
			if err := c.setMembership(ctx, id.RoomID(v.room), "left"); err != nil {
				return next, err
			}
			continue
		}
		at := c.now().Add(wait)
		next = earlier(next, at)
		c.log.Warn("matrix: invitation not settled; trying again", "room", v.room, "in", wait.Round(time.Second), "err", err)
		if _, err := c.cfg.DB.ExecContext(ctx, `UPDATE matrix_room SET attempts = attempts + 1, next_at = ? WHERE id = ?`,
			at.UnixMilli(), v.room); err != nil {
			return next, err
		}
	}
	return next, nil
}

func (c *Client) invitations(ctx context.Context) ([]invitation, error) {
	return store.List(ctx, c.cfg.DB, func(r store.Row) (v invitation, err error) {
		err = r.Scan(&v.room, &v.membership, &v.inviter, &v.with, &v.attempts, &v.nextAt)
		return v, err
	}, `SELECT id, membership, inviter, direct_with, attempts, next_at FROM matrix_room
		WHERE membership IN ('invited', 'refused') ORDER BY membership, next_at, id`) // those that are accepted first
}

// settle joins or refuses. Both can be repeated without harm. That a chat is
// direct is told before it is joined: once we are in, nobody would come back to
// that, and a later device would take the chat for a group.
func (c *Client) settle(ctx context.Context, v invitation) error {
	room := id.RoomID(v.room)
	if v.membership == "refused" {
		_, err := c.cli.LeaveRoom(ctx, room)
		if err == nil || errors.Is(err, mautrix.MForbidden) || errors.Is(err, mautrix.MNotFound) {
			return c.setMembership(ctx, room, "left")
		}
		return err
	}
	if v.with != "" {
		c.tellDirect(ctx, room, id.UserID(v.with))
	}
	c.member.Lock()
	before := c.memberships[room]
	c.member.Unlock()
	req := &mautrix.ReqJoinRoom{}
	if s := server(v.inviter); s != "" {
		req.Via = []string{s}
	}
	if _, err := c.cli.JoinRoom(ctx, v.room, req); err != nil {
		return err
	}
	c.forgetState(room)
	c.member.Lock()
	defer c.member.Unlock()
	c.log.Info("matrix: joined", "room", room, "direct", v.with != "")
	if c.memberships[room] != before { // a sync knows better: we may be out again, and invited anew
		return nil
	}
	return c.setMembership(ctx, room, "joined")
}

// People is how many have joined a room, we among them.
func (c *Client) People(ctx context.Context, room string) (int, error) {
	members, err := c.cli.StateStore.(*sqlstatestore.SQLStateStore).GetRoomMembers(ctx, id.RoomID(room), event.MembershipJoin)
	return len(members), doing("matrix: look up the members of a room", err)
}

// Left tells whether we have left a room, or were put out of it, and are not invited
// into it again. A room that is not known is none that was left.
func (c *Client) Left(ctx context.Context, room string) (bool, error) {
	left, err := store.Value[bool](ctx, c.cfg.DB, `SELECT membership IN ('left', 'refused') FROM matrix_room WHERE id = ?`, room)
	return left, doing("matrix: look up a room", err)
}

// DirectChat is a private direct chat with a person; empty when there is none.
func (c *Client) DirectChat(ctx context.Context, person string) (string, error) {
	rooms, err := store.Column[id.RoomID](ctx, c.cfg.DB,
		`SELECT id FROM matrix_room WHERE membership = 'joined' AND direct_with = ? ORDER BY id`, person)
	if err != nil {
		return "", fmt.Errorf("look up direct chats: %w", err)
	}
	for _, room := range rooms {
		facts, err := c.facts(ctx, room)
		if err != nil {
			return "", err
		}
		if facts.private(person) && c.cli.StateStore.IsInRoom(ctx, room, id.UserID(person)) {
			return room.String(), nil
		}
	}
	return "", nil
}
