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
	"reverie/internal/pace"
	"reverie/internal/store"
)

// Config configures Memberships.
type Config struct {
	Rooms       *Rooms
	Inbox       *delivery.Inbox
	Outbox      *delivery.Outbox
	Log         *slog.Logger
	Now         func() time.Time
	RetryDelay  time.Duration // first delay of a retry for a room that is to be moved
	RefuseDelay time.Duration // between two batches of refused invitations
	Text        func(ctx context.Context, room, key string, fill ...string) string
	Allows      func(user string) bool
	Notify      func(context.Context, delivery.Notice) error
	OnLeft      func(room string)                                // called after the bot has left a room
	Move        func(ctx context.Context, from, to string) error // moves the data of a replaced room

	InWake, OutWake chan struct{} // wake the loops of the inbox and the outbox
}

// Memberships handles the bot's own memberships: invitations, joins, leaves and room upgrades.
type Memberships struct {
	Config
	wake chan struct{}
}

// NewMemberships returns Memberships; the caller starts Run.
func NewMemberships(cfg Config) *Memberships { return &Memberships{cfg, make(chan struct{}, 1)} }

// joinTries is the number of tries to join or refuse. A join over federation can take a while; an
// invitation from a dead server never succeeds.
const joinTries = 12

// maxRefusals limits the invitations that are refused in one batch. A flood of invitations must
// neither delay the welcome ones nor use up the homeserver's rate limit.
const maxRefusals = 10

// OnMember handles m.room.member events: our own invitations, joins and leaves.
func (m *Memberships) OnMember(ctx context.Context, evt *event.Event) error {
	if evt.GetStateKey() != m.Rooms.cli.UserID.String() {
		return m.Rooms.CheckState(ctx, evt)
	}
	content, ok := evt.Content.Parsed.(*event.MemberEventContent)
	if !ok {
		return nil
	}
	switch content.Membership {
	case event.MembershipInvite:
		if evt.Mautrix.EventSource&event.SourceInvite != 0 {
			return m.storeInvitation(ctx, evt.RoomID, evt.Sender, content.IsDirect)
		}
	case event.MembershipJoin:
		if evt.Mautrix.EventSource&event.SourceJoin == 0 {
			return nil
		}
		if prev := evt.Unsigned.PrevContent; prev == nil || prev.Raw["membership"] != string(event.MembershipJoin) {
			m.Rooms.ForgetState(evt.RoomID) // the members may have changed in our absence
		}
		err := errors.Join(m.Rooms.setMembership(ctx, evt.RoomID, "joined"), m.holdMessages(ctx, evt.RoomID))
		pace.Wake(m.wake) // only now: the room may replace another one
		return err
	case event.MembershipLeave, event.MembershipBan:
		if evt.Mautrix.EventSource&event.SourceLeave != 0 {
			return m.markLeft(ctx, evt.RoomID)
		}
	default: // knock, and future memberships
	}
	return nil
}

// storeInvitation stores an invitation for Run to accept or refuse. The first inviter to a direct
// chat becomes its person.
func (m *Memberships) storeInvitation(ctx context.Context, room id.RoomID, by id.UserID, direct bool) error {
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
		err = m.holdMessages(ctx, room)
	}
	if err != nil {
		return fmt.Errorf("note an invitation: %w", err)
	}
	m.Log.Info("matrix: invitation", "room", room, "sender", by, "direct", direct, "accepted", membership == "invited")
	pace.Wake(m.wake)
	return nil
}

func (m *Memberships) markLeft(ctx context.Context, room id.RoomID) error {
	// An unknown room has nothing to clear.
	was, _ := store.Value[string](ctx, m.Rooms.db, `SELECT membership FROM matrix_room WHERE id = ?`, room.String())
	m.Rooms.ForgetState(room)
	if err := m.Rooms.setMembership(ctx, room, "left"); err != nil || was != "joined" {
		return err
	}
	m.Log.Info("matrix: no longer in this room", "room", room)
	m.OnLeft(room.String())
	return m.Inbox.ClearRoom(ctx, room.String())
}

