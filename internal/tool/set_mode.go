package tool

import (
	"context"
	"fmt"

	"reverie/internal/settings"
)

// SetMode is the name of the tool that changes a room's mode.
const SetMode = "set_mode"

type setModeArgs struct {
	Mode string `json:"mode" must:"assistant,planning,developer,debugger,user" doc:"The mode to work in."`
}

// setMode changes the room's mode, like the command !mode.
func (*Set) setMode(ctx context.Context, scope Scope, a setModeArgs) (string, error) {
	if scope.Set == nil || scope.System {
		return "", refusal("The mode is changed only when a person asks for it. It stays as it is.")
	}
	if err := scope.Set(ctx, settings.ModeName, a.Mode); err != nil {
		return "", err
	}
	return fmt.Sprintf("From the next message on the mode of this room is %s. The person was told.", a.Mode), nil
}
