// Package questions asks people which of two contradicting memories holds.
//
// A Question is a pair of entries that a dream could not decide. Asker sends open ones as notices,
// few per room and night; Store keeps them, so each is asked once even after a crash.
package questions

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// MinInterval is the pause after a room has had its limit of questions. It is shorter than a day,
// so that every night can ask.
const MinInterval = 20 * time.Hour

// EventPrefix begins the IDs of the events that ask questions.
const EventPrefix = "question:"

// Asker sends open questions to the people concerned: a person's memories in their direct chat, a
// room's in the room, shared ones to the owner.
type Asker struct{ cfg Config }

// Config configures an Asker.
type Config struct {
	Store
	Messages    *settings.Messages
	Owner       string
	Location    *time.Location
	MaxPerNight int // questions per night and room; 0 = ask none
	Rooms       chat.Rooms
	ActiveRooms func(context.Context) ([]string, error) // rooms where their own memories may be asked about; nil = none
}

// New returns an Asker.
func New(cfg Config) *Asker { return &Asker{cfg} }

// Ask delivers the open questions not asked yet, oldest first. It keeps the limit of each room.
func (a *Asker) Ask(ctx context.Context, deliver func(context.Context, chat.Inbound) error) error {
	if a.cfg.MaxPerNight == 0 {
		return nil
	}
	open, err := a.cfg.Questions(ctx, memory.Access{Actor: "dreaming", All: true})
	if err != nil {
		return err
	}
	now := time.Now()
	notices, unassigned := map[string][]Question{}, map[string][]Question{} // by event; by room
	undelivered := map[string]int{}                                         // undelivered questions by room
	for _, q := range open {
		switch {
		case q.Event != "" && q.AskedAt.IsZero(): // assigned, maybe by an earlier process
			notices[q.Event] = append(notices[q.Event], q)
			undelivered[q.Room]++
		case q.Event == "":
			if q.Room, err = a.RoomFor(ctx, q.Scope); err != nil {
				return err
			}
			if q.Room != "" {
				unassigned[q.Room] = append(unassigned[q.Room], q)
			}
		}
	}
	for room, list := range unassigned {
		asked, err := a.cfg.countAskedSince(ctx, room, now.Add(-MinInterval))
		if err != nil {
			return err
		}
		if remaining := a.cfg.MaxPerNight - asked - undelivered[room]; remaining > 0 {
			notices[EventPrefix+strings.ToLower(rand.Text()[:12])] = list[:min(remaining, len(list))]
		}
	}
	oldest := func(a, b string) int { return cmp.Compare(notices[a][0].ID, notices[b][0].ID) }
	for _, event := range slices.SortedFunc(maps.Keys(notices), oldest) {
		if err := a.send(ctx, deliver, event, notices[event], now); err != nil {
			return err
		}
	}
	return nil
}

// send delivers the questions list as the notice event.
func (a *Asker) send(ctx context.Context, deliver func(context.Context, chat.Inbound) error, event string, list []Question,
	now time.Time,
) error {
	room := list[0].Room
	ids := store.Map(list, func(q Question) int64 { return q.ID })
	if err := a.cfg.Store.assign(ctx, event, room, ids); err != nil {
		return err
	}
	text := NoticeText(a.cfg.Messages.For(ctx, room), list, a.cfg.Location)
	label := trust.Label{Integrity: trust.Owner, Readers: list[0].Scope}
	for _, q := range list {
		label.Integrity = min(label.Integrity, q.First.Integrity, q.Second.Integrity)
	}
	return deliver(ctx, chat.Event{
		Options: options(a.cfg.Messages.For(ctx, room), list),
		Head:    chat.Head{ID: event, Room: room, Sender: a.addressee(list[0].Scope), At: now},
		Kind:    chat.MemoryQuestion, Text: text, Verbatim: true, Label: label,
	})
}

// options returns the options of a poll, by what follows `!memory keep`; nil unless list has one question.
func options(say i18n.Say, list []Question) []chat.Option {
	if len(list) != 1 {
		return nil
	}
	number := strconv.FormatInt(list[0].ID, 10)
	return []chat.Option{{ID: number + string(KeepFirst), Text: "a"}, {ID: number + string(keepSecond), Text: "b"},
		{ID: number + string(KeepBoth), Text: say("question.both_hold")}}
}

// addressee returns the person to ask about scope; "" = anyone in the room.
func (a *Asker) addressee(scope memory.Scope) string {
	if scope == memory.Shared {
		return a.cfg.Owner
	}
	return scope.Person()
}

// RoomFor returns the room in which to ask about scope: the person's direct chat, or the room
// itself. "" means no room now.
func (a *Asker) RoomFor(ctx context.Context, scope memory.Scope) (string, error) {
	if who := a.addressee(scope); who != "" {
		if !a.cfg.Rooms.Allowed(who) {
			return "", nil
		}
		return a.cfg.Rooms.DirectChat(ctx, who)
	}
	room := strings.TrimPrefix(string(scope), string(memory.Room("")))
	if a.cfg.ActiveRooms == nil {
		return "", nil
	}
	rooms, err := a.cfg.ActiveRooms(ctx)
	if err != nil || !slices.Contains(rooms, room) {
		return "", err
	}
	if left, err := a.cfg.Rooms.Left(ctx, room); err != nil || left {
		return "", err
	}
	return room, nil
}

// Wanted implements session.Source. A notice is sent if all its questions are open and belong in its room.
func (a *Asker) Wanted(ctx context.Context, event string) (bool, error) {
	list, all, err := a.cfg.openOfNotice(ctx, event)
	if err != nil || !all || len(list) == 0 {
		return false, err
	}
	for _, q := range list {
		if room, err := a.RoomFor(ctx, q.Scope); err != nil || room != q.Room {
			return false, err
		}
	}
	return true, nil
}

// Done implements session.Source. An unsent notice is assigned again later; a failed one is retried
// at the next start.
func (a *Asker) Done(ctx context.Context, event, said string, failed error) error {
	if failed != nil {
		return nil
	}
	var at time.Time
	if said != "" {
		at = time.Now()
	}
	return a.cfg.markAsked(ctx, event, at)
}

// NoticeText returns the text of a notice: the questions by number, with how to answer. It quotes
// memories verbatim, so that forgetting finds them.
func NoticeText(say i18n.Say, list []Question, zone *time.Location) string {
	var b strings.Builder
	b.WriteString(say("question.lead") + "\n")
	for _, q := range list {
		number := strconv.FormatInt(q.ID, 10)
		b.WriteString("\n" + say("question.which", "number", number, "why", q.Why.In(say)) + "\n\n")
		for i, e := range []memory.Entry{q.First, q.Second} {
			since := e.Since().In(zone).Format(time.DateOnly)
			b.WriteString("- " + say("question.one", "letter", "ab"[i:i+1], "date", since, "text", e.Text) + "\n")
		}
		b.WriteString("\n" + say("question.answer", "number", number) + "\n")
	}
	return b.String()
}
