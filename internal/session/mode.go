package session

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/store"
	"reverie/internal/tool"
)

// modeSwitch is one change of a room's mode.
type modeSwitch struct {
	at       time.Time
	from, to string
	who      string // who asked for it; empty = it changed by itself, as rooms once could
	why      string // the command or the tool
}

const (
	keptSwitches  = 100 // of each room
	shownSwitches = 5
)

// roomMode is the mode of a room, and how much the model is to think there.
type roomMode struct {
	mode
	think    llm.Think
	switched int64  // names the last switch; what a person edits in user mode takes effect with the next
	model    string // that was chosen for the room, and is in its role; "" = none
}

// mode reads the mode of the room. A mode that there is no more is the first one.
func (s *Session) mode(ctx context.Context) (roomMode, error) {
	var name, model string
	m := roomMode{mode: modes[0]}
	err := s.cfg.DB.QueryRowContext(ctx, `SELECT coalesce(s.mode, ''), coalesce(s.think, ''), coalesce((SELECT max(id) FROM mode_switch WHERE room = s.room), 0),
		coalesce((SELECT value FROM room_setting WHERE room = ?1 AND name = ?2), '')
		FROM (SELECT 1) LEFT JOIN session AS s ON s.room = ?1`, s.room, settingModel).Scan(&name, &m.think, &m.switched, &model)
	if err != nil {
		return m, fmt.Errorf("session: read mode: %w", err)
	}
	m.mode, _ = modeNamed(name)
	m.model = s.known(model)
	m.role = llm.Preferring(m.role, m.model)
	return m, nil
}

// switches reads the newest changes of the room's mode, the newest first.
func (s *Session) switches(ctx context.Context, most int) ([]modeSwitch, error) {
	out, err := store.List(ctx, s.cfg.DB, func(row store.Row) (c modeSwitch, err error) {
		var at int64
		err = row.Scan(&at, &c.from, &c.to, &c.who, &c.why)
		c.at = time.UnixMilli(at).In(s.cfg.Location)
		return c, err
	}, `SELECT at, from_mode, to_mode, who, why FROM mode_switch WHERE room = ? ORDER BY id DESC LIMIT ?`, s.room, most)
	if err != nil {
		return nil, fmt.Errorf("session: read mode switches: %w", err)
	}
	return out, nil
}

