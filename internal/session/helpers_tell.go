package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/trust"
)

const mostTold = 3 // times that the model is asked about an event; then the room reads it as it is

// tell delivers the ends of sub-sessions to the rooms that asked for them: those that
// have come meanwhile together, but one event of a room at a time.
func (h *helpers) tell(ctx context.Context) error {
	h.mu.Lock()
	busy := maps.Clone(h.events) // before the rows are read: what is done with meanwhile stands in them as if it were not
	h.mu.Unlock()
	ended, err := h.read(ctx, h.cfg.DB, `WHERE told = 0 AND status IN ('completed', 'failed', 'cancelled')
		AND NOT EXISTS (SELECT 1 FROM sub_session AS p WHERE p.id = n.parent AND p.status IN ('pending', 'running', 'waiting'))
		ORDER BY n.event = '', n.ended, n.created, n.rowid`)
	if err != nil {
		return err
	}
	for _, n := range ended {
		h.mu.Lock()
		held := n.event != "" && h.hold[n.event].After(h.cfg.Now())
		h.mu.Unlock()
		if busy[n.room] != "" || held {
			continue
		}
		if err := h.tellRoom(ctx, n, ended); err != nil {
			return err
		}
		busy[n.room] = n.id // ended still shows those that were told with it as they were
	}
	return nil
}

