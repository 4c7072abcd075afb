package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/settings"
	"reverie/internal/text"
)

// SetModel is the name of the tool that changes a room's model.
const SetModel = "set_model"

type setModelArgs struct {
	Model string `json:"model" rule:"required" doc:"Its name, or a part."`
}

// setModel changes the room's model, like the command !model.
func setModel(s *Set, ctx context.Context, scope Scope, a setModelArgs) (string, error) {
	if scope.Set == nil || scope.System {
		return "", refusal("The model is changed only when a person asks for it. It stays as it is.")
	}
	word := strings.ToLower(strings.TrimSpace(a.Model))
	is := func(name string) bool { return strings.EqualFold(name, word) }
	lacks := func(name string) bool { return !strings.Contains(strings.ToLower(name), word) }
	found := slices.DeleteFunc(slices.Clone(s.cfg.Models), lacks)
	if i := slices.IndexFunc(found, is); i >= 0 {
		found = found[i : i+1]
	} else if len(found) == 0 {
		found = text.Nearest(word, s.cfg.Models)
	}
	if len(found) != 1 {
		return "", refusal(fmt.Sprintf("%q is not the name of one model. Ask the person which they mean: %s.",
			clip(a.Model), strings.Join(s.cfg.Models, ", ")))
	}
	if err := scope.Set(ctx, settings.ModelName, found[0]); err != nil {
		return "", err
	}
	return fmt.Sprintf("From the next message on this room uses %s. The person was told.", found[0]), nil
}
