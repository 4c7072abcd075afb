package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"reverie/internal/chat"
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
		if busy[n.room] != "" {
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
	in, err := h.event(ctx, n, with)
	if err != nil {
		return err
	}
	if n.event == "" {
		if _, err := h.change(ctx, h.cfg.DB, `event = ? WHERE id IN (SELECT value FROM json_each(?))`, in.ID, idsOf(with)); err != nil {
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
	if err != nil {
		h.free(in.ID)
	}
	return err
}

// together reports whether two ends may be told in one event.
func together(a, b helper) bool {
	return a.user == b.user && a.private == b.private && a.kind() == b.kind()
}

// event is the system event that tells of ends.
func (h *helpers) event(ctx context.Context, n helper, of []helper) (chat.Inbound, error) {
	in := chat.Inbound{ID: cmp.Or(n.event, "ended:"+n.id), Room: n.room, Sender: n.user, Event: n.kind(), At: h.cfg.Now(), Verbatim: n.tries >= mostTold}
	hidden := false
	if n.private {
		private, err := newSession(h.Manager, history.Talk(n.room)).private(ctx, n.user)
		if err != nil {
			return in, err
		}
		hidden = !private
	}
	say, lead := i18n.English, leads[in.Event]
	if in.Verbatim {
		say = h.cfg.Messages.For(ctx, n.room)
		lead = say("helpers.verbatim")
	}
	parts := []string{lead}
	for _, o := range of {
		if hidden {
			parts = append(parts, say("helpers.hidden", "id", o.id))
		} else {
			parts = append(parts, o.told(say, h.most(chatRole, len(of))))
		}
	}
	in.Text = strings.Join(parts, "\n\n")
	in.Label = trust.Label{Integrity: leastRead(of), Readers: n.readers()}
	return in, nil
}

// most is how many characters of each of so many results a model of role is told: of all of them
// what a quarter of its window holds.
func (h *helpers) most(role string, results int) int {
	window, _ := h.cfg.Models.Window(role)
	return max(min(window, 16_000)/max(results, 1), 200)
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
	wait := time.Duration(0)
	if failed != nil {
		wait = 60 * h.cfg.Again
	}
	time.AfterFunc(wait, func() { h.free(id); h.look() })
	return nil
}

// free notes that no room works on the event any more.
func (h *helpers) free(event string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.events, func(_, of string) bool { return of == event })
}

// idsOf is a JSON list of ids.
func idsOf(of []helper) any {
	ids := []string{}
	for _, n := range of {
		ids = append(ids, n.id)
	}
	return store.JSON(&ids)
}

// cancel cancels sub-sessions and those that they asked for, and says how many it were.
func (h *helpers) cancel(ctx context.Context, first []helper, reason i18n.Text) (int, error) {
	ended, err := store.Column[string](ctx, h.cfg.DB, `UPDATE sub_session SET status = 'cancelled', reason = ?1, ended = ?2, told = ?2
		WHERE status IN ('pending', 'running', 'waiting') AND id IN (WITH RECURSIVE these (id) AS (SELECT value FROM json_each(?3)
			UNION SELECT c.id FROM sub_session AS c JOIN these ON c.parent = these.id) SELECT id FROM these) RETURNING id`,
		reason, h.millis(), idsOf(first))
	if err != nil {
		return 0, fmt.Errorf("session: cancel sub-sessions: %w", err)
	}
	h.mu.Lock()
	for _, id := range ended {
		if a, ok := h.active[id]; ok {
			a.stop(errStopped)
		}
	}
	h.mu.Unlock()
	h.look()
	return len(ended), nil
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
	n, err := s.helpers.cancel(ctx, open, i18n.New("why.helper_stop"))
	if err != nil || n == 0 {
		return "", err
	}
	return s.text(ctx, "helpers.stopped", "count", fmt.Sprint(n)), nil
}

// line is a sub-session in one line, in the words of say.
func (h *helpers) line(n helper, say i18n.Say) string {
	at := func(t time.Time) string { return t.In(h.cfg.Location).Format(minute) }
	parts := []string{say("helpers.since", "at", at(n.created))}
	if !n.open() {
		parts = append(parts, say("helpers.ended", "at", at(n.ended)))
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
