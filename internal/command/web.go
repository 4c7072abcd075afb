package command

import (
	"context"

	"reverie/internal/tool"
)

// openInspector is the command !web: it gives an owner a link to the inspector, in the direct chat only.
func openInspector(ctx context.Context, call *Call, _ string) (string, error) {
	switch {
	case call.Inspector == nil:
		return call.text(ctx, "web.off"), nil
	case !tool.AllowsAct(call.Access.Integrity, "!web"):
		return call.text(ctx, "web.owner"), nil
	case !call.In.Private:
		return call.text(ctx, "web.where"), nil
	}
	return call.text(ctx, "web.link", "link", call.Inspector(call.In.Sender)), nil
}
