package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

// questionsWithin is how long a room that was asked as many questions as it may be is asked
// no more: a night, and not quite a day.
const questionsWithin = 20 * time.Hour

// asker asks people what only they can decide about what is remembered of them: each in
// their own direct chat, a room's memory in the room, what is shared the owner. What is to be
// asked is kept with the questions, so that it is said once, whatever ends the program.
type asker struct {
	b       *bot
	most    int // questions of a night in one room; 0 = nobody is asked
	deliver func(context.Context, chat.Inbound) error
	rooms   func(context.Context) ([]string, error) // that were talked in
	left    func(ctx context.Context, room string) (bool, error)
	direct  func(ctx context.Context, person string) (room string, err error) // a chat that nobody else reads; "" = none
	allows  func(user string) bool
}

// ask puts what is open and was not asked yet, the oldest first.
func (a *asker) ask(ctx context.Context) error {
	if a.most == 0 {
		return nil
	}
	open, err := a.b.memory.Questions(ctx, memory.Access{Actor: "dreaming", All: true})
	if err != nil {
		return err
	}
	now := time.Now()
	notices, fresh := map[string][]memory.Question{}, map[string][]memory.Question{} // by event; by room
	waiting := map[string]int{}                                                      // questions of a room that are to be said already
	for _, q := range open {
		switch {
		case q.Event != "" && q.Asked.IsZero(): // perhaps since an earlier run
			notices[q.Event] = append(notices[q.Event], q)
			waiting[q.Room]++
		case q.Event == "":
			if q.Room, err = a.place(ctx, q.Scope); err != nil {
				return err
			}
			if q.Room != "" {
				fresh[q.Room] = append(fresh[q.Room], q)
			}
		}
	}
	for room, list := range fresh {
		asked, err := a.b.memory.PutSince(ctx, room, now.Add(-questionsWithin))
		if err != nil {
			return err
		}
		if left := a.most - asked - waiting[room]; left > 0 {
			notices["question:"+strings.ToLower(rand.Text()[:12])] = list[:min(left, len(list))]
		}
	}
	oldest := func(a, b string) int { return cmp.Compare(notices[a][0].ID, notices[b][0].ID) }
	for _, event := range slices.SortedFunc(maps.Keys(notices), oldest) {
		if err := a.put(ctx, event, notices[event], now); err != nil {
			return err
		}
	}
	return nil
}

// put has the questions list said as the notice event.
func (a *asker) put(ctx context.Context, event string, list []memory.Question, now time.Time) error {
	room := list[0].Room
	ids := make([]int64, len(list))
	for i, q := range list {
		ids[i] = q.ID
	}
	if err := a.b.memory.Put(ctx, event, room, ids); err != nil {
		return err
	}
	text := command.Questions(a.b.messages.For(ctx, room), list, a.b.cfg.location())
	label := trust.Label{Integrity: trust.Owner, Readers: list[0].Scope}
	for _, q := range list {
		label.Integrity = min(label.Integrity, q.First.Integrity, q.Second.Integrity)
	}
	return a.deliver(ctx, chat.Inbound{ID: event, Room: room, Sender: a.person(list[0].Scope), Text: text, At: now, Event: chat.MemoryQuestion,
		Verbatim: true, Label: label})
}

// person is who is asked about what is of scope; "" = whoever is in the room.
func (a *asker) person(scope memory.Scope) string {
	if scope == memory.Shared {
		return a.b.cfg.owner()
	}
	return scope.Person()
}

// place is the room to ask in about what is of scope: that person's direct chat, or the room
// itself. "" = there is none now.
func (a *asker) place(ctx context.Context, scope memory.Scope) (string, error) {
	if who := a.person(scope); who != "" {
		if !a.allows(who) {
			return "", nil
		}
		return a.direct(ctx, who)
	}
	room := strings.TrimPrefix(string(scope), string(memory.Room("")))
	rooms, err := a.rooms(ctx)
	if err != nil || !slices.Contains(rooms, room) {
		return "", err
	}
	if left, err := a.left(ctx, room); err != nil || left {
		return "", err
	}
	return room, nil
}

// atTerminal is the chat with a person who sits at this machine.
func (b *bot) atTerminal(_ context.Context, person string) (room string, err error) {
	if person == b.cfg.owner() {
		room = terminalRoom
	}
	return room, nil
}

// Wanted implements session.Source: a notice is said if all that it asks is still open, and
// the room is still the place for it.
func (a *asker) Wanted(ctx context.Context, event string) (bool, error) {
	list, all, err := a.b.memory.PutBy(ctx, event)
	if err != nil || !all || len(list) == 0 {
		return false, err
	}
	for _, q := range list {
		if room, err := a.place(ctx, q.Scope); err != nil || room != q.Room {
			return false, err
		}
	}
	return true, nil
}

// Done implements session.Source. What was not said waits; what failed is tried again at the next start.
func (a *asker) Done(ctx context.Context, event, said string, failed error) error {
	if failed != nil {
		return nil
	}
	var at time.Time
	if said != "" {
		at = time.Now()
	}
	return a.b.memory.PutAt(ctx, event, at)
}

// runNightly asks what an earlier run was to ask, and dreams when it is time.
func (b *bot) runNightly(ctx context.Context) error {
	b.askPeople(ctx)
	return b.nightly.Run(ctx)
}

func (b *bot) askPeople(ctx context.Context) {
	if err := b.asking.ask(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, chat.ErrStopping) {
		b.log.Warn("people could not be asked what only they can decide; it is tried again after the next dream", "err", err)
	}
}
