package session

import (
	"context"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/objective"
	"reverie/internal/settings"
)

const (
	chatRole = "chat"
	minute   = "2006-01-02 15:04"
)

// objective returns the store of current tasks.
func (m *Manager) objective() objective.Store {
	return objective.Store{DB: m.cfg.DB, Tasks: m.cfg.Tasks, History: m.cfg.History, Models: m.cfg.Models, Role: m.cfg.ObjectiveRole}
}

// firstModel returns the model that a role asks first.
func (m *Manager) firstModel(role string) string { return agent.FirstModel(m.cfg.Models, role) }

// text returns a message text in the room's language.
func (s *Session) text(ctx context.Context, key string, fill ...string) string {
	return s.cfg.Messages.Text(ctx, s.room, key, fill...)
}

// mode reads the mode of the room.
func (s *Session) mode(ctx context.Context) (settings.RoomMode, error) {
	return s.cfg.Settings.RoomMode(ctx, s.room, s.cfg.Models.Names())
}

// modeSetter returns the function with which a tool call sets the mode; nil unless a person is
// answered. It always tells the room.
func (s *Session) modeSetter(in item) func(context.Context, string) error {
	if in.event.Kind != "" || in.ID == "" {
		return nil
	}
	return func(ctx context.Context, name string) error {
		now, err := s.mode(ctx)
		if err != nil {
			return err
		}
		next, _ := settings.FindMode(name)
		// The notice goes first: sending it twice shows it once.
		if err := s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{ID: "mode:" + in.ID + ":" + next.Name, Thread: s.thread, Notice: true,
			Text: command.ModeSet(s.cfg.Messages.For(ctx, s.room), next)}); err != nil {
			return err
		}
		if next.Name == now.Name {
			return nil
		}
		s.log.Info("mode", "from", now.Name, "to", next.Name, "who", in.Sender)
		return s.cfg.Settings.Put(ctx, s.room, settings.ModeName, next.Name, in.Sender, s.cfg.Now())
	}
}
