package room

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/delivery"
	"reverie/internal/matrix/gate"
	"reverie/internal/matrix/retry"
	"reverie/internal/store"
)

// Config is what Memberships need.
type Config struct {
	Rooms         *Rooms
	Inbox         *delivery.Inbox
	Outbox        *delivery.Outbox
	Log           *slog.Logger
	Now           func() time.Time
	Again, Refuse time.Duration // between two looks at a room that is to be moved; between refusing some invitations and some more
	Text          func(ctx context.Context, room, key string, fill ...string) string
	Allows        func(user string) bool
	Tell          func(context.Context, delivery.Notice) error
	Cleared       func(room string)                                // ends what is shown and worked on in a room that we left
	Move          func(ctx context.Context, from, to string) error // brings along what belongs to a room that is replaced

	InWake, OutWake chan struct{} // for the loops of the inbox and the outbox
}

// Memberships follow our memberships: invitations, joining, leaving, and rooms that take the
// place of others.
type Memberships struct {
	Config
	wake chan struct{}
}

// NewMemberships returns Memberships that Run has yet to work on.
func NewMemberships(cfg Config) *Memberships { return &Memberships{cfg, make(chan struct{}, 1)} }

// joinTries is how often joining or refusing is tried. Joining over federation
// can take a while; an invitation from a server that is gone never works.
const joinTries = 12

// refuseAtOnce is how many invitations are refused before the others are looked
// at again: who sends thousands must not hold up those that are welcome, nor use
// up what the homeserver allows us.
const refuseAtOnce = 10

// OnMember follows our own membership: invitations, joining, leaving.
func (m *Memberships) OnMember(ctx context.Context, evt *event.Event) error {
	if evt.GetStateKey() != m.Rooms.cli.UserID.String() {
		return m.Rooms.Watch(ctx, evt)
	}
	content, ok := evt.Content.Parsed.(*event.MemberEventContent)
	if !ok {
		return nil
	}
	switch content.Membership {
	case event.MembershipInvite:
		if evt.Mautrix.EventSource&event.SourceInvite != 0 {
			return m.invited(ctx, evt.RoomID, evt.Sender, content.IsDirect)
		}
	case event.MembershipJoin:
		if evt.Mautrix.EventSource&event.SourceJoin == 0 {
			return nil
		}
		if prev := evt.Unsigned.PrevContent; prev == nil || prev.Raw["membership"] != string(event.MembershipJoin) {
			m.Rooms.ForgetState(evt.RoomID) // others may have come or gone while we were not there
		}
		err := errors.Join(m.Rooms.setMembership(ctx, evt.RoomID, "joined"), m.holdBack(ctx, evt.RoomID))
		retry.Wake(m.wake) // now that it is noted: the room may take the place of another one
		return err
	case event.MembershipLeave, event.MembershipBan:
		if evt.Mautrix.EventSource&event.SourceLeave != 0 {
			return m.left(ctx, evt.RoomID)
		}
	default: // knock, and what later versions invent
	}
	return nil
}

// invited notes an invitation, to be accepted or refused by run. A direct chat is one with
// who invited us to it first.
func (m *Memberships) invited(ctx context.Context, room id.RoomID, by id.UserID, direct bool) error {
	membership, with := "refused", id.UserID("")
	if m.Allows(by.String()) {
		membership = "invited"
		if direct {
			with = by
		}
	}
	_, err := m.Rooms.db.ExecContext(ctx, `INSERT INTO matrix_room (id, membership, direct_with, inviter) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET membership = excluded.membership, inviter = excluded.inviter, attempts = 0, next_at = 0,
			direct_with = CASE direct_with WHEN '' THEN excluded.direct_with ELSE direct_with END`,
		room.String(), membership, with.String(), by.String())
	if err == nil && membership == "invited" {
		err = m.holdBack(ctx, room)
	}
	if err != nil {
		return fmt.Errorf("note an invitation: %w", err)
	}
	m.Log.Info("matrix: invitation", "room", room, "sender", by, "direct", direct, "accepted", membership == "invited")
	retry.Wake(m.wake)
	return nil
}

func (m *Memberships) left(ctx context.Context, room id.RoomID) error {
	// Of an unknown room there is nothing to clear.
	was, _ := store.Value[string](ctx, m.Rooms.db, `SELECT membership FROM matrix_room WHERE id = ?`, room.String())
	m.Rooms.ForgetState(room)
	if err := m.Rooms.setMembership(ctx, room, "left"); err != nil || was != "joined" {
		return err
	}
	m.Log.Info("matrix: no longer in this room", "room", room)
	m.Cleared(room.String())
	return m.Inbox.ClearRoom(ctx, room.String())
}

