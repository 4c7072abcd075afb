package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
)

// roomMode is the mode of a room, and how much the model is to think there.
type roomMode struct {
	mode
	set   decided // who chose it, and when; what a person edits in user mode takes effect with the next time
	think llm.Think
	model string // that was chosen for the room, and is in its role; "" = none
}

// mode reads the mode of the room. A mode that there is no more is the first one.
func (s *Session) mode(ctx context.Context) (roomMode, error) {
	m := roomMode{mode: modes[0]}
	set, err := s.settings().stored(ctx, s.room)
	if err != nil {
		return m, err
	}
	if chosen, ok := modeNamed(set[settingMode].value); ok {
		m.mode, m.set = chosen, set[settingMode]
	}
	m.think, m.model = llm.Think(set[settingThink].value), s.known(set[settingModel].value)
	m.role = llm.Preferring(m.role, m.model)
	return m, nil
}

// switchMode puts the room into the mode next, for person. No two switches have the same time.
func (s *Session) switchMode(ctx context.Context, now roomMode, next mode, person string) error {
	at := s.cfg.Now()
	if earliest := now.set.at.Add(time.Millisecond); at.Before(earliest) {
		at = earliest
	}
	if err := s.settings().put(ctx, s.room, settingMode, next.name, person, at); err != nil {
		return err
	}
	s.log.Info("mode", "from", now.name, "to", next.name, "who", person)
	return nil
}

// changeMode is the command !mode: it sets the mode of the room, or tells it.
func (s *Session) changeMode(ctx context.Context, in chat.Inbound, args string) (string, error) {
	now, err := s.mode(ctx)
	if err != nil {
		return "", err
	}
	next, known := modeNamed(args)
	switch {
	case args == "":
		return s.tellMode(ctx, now), nil
	case !known:
		return sentences(s.text(ctx, "mode.unknown", "modes", asWords(Modes())), s.nearestLine(ctx, args, Modes(), "")), nil
	case next.name == now.name:
		return s.text(ctx, "mode.already", "mode", now.name), nil
	}
	if err := s.switchMode(ctx, now, next, in.Sender); err != nil {
		return "", err
	}
	return s.modeSet(ctx, next), nil
}

func (s *Session) modeSet(ctx context.Context, m mode) string {
	return s.text(ctx, "mode.set", "mode", m.name, "what", s.text(ctx, "mode.what."+m.name))
}

// setsMode sets the mode for a tool call that a person's message led to; nil where no person
// asks. The room is told, whatever the model says of it.
func (s *Session) setsMode(in chat.Inbound) func(context.Context, string) error {
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
		if err := s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{ID: "mode:" + in.ID + ":" + next.name, Thread: s.thread, Notice: true, Text: s.modeSet(ctx, next)}); err != nil {
			return err
		}
		if next.name == now.name {
			return nil
		}
		return s.switchMode(ctx, now, next, in.Sender)
	}
}

// tellMode says which mode it is, since when and why, and which there are.
func (s *Session) tellMode(ctx context.Context, now roomMode) string {
	var b strings.Builder
	b.WriteString(s.modeLine(ctx, now) + "\n\n")
	for _, m := range modes {
		fmt.Fprintf(&b, "- `!mode %s`: %s\n", m.name, s.text(ctx, "mode.what."+m.name))
	}
	return strings.TrimSpace(b.String())
}

const minute = "2006-01-02 15:04"

// modeLine is the mode in one sentence, for !mode and !status.
func (s *Session) modeLine(ctx context.Context, now roomMode) string {
	since := s.text(ctx, "mode.first")
	if !now.set.at.IsZero() {
		since = s.text(ctx, "mode.since", "at", now.set.at.In(s.cfg.Location).Format(minute), "why", s.text(ctx, "mode.by", "person", now.set.person))
	}
	return s.text(ctx, "mode.now", "mode", now.name, "since", since)
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

// think is the command !think: it sets the level of the room, or tells it.
func (s *Session) think(ctx context.Context, in chat.Inbound, args string) (string, error) {
	if args == "" {
		now, err := s.mode(ctx)
		if err != nil {
			return "", err
		}
		if now.think == llm.ThinkDefault {
			return s.text(ctx, "think.free"), nil
		}
		return s.text(ctx, "think.now", "level", string(now.think)), nil
	}
	level, err := llm.ParseThink(args)
	if err != nil {
		return s.text(ctx, "think.unknown"), nil
	}
	if err := s.settings().put(ctx, s.room, settingThink, string(level), in.Sender, s.cfg.Now()); err != nil {
		return "", err
	}
	if level == llm.ThinkDefault {
		return s.text(ctx, "think.freed"), nil
	}
	return s.text(ctx, "think.set", "level", string(level)), nil
}
