package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/settings"
)

// roomMode is the mode of a room, and how much the model is to think there.
type roomMode struct {
	settings.Mode
	set   settings.Decided // who chose it, and when; what a person edits in user mode takes effect with the next time
	think llm.Think
	model string // that was chosen for the room, and is in its role; "" = none
}

// mode reads the mode of the room. A mode that there is no more is the first one.
func (s *Session) mode(ctx context.Context) (roomMode, error) {
	m := roomMode{Mode: settings.Modes()[0]}
	set, err := s.settings().Stored(ctx, s.room)
	if err != nil {
		return m, err
	}
	if chosen, ok := settings.ModeNamed(set[settings.ModeName].Value); ok {
		m.Mode, m.set = chosen, set[settings.ModeName]
	}
	m.think, m.model = llm.Think(set[settings.ThinkLevel].Value), s.known(set[settings.ModelName].Value)
	m.Role = llm.Preferring(m.Role, m.model)
	return m, nil
}

// switchMode puts the room into the mode next, for person. No two switches have the same time.
func (s *Session) switchMode(ctx context.Context, now roomMode, next settings.Mode, person string) error {
	at := s.cfg.Now()
	if earliest := now.set.At.Add(time.Millisecond); at.Before(earliest) {
		at = earliest
	}
	if err := s.settings().Put(ctx, s.room, settings.ModeName, next.Name, person, at); err != nil {
		return err
	}
	s.log.Info("mode", "from", now.Name, "to", next.Name, "who", person)
	return nil
}

// changeMode is the command !mode: it sets the mode of the room, or tells it.
func (s *Session) changeMode(ctx context.Context, in chat.Inbound, args string) (string, error) {
	now, err := s.mode(ctx)
	if err != nil {
		return "", err
	}
	next, known := settings.ModeNamed(args)
	switch {
	case args == "":
		return s.tellMode(ctx, now), nil
	case !known:
		return i18n.Sentences(s.text(ctx, "mode.unknown", "modes", asWords(settings.ModeNames())), s.nearestLine(ctx, args, settings.ModeNames(), "")), nil
	case next.Name == now.Name:
		return s.text(ctx, "mode.already", "mode", now.Name), nil
	}
	if err := s.switchMode(ctx, now, next, in.Sender); err != nil {
		return "", err
	}
	return s.modeSet(ctx, next), nil
}

func (s *Session) modeSet(ctx context.Context, m settings.Mode) string {
	return s.text(ctx, "mode.set", "mode", m.Name, "what", s.text(ctx, "mode.what."+m.Name))
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
		next, _ := settings.ModeNamed(name)
		// Told first: telling it twice is telling it once.
		if err := s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{ID: "mode:" + in.ID + ":" + next.Name, Thread: s.thread, Notice: true, Text: s.modeSet(ctx, next)}); err != nil {
			return err
		}
		if next.Name == now.Name {
			return nil
		}
		return s.switchMode(ctx, now, next, in.Sender)
	}
}

// tellMode says which mode it is, since when and why, and which there are.
func (s *Session) tellMode(ctx context.Context, now roomMode) string {
	var b strings.Builder
	b.WriteString(s.modeLine(ctx, now) + "\n\n")
	for _, m := range settings.Modes() {
		fmt.Fprintf(&b, "- `!mode %s`: %s\n", m.Name, s.text(ctx, "mode.what."+m.Name))
	}
	return strings.TrimSpace(b.String())
}

const chatRole = "chat"

const minute = "2006-01-02 15:04"

// modeLine is the mode in one sentence, for !mode and !status.
func (s *Session) modeLine(ctx context.Context, now roomMode) string {
	since := s.text(ctx, "mode.first")
	if !now.set.At.IsZero() {
		since = s.text(ctx, "mode.since", "at", now.set.At.In(s.cfg.Location).Format(minute), "why", s.text(ctx, "mode.by", "person", now.set.Person))
	}
	return s.text(ctx, "mode.now", "mode", now.Name, "since", since)
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
	return s.offer(how).Specs, nil
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
	if err := s.settings().Put(ctx, s.room, settings.ThinkLevel, string(level), in.Sender, s.cfg.Now()); err != nil {
		return "", err
	}
	if level == llm.ThinkDefault {
		return s.text(ctx, "think.freed"), nil
	}
	return s.text(ctx, "think.set", "level", string(level)), nil
}
