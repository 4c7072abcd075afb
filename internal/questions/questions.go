// Package questions asks people what only they can decide about what is remembered of them.
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
	"reverie/internal/trust"
)

// Within is how long a room that was asked as many questions as it may be is asked
// no more: a night, and not quite a day.
const Within = 20 * time.Hour

// Asker asks people what only they can decide about what is remembered of them: each in
// their own direct chat, a room's memory in the room, what is shared the owner. What is to be
// asked is kept with the questions, so that it is said once, whatever ends the program.
type Asker struct{ cfg Config }

// Config is what an Asker works with.
type Config struct {
	Store
	Messages *settings.Messages
	Owner    string
	Location *time.Location
	Most     int // questions of a night in one room; 0 = nobody is asked
	Rooms    chat.Rooms
	Talked   func(context.Context) ([]string, error) // the rooms to ask in about what is known of them; nil = none
}

// New returns an Asker.
func New(cfg Config) *Asker { return &Asker{cfg} }

// Ask has deliver say what is open and was not asked yet, the oldest first.
func (a *Asker) Ask(ctx context.Context, deliver func(context.Context, chat.Inbound) error) error {
	if a.cfg.Most == 0 {
		return nil
	}
	open, err := a.cfg.Questions(ctx, memory.Access{Actor: "dreaming", All: true})
	if err != nil {
		return err
	}
	now := time.Now()
	notices, fresh := map[string][]Question{}, map[string][]Question{} // by event; by room
	waiting := map[string]int{}                                        // questions of a room that are to be said already
	for _, q := range open {
		switch {
		case q.Event != "" && q.Asked.IsZero(): // perhaps since an earlier run
			notices[q.Event] = append(notices[q.Event], q)
			waiting[q.Room]++
		case q.Event == "":
			if q.Room, err = a.Place(ctx, q.Scope); err != nil {
				return err
			}
			if q.Room != "" {
				fresh[q.Room] = append(fresh[q.Room], q)
			}
		}
	}
	for room, list := range fresh {
		asked, err := a.cfg.askedSince(ctx, room, now.Add(-Within))
		if err != nil {
			return err
		}
		if left := a.cfg.Most - asked - waiting[room]; left > 0 {
			notices["question:"+strings.ToLower(rand.Text()[:12])] = list[:min(left, len(list))]
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

// send has the questions list said as the notice event.
func (a *Asker) send(ctx context.Context, deliver func(context.Context, chat.Inbound) error, event string, list []Question,
	now time.Time,
) error {
	room := list[0].Room
	ids := make([]int64, len(list))
	for i, q := range list {
		ids[i] = q.ID
	}
	if err := a.cfg.Store.assign(ctx, event, room, ids); err != nil {
		return err
	}
	text := Text(a.cfg.Messages.For(ctx, room), list, a.cfg.Location)
	label := trust.Label{Integrity: trust.Owner, Readers: list[0].Scope}
	for _, q := range list {
		label.Integrity = min(label.Integrity, q.First.Integrity, q.Second.Integrity)
	}
	return deliver(ctx, chat.Event{
		Head: chat.Head{ID: event, Room: room, Sender: a.person(list[0].Scope), At: now},
		Kind: chat.MemoryQuestion, Text: text, Verbatim: true, Label: label,
	})
}

// person is who is asked about what is of scope; "" = whoever is in the room.
func (a *Asker) person(scope memory.Scope) string {
	if scope == memory.Shared {
		return a.cfg.Owner
	}
	return scope.Person()
}

// Place is the room to ask in about what is of scope: that person's direct chat, or the room
// itself. "" = there is none now.
func (a *Asker) Place(ctx context.Context, scope memory.Scope) (string, error) {
	if who := a.person(scope); who != "" {
		if !a.cfg.Rooms.Allowed(who) {
			return "", nil
		}
		return a.cfg.Rooms.DirectChat(ctx, who)
	}
	room := strings.TrimPrefix(string(scope), string(memory.Room("")))
	if a.cfg.Talked == nil {
		return "", nil
	}
	rooms, err := a.cfg.Talked(ctx)
	if err != nil || !slices.Contains(rooms, room) {
		return "", err
	}
	if left, err := a.cfg.Rooms.Left(ctx, room); err != nil || left {
		return "", err
	}
	return room, nil
}

// Wanted implements session.Source: a notice is said if all that it asks is still open, and
// the room is still the place for it.
func (a *Asker) Wanted(ctx context.Context, event string) (bool, error) {
	list, all, err := a.cfg.toAsk(ctx, event)
	if err != nil || !all || len(list) == 0 {
		return false, err
	}
	for _, q := range list {
		if room, err := a.Place(ctx, q.Scope); err != nil || room != q.Room {
			return false, err
		}
	}
	return true, nil
}

// Done implements session.Source. What was not said waits; what failed is tried again at the next start.
func (a *Asker) Done(ctx context.Context, event, said string, failed error) error {
	if failed != nil {
		return nil
	}
	var at time.Time
	if said != "" {
		at = time.Now()
	}
	return a.cfg.noteAsked(ctx, event, at)
}

// Text is how people are asked what only they can decide: each by its number, with what to
// write. Texts of memories stand in it as they are, so that what is forgotten is found in it.
func Text(say i18n.Say, list []Question, zone *time.Location) string {
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