// Run accepts and refuses invitations, including those of an earlier run, and follows upgrades.
func (m *Memberships) Run(ctx context.Context) error {
	return pace.RunWhenDue(ctx, m.Now, m.wake, func(ctx context.Context) time.Time {
		next, err := m.answerInvitations(ctx)
		if err != nil {
			m.Log.Error("matrix: invitations", "err", err)
			next = m.Now().Add(time.Minute)
		}
		if at, err := m.followUpgrades(ctx); err == nil {
			next = pace.Earlier(next, at)
		} else if ctx.Err() == nil {
			m.Log.Error("matrix: replaced rooms", "err", err)
			next = pace.Earlier(next, m.Now().Add(time.Minute))
		}
		return next
	})
}

type invitation struct {
	room, membership, inviter string
	with                      string // the person whose direct chat it is; empty = a group
	attempts                  int
	nextAt                    int64
}

// answerInvitations answers the invitations that are due and returns when the next one is.
func (m *Memberships) answerInvitations(ctx context.Context) (next time.Time, err error) {
	next = m.Now().Add(time.Hour)
	list, err := store.List(ctx, m.Rooms.db, func(r store.Row) (v invitation, err error) {
		err = r.Scan(&v.room, &v.membership, &v.inviter, &v.with, &v.attempts, &v.nextAt)
		return v, err
	}, `SELECT id, membership, inviter, direct_with, attempts, next_at FROM matrix_room
		WHERE membership IN ('invited', 'refused') ORDER BY membership, next_at, id`) // joins first
	if err != nil {
		return next, err
	}
	refused := 0
	for _, v := range list {
		if at := time.UnixMilli(v.nextAt); at.After(m.Now()) {
			next = pace.Earlier(next, at)
			continue
		}
		if v.membership == "refused" {
			if refused++; refused > maxRefusals {
				return m.Now().Add(m.RefuseDelay), nil
			}
		}
		err := m.answerInvitation(ctx, v)
		if ctx.Err() != nil {
			return next, nil
		}
		verdict, wait := retry.Classify(err, v.attempts)
		switch {
		case verdict == retry.Fine:
			continue
		case verdict == retry.Never && v.attempts > 0 || v.attempts+1 >= joinTries: // the first refusal may be a race with the invitation
			m.Log.Warn("matrix: invitation dropped", "room", v.room, "sender", v.inviter, "err", err)
			if err := m.Rooms.setMembership(ctx, id.RoomID(v.room), "left"); err != nil {
				return next, err
			}
			continue
		}
		wait = max(wait, retry.FirstWait)
		at := m.Now().Add(wait)
		next = pace.Earlier(next, at)
		m.Log.Warn("matrix: invitation not answered; trying again", "room", v.room, "in", wait.Round(time.Second), "err", err)
		if _, err := m.Rooms.db.ExecContext(ctx, `UPDATE matrix_room SET attempts = attempts + 1, next_at = ? WHERE id = ?`,
			at.UnixMilli(), v.room); err != nil {
			return next, err
		}
	}
	return next, nil
}

// answerInvitation joins or refuses. Both are repeatable. m.direct is updated before the join:
// after it the invitation is not handled again, and a later device would take the chat for a group.
func (m *Memberships) answerInvitation(ctx context.Context, v invitation) error {
	room := id.RoomID(v.room)
	if v.membership == "refused" {
		_, err := m.Rooms.cli.LeaveRoom(ctx, room)
		if err == nil || errors.Is(err, mautrix.MForbidden) || errors.Is(err, mautrix.MNotFound) {
			return m.Rooms.setMembership(ctx, room, "left")
		}
		return err
	}
	if v.with != "" {
		m.Rooms.addToDirect(ctx, room, id.UserID(v.with))
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
	return store.Exec(ctx, m.Rooms.db, `UPDATE matrix_room SET membership = 'joined', attempts = 0, next_at = 0
		WHERE id = ? AND membership = 'invited'`, v.room) // else a sync was faster: we may have left again
}