// tellRoom delivers the event of n to its room. If it has none yet, it gets one
// together with others of ended.
func (h *helpers) tellRoom(ctx context.Context, n helper, ended []helper) error {
	var with []helper
	for _, o := range ended {
		if o.room == n.room && o.event == n.event && (n.event != "" || together(n, o)) {
			with = append(with, o)
		}
	}
	in, with, err := h.event(ctx, n, with)
	if err != nil {
		return err
	}
	if n.event == "" {
		err := store.InTx(ctx, h.cfg.DB, func(tx *sql.Tx) error {
			for _, o := range with {
				if _, err := h.change(ctx, tx, `event = ? WHERE id = ?`, in.ID, o.id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	h.mu.Lock()
	h.events[n.room] = in.ID
	h.mu.Unlock()
	err = h.Deliver(ctx, in)
	if errors.Is(err, ErrStopping) {
		return nil
	}
	return err
}

// together reports whether two ends may be told in one event.
func together(a, b helper) bool {
	return a.user == b.user && a.private == b.private && a.kind() == b.kind()
}

// event is the system event that tells of ends, and those that it has room for.
func (h *helpers) event(ctx context.Context, n helper, of []helper) (Inbound, []helper, error) {
	in := Inbound{ID: "ended:" + n.id, Room: n.room, Sender: n.user, Event: n.kind(), At: h.cfg.Now()}
	if n.event != "" {
		in.ID = n.event
	}
	hidden := false
	if n.private {
		private, err := newSession(h.Manager, history.Talk(n.room)).private(ctx, n.user)
		if err != nil {
			return in, nil, err
		}
		hidden = !private
	}
	in.Verbatim = n.tries >= mostTold
	say, lead := i18n.English, leads[in.Event]
	if in.Verbatim {
		say = h.cfg.Messages.For(ctx, n.room)
		lead = say("helpers.verbatim")
	}
	room, parts, least := h.cutAt(), []string{}, trust.Owner
	for i, o := range of {
		if i > 0 && room < 600 && n.event == "" {
			of = of[:i]
			break
		}
		most := max(room/2, 400)
		text := o.told(most)
		switch {
		case hidden:
			text = say("helpers.hidden", "id", o.id)
		case in.Verbatim:
			text = o.toldIn(say, most)
		}
		room -= utf8.RuneCountInString(text)
		parts = append(parts, text)
		least = min(least, o.integrity)
	}
	in.Text = lead + "\n\n" + strings.Join(parts, "\n\n")
	in.Label = trust.Label{Integrity: least, Readers: n.readers()}
	return in, of, nil
}

// Wanted implements Source: an event is worked on until what it tells of is told.
func (h *helpers) Wanted(ctx context.Context, id string) (bool, error) {
	left, err := h.read(ctx, h.cfg.DB, `WHERE event = ? AND told = 0 LIMIT 1`, id)
	return len(left) > 0, err
}

// Done implements Source. An event that came to nothing is tried again.
func (h *helpers) Done(ctx context.Context, id, _ string, failed error) error {
	var err error
	if failed == nil || errors.Is(failed, errStopped) || errors.Is(failed, errWithdrawn) {
		_, err = h.change(ctx, h.cfg.DB, `told = ? WHERE event = ? AND told = 0`, h.millis(), id)
	} else {
		_, err = h.change(ctx, h.cfg.DB, `tries = tries + 1 WHERE event = ? AND told = 0`, id)
	}
	if err != nil {
		return err
	}
	h.mu.Lock()
	if failed != nil {
		h.hold[id] = h.cfg.Now().Add(60 * h.cfg.Again)
	}
	for room, event := range h.events {
		if event == id {
			delete(h.events, room)
		}
	}
	h.mu.Unlock()
	h.look()
	return nil
}

// cancel cancels sub-sessions and those that they asked for, and says how many it
// were. Whoever does it need not be told; the sub-session that had asked for it is.
func (h *helpers) cancel(ctx context.Context, first []helper, by string, reason i18n.Text) (int, error) {
	var ids []string
	err := store.InTx(ctx, h.cfg.DB, func(tx *sql.Tx) error {
		ids = nil
		left := slices.Clone(first)
		for i := 0; i < len(left); i++ {
			n := left[i]
			if slices.Contains(ids, n.id) {
				continue
			}
			told := h.millis()
			if i < len(first) && n.parent != "" && n.parent != by {
				parent, _, err := h.one(ctx, tx, n.parent)
				if err != nil {
					return err
				}
				if parent.open() && !slices.ContainsFunc(first, func(o helper) bool { return o.id == parent.id }) {
					told = 0
				}
			}
			changed, err := h.change(ctx, tx, `status = 'cancelled', reason = ?, ended = ?, told = ? WHERE id = ? AND status IN ('pending', 'running', 'waiting')`,
				reason, h.millis(), told, n.id)
			if err != nil {
				return err
			}
			if changed > 0 {
				ids = append(ids, n.id)
			}
			children, err := h.read(ctx, tx, `WHERE parent = ? AND status IN ('pending', 'running', 'waiting')`, n.id)
			if err != nil {
				return err
			}
			left = append(left, children...)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	for _, id := range ids {
		if a, ok := h.active[id]; ok {
			a.stop(errStopped)
		}
	}
	h.mu.Unlock()
	h.look()
	return len(ids), nil
}

// cancelHelpers is what !stop does to the sub-sessions of the room, or in a thread to
// those that were asked for there; it says so.
func (s *Session) cancelHelpers(ctx context.Context) (string, error) {
	if s.helpers == nil {
		return "", nil
	}
	asked := `` // anywhere in the room
	args := []any{s.room}
	if s.thread != "" {
		asked, args = ` AND asked IN (SELECT event_id FROM message WHERE room = ?)`, append(args, string(s.talk))
	}
	open, err := s.helpers.read(ctx, s.cfg.DB, `WHERE room = ? AND status IN ('pending', 'running', 'waiting')`+asked, args...)
	if err != nil || len(open) == 0 {
		return "", err
	}
	n, err := s.helpers.cancel(ctx, open, "", i18n.New("why.helper_stop"))
	if err != nil || n == 0 {
		return "", err
	}
	return s.text(ctx, "helpers.stopped", "count", fmt.Sprint(n)), nil
}

// line is a sub-session in one line, in the words of say.
func (h *helpers) line(n helper, say i18n.Say) string {
	at := func(t time.Time) string { return t.In(h.cfg.Location).Format(minute) }
	parts := []string{say("helpers.since", "at", at(n.created))}
	switch {
	case !n.open():
		parts = append(parts, say("helpers.ended", "at", at(n.ended)))
	case n.status == helperPending && n.due.After(h.cfg.Now()):
		parts = append(parts, say("helpers.not_before", "at", at(n.due)))
	}
	if n.rounds > 0 {
		parts = append(parts, say("helpers.spent", "rounds", fmt.Sprint(n.rounds), "tokens", fmt.Sprint(n.tokens)))
	}
	if n.continued > 0 {
		parts = append(parts, say("helpers.continued", "count", fmt.Sprint(n.continued)))
	}
	objective, reason := n.objective, n.reason
	if objective == unasked {
		objective = say("why.unasked")
	}
	if reason != "" && !reason.Known() {
		reason = i18n.New("why.trouble")
	}
	line := fmt.Sprintf("%s %s: %s (%s)", n.id, say("state."+n.status), history.OneLine(objective, 120), strings.Join(parts, ", "))
	if n.reason != "" && n.reason != unasked {
		line += ": " + history.OneLine(reason.In(say), 200)
	}
	return line
}

// toldIn is told for people, when no model passes it on.
func (n helper) toldIn(say i18n.Say, most int) string {
	head := fmt.Sprintf("%s (%s)", n.id, history.OneLine(n.objective, 200))
	if n.status != helperCompleted {
		return fmt.Sprintf("%s %s: %s", head, say("state."+n.status), history.OneLine(n.reason.In(say), 600))
	}
	text := strings.TrimSpace(n.result)
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "\n" + say("helpers.cut", "count", fmt.Sprint(len(r)))
	}
	return head + ":\n> " + strings.ReplaceAll(strings.ReplaceAll(text, "\r", ""), "\n", "\n> ")
}