// switchMode puts the room into another mode and keeps how that came. The row of
// the room is there: the session knows its room before it works on a message.
func (s *Session) switchMode(ctx context.Context, c modeSwitch) error {
	err := store.InTx(ctx, s.cfg.DB, func(tx *sql.Tx) error {
		for _, q := range []struct {
			text string
			args []any
		}{
			{`UPDATE session SET mode = ? WHERE room = ?`, []any{c.to, s.room}},
			{`INSERT INTO mode_switch (room, at, from_mode, to_mode, who, why) VALUES (?, ?, ?, ?, ?, ?)`,
				[]any{s.room, c.at.UnixMilli(), c.from, c.to, c.who, c.why}},
			{`DELETE FROM mode_switch WHERE room = ? AND id <= (SELECT id FROM mode_switch WHERE room = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`,
				[]any{s.room, s.room, keptSwitches}},
		} {
			if _, err := tx.ExecContext(ctx, q.text, q.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("session: switch mode: %w", err)
	}
	s.log.Info("mode", "from", c.from, "to", c.to, "who", c.who, "why", c.why)
	return nil
}

// how a person's switch was made, in the history.
const (
	byCommand = "!mode"
	byTool    = tool.SetMode
)

// changeMode is the command !mode: it sets the mode of the room, or tells it.
func (s *Session) changeMode(ctx context.Context, in Inbound, args string) (string, error) {
	now, err := s.mode(ctx)
	if err != nil {
		return "", err
	}
	next, known := modeNamed(args)
	switch {
	case args == "":
		return s.tellMode(ctx, now)
	case !known:
		return sentences(s.text(ctx, "mode.unknown", "modes", asWords(Modes())), s.nearestLine(ctx, args, Modes(), "")), nil
	case next.name == now.name && next.name != prompt.UserMode:
		return s.text(ctx, "mode.already", "mode", now.name), nil
	}
	if err := s.switchMode(ctx, modeSwitch{at: s.cfg.Now(), from: now.name, to: next.name, who: in.Sender, why: byCommand}); err != nil {
		return "", err
	}
	if next.name == now.name { // what a person edited there takes effect
		return s.text(ctx, "mode.user"), nil
	}
	return s.modeSet(ctx, next), nil
}

func (s *Session) modeSet(ctx context.Context, m mode) string {
	return s.text(ctx, "mode.set", "mode", m.name, "what", s.text(ctx, "mode.what."+m.name))
}

// setsMode sets the mode for a tool call that a person's message led to; nil where no person
// asks. The room is told, whatever the model says of it.
func (s *Session) setsMode(in Inbound) func(context.Context, string) error {
	if in.Event != "" || in.ID == "" {
		return nil
	}
	return func(ctx context.Context, name string) error {
		now, err := s.mode(ctx)
		if err != nil {
			return err
		}
		next, _ := modeNamed(name)
		// Told first: telling it twice is telling it once.
		if err := s.cfg.Transport.Say(ctx, s.room, Outgoing{ID: "mode:" + in.ID + ":" + next.name, Thread: s.thread, Notice: true, Text: s.modeSet(ctx, next)}); err != nil {
			return err
		}
		if next.name == now.name {
			return nil
		}
		return s.switchMode(ctx, modeSwitch{at: s.cfg.Now(), from: now.name, to: next.name, who: in.Sender, why: byTool})
	}
}

// tellMode says which mode it is, since when and why, and what came before it.
func (s *Session) tellMode(ctx context.Context, now roomMode) (string, error) {
	line, err := s.modeLine(ctx, now)
	if err != nil {
		return "", err
	}
	past, err := s.switches(ctx, shownSwitches)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", line)
	for _, m := range modes {
		fmt.Fprintf(&b, "- `!mode %s`: %s\n", m.name, s.text(ctx, "mode.what."+m.name))
	}
	if len(past) > 0 {
		b.WriteString("\n" + s.text(ctx, "mode.changes") + "\n\n")
	}
	for _, c := range past {
		fmt.Fprintf(&b, "- %s: %s → %s (%s)\n", c.at.Format(minute), c.from, c.to, s.reason(ctx, c))
	}
	return strings.TrimSpace(b.String()), nil
}

const minute = "2006-01-02 15:04"

// modeLine is the mode in one sentence, for !mode and !status.
func (s *Session) modeLine(ctx context.Context, now roomMode) (string, error) {
	past, err := s.switches(ctx, 1)
	if err != nil {
		return "", err
	}
	since := s.text(ctx, "mode.first")
	if len(past) > 0 && past[0].to == now.name {
		since = s.text(ctx, "mode.since", "at", past[0].at.Format(minute), "why", s.reason(ctx, past[0]))
	}
	return s.text(ctx, "mode.now", "mode", now.name, "since", since), nil
}

// reason is who or what made the change.
func (s *Session) reason(ctx context.Context, c modeSwitch) string {
	if c.who == "" {
		return s.text(ctx, "mode.self")
	}
	return s.text(ctx, "mode.by", "person", c.who)
}

// Tools describes the tools that the next message in room would be answered with.
func (m *Manager) Tools(ctx context.Context, room string) ([]llm.ToolSpec, error) {
	s := newSession(m, history.Talk(room))
	past, err := m.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return nil, err
	}
	at, err := s.lastPlace(ctx)
	if err != nil {
		return nil, err
	}
	how, err := s.manner(ctx, at, past, true)
	if err != nil {
		return nil, err
	}
	return s.offer(how).specs, nil
}
