package llm

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"reverie/internal/llm/calls"
)

// readerOf reads the answers to a request for calls that stand in their text.
func readerOf(req Request) *calls.Reader {
	tools := make([]calls.Tool, len(req.Tools))
	for i, t := range req.Tools {
		tools[i] = calls.Tool{Name: t.Name, Parameters: t.Parameters}
	}
	var given []string
	for _, m := range req.Messages {
		if m.Role != Assistant {
			given = append(given, m.Content)
		}
	}
	return calls.New(tools, given)
}

// withCalls takes the calls out of the text of a reply, and mends them and those that came as calls.
func withCalls(reply Reply, reader *calls.Reader) Reply {
	cut := reply.Finish == "length"
	prose, read := reader.Split(reply.Text, cut)
	reply.Text = prose
	if len(reply.ToolCalls) == 0 { // else the server has read them, and left them in the text
		for _, c := range read {
			reply.ToolCalls = append(reply.ToolCalls, ToolCall{Name: c.Name, Arguments: c.Arguments})
		}
	}
	for i := range reply.ToolCalls {
		c := &reply.ToolCalls[i]
		mended := reader.Mend(calls.Call{Name: c.Name, Arguments: c.Arguments}, cut)
		c.Name, c.Arguments = mended.Name, mended.Arguments
	}
	reply.ToolCalls = identified(reply.ToolCalls)
	return reply
}

// fitted makes the arguments of the calls in a reply fit their tools. For the first that do not, the
// model is asked again; others stay as they are, and their tools say what is wrong.
func (m *model) fitted(ctx context.Context, req Request, reply Reply) Reply {
	if req.Fit == nil || req.NoCalls {
		return reply
	}
	may := reply.Finish != "length" // else the model would run into the same limit
	for i, c := range reply.ToolCalls {
		at := slices.IndexFunc(req.Tools, func(t ToolSpec) bool { return t.Name == c.Name })
		if at < 0 {
			continue
		}
		fit, err := req.Fit(c)
		if err != nil && may {
			may = false
			fit, err = m.askArguments(ctx, req, reply.Text, c, req.Tools[at], err)
		}
		if err == nil {
			reply.ToolCalls[i] = fit
		}
	}
	return reply
}

// askArguments asks the model for the arguments of one call, bound to the schema of its tool. fault says
// what is wrong with them.
func (m *model) askArguments(ctx context.Context, req Request, said string, c ToolCall, spec ToolSpec, fault error) (ToolCall, error) {
	if m.known()&noFormat != 0 || len(spec.Parameters) == 0 {
		return c, fault
	}
	again := req
	again.bound = &spec
	again.Messages = append(slices.Clone(req.Messages),
		Message{Role: Assistant, Content: fmt.Sprintf("%s\n[%s with %s]", said, c.Name, c.Arguments)},
		Message{Role: User, Content: fmt.Sprintf("%v\n\nNow write the arguments of %s anew: one JSON object, and nothing else.",
			fault, c.Name)})
	reply, f := m.once(ctx, again, m.known(), nil)
	if f != nil {
		if f.vague || f.quirk != 0 { // it refuses what the request before did not have
			m.learn(noFormat)
		}
		return c, fault
	}
	written := calls.Call{Name: c.Name, Arguments: reply.Text}
	for _, other := range reply.ToolCalls { // it wrote the whole call instead
		if other.Name == c.Name {
			written.Arguments = other.Arguments
		}
	}
	c.Arguments = readerOf(req).Mend(written, reply.Finish == "length").Arguments
	c, err := req.Fit(c)
	m.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "arguments asked for again", slog.String("model", m.Name), slog.String("tool", c.Name),
		slog.Bool("fit", err == nil))
	return c, err
}
