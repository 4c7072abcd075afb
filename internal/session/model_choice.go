package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/chat"
	"reverie/internal/i18n"
	"reverie/internal/settings"
	"reverie/internal/tool"
)

// known is a model that was chosen, if there still is such a one.
func (s *Session) known(model string) string {
	if !slices.Contains(s.cfg.Models.Names(), model) {
		return ""
	}
	return model
}

// model is the command !model: it chooses the model that is asked first in this room,
// or tells which one is.
func (s *Session) model(ctx context.Context, in chat.Inbound, args string) (string, error) {
	switch {
	case args == "":
		return s.tellModel(ctx)
	case !tool.Allows(s.level(in), "!model"):
		return s.text(ctx, "settings.owners"), nil
	}
	return s.chooseModel(ctx, in, args)
}

// chooseModel has the sender of in, an owner, choose the room's model. The tier and the
// prompt follow at the next message.
func (s *Session) chooseModel(ctx context.Context, in chat.Inbound, name string) (string, error) {
	if strings.EqualFold(name, settings.Default) || strings.EqualFold(name, settings.Auto) {
		if err := s.Manager.settings().Clear(ctx, s.room, settings.ModelName); err != nil {
			return "", err
		}
		now, err := s.mode(ctx)
		if err != nil {
			return "", err
		}
		return s.text(ctx, "model.reset", "model", asWord(s.firstModel(now.Role))), nil
	}
	names := s.cfg.Models.Names()
	i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	if i < 0 {
		return i18n.Sentences(s.text(ctx, "model.unknown", "name", asWord(name), "models", asWords(names)), s.nearestLine(ctx, name, names, "")), nil
	}
	if err := s.Manager.settings().Put(ctx, s.room, settings.ModelName, names[i], in.Sender, s.cfg.Now()); err != nil {
		return "", err
	}
	s.log.Info("model", "name", names[i], "who", in.Sender)
	return s.text(ctx, "model.set", "model", asWord(names[i])), nil
}

func (s *Session) tellModel(ctx context.Context) (string, error) {
	now, err := s.mode(ctx)
	if err != nil {
		return "", err
	}
	asked := s.cfg.Models.Role(now.Role)
	if len(asked) == 0 {
		return s.text(ctx, "error.no_model"), nil
	}
	d, err := s.Manager.settings().Decided(ctx, s.room, settings.ModelName)
	if err != nil {
		return "", err
	}
	if d.Value != asked[0] {
		d = settings.Decided{}
	}
	var b strings.Builder
	said := s.text(ctx, "model.now", "model", asWord(asked[0]), "since", s.decidedBy(ctx, d))
	if len(asked) > 1 {
		said = i18n.Sentences(said, s.text(ctx, "model.others", "models", asWords(asked[1:])))
	}
	b.WriteString(said + "\n\n")
	for _, n := range s.cfg.Models.Names() {
		fmt.Fprintf(&b, "- `!model %s`: %s\n", n, s.cfg.Models.Limit(n))
	}
	return b.String() + "- " + s.text(ctx, "model.default"), nil
}