// Run accepts and refuses invitations, those of the last run included.
func (m *Memberships) Run(ctx context.Context) error {
	return retry.Loop(ctx, m.Now, m.wake, func(ctx context.Context) time.Time {
		next, err := m.settleInvitations(ctx)
		if err != nil {
			m.Log.Error("matrix: invitations", "err", err)
			next = m.Now().Add(time.Minute)
		}
		if at, err := m.followUpgrades(ctx); err == nil {
			next = retry.Earlier(next, at)
		} else if ctx.Err() == nil {
			m.Log.Error("matrix: replaced rooms", "err", err)
			next = retry.Earlier(next, m.Now().Add(time.Minute))
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
func (m *Memberships) settleInvitations(ctx context.Context) (next time.Time, err error) {
	next = m.Now().Add(time.Hour)
	list, err := m.invitations(ctx)
	if err != nil {
		return next, err
	}
	refused := 0
	for _, v := range list {
		if at := time.UnixMilli(v.nextAt); at.After(m.Now()) {
			next = retry.Earlier(next, at)
			continue
		}
		if v.membership == "refused" {
			if refused++; refused > refuseAtOnce {
				return m.Now().Add(m.Refuse), nil
			}
		}
		err := m.settle(ctx, v)
		if ctx.Err() != nil {
			return next, nil
		}
		verdict, wait := retry.Classify(err, v.attempts)
		switch {
		case verdict == retry.Fine:
			continue
		case verdict == retry.Never && v.attempts > 0 || v.attempts+1 >= joinTries: // one refusal may be a race with the invitation
			m.Log.Warn("matrix: invitation dropped", "room", v.room, "sender", v.inviter, "err", err)
			if err := m.Rooms.setMembership(ctx, id.RoomID(v.room), "left"); err != nil {
				return next, err
			}
			continue
		}
		wait = max(wait, retry.FirstWait)
		at := m.Now().Add(wait)
		next = retry.Earlier(next, at)
		m.Log.Warn("matrix: invitation not settled; trying again", "room", v.room, "in", wait.Round(time.Second), "err", err)
		if _, err := m.Rooms.db.ExecContext(ctx, `UPDATE matrix_room SET attempts = attempts + 1, next_at = ? WHERE id = ?`,
			at.UnixMilli(), v.room); err != nil {
			return next, err
		}
	}
	return next, nil
}

func (m *Memberships) invitations(ctx context.Context) ([]invitation, error) {
	return store.List(ctx, m.Rooms.db, func(r store.Row) (v invitation, err error) {
		err = r.Scan(&v.room, &v.membership, &v.inviter, &v.with, &v.attempts, &v.nextAt)
		return v, err
	}, `SELECT id, membership, inviter, direct_with, attempts, next_at FROM matrix_room
		WHERE membership IN ('invited', 'refused') ORDER BY membership, next_at, id`) // those that are accepted first
}

// settle joins or refuses. Both can be repeated without harm. That a chat is
// direct is told before it is joined: once we are in, nobody would come back to
// that, and a later device would take the chat for a group.
func (m *Memberships) settle(ctx context.Context, v invitation) error {
	room := id.RoomID(v.room)
	if v.membership == "refused" {
		_, err := m.Rooms.cli.LeaveRoom(ctx, room)
		if err == nil || errors.Is(err, mautrix.MForbidden) || errors.Is(err, mautrix.MNotFound) {
			return m.Rooms.setMembership(ctx, room, "left")
		}
		return err
	}
	if v.with != "" {
		m.Rooms.tellDirect(ctx, room, id.UserID(v.with))
	}
	req := &mautrix.ReqJoinRoom{}
	if s := gate.Server(v.inviter); s != "" {
		req.Via = []string{s}
	}
	if _, err := m.Rooms.cli.JoinRoom(ctx, v.room, req); err != nil {
		return err
	}
	m.Rooms.ForgetState(room)
	m.Log.Info("matrix: joined", "room", room, "direct", v.with != "")
	_, err := m.Rooms.db.ExecContext(ctx, `UPDATE matrix_room SET membership = 'joined', attempts = 0, next_at = 0
		WHERE id = ? AND membership = 'invited'`, v.room) // else a sync knows better: we may be out again
	return store.Wrap(err, "note a membership")
}
