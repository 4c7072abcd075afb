package llm

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"reverie/internal/llm/calls"
)

// callReader returns a reader for tool calls that the model wrote as text.
func callReader(req Request) *calls.Reader {
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

// extractCalls moves calls from the text of a reply to its ToolCalls. It repairs them all.
func extractCalls(reply Reply, reader *calls.Reader) Reply {
	cut := reply.Finish == "length"
	prose, read := reader.Split(reply.Text, cut)
	reply.Text = prose
	if len(reply.ToolCalls) == 0 { // else the server has parsed them and also left them in the text
		for _, c := range read {
			reply.ToolCalls = append(reply.ToolCalls, ToolCall{Name: c.Name, Arguments: c.Arguments})
		}
	}
	for i := range reply.ToolCalls {
		c := &reply.ToolCalls[i]
		mended := reader.Repair(calls.Call{Name: c.Name, Arguments: c.Arguments}, cut)
		c.Name, c.Arguments = mended.Name, mended.Arguments
	}
	reply.ToolCalls = assignIDs(reply.ToolCalls)
	return reply
}

// fitArguments converts the arguments of a reply's calls with req.Fit. The model is asked once more for
// the first that do not fit; others stay as they are, and their tools report the fault.
func (m *model) fitArguments(ctx context.Context, req Request, reply Reply) Reply {
	if req.Fit == nil || req.NoCalls {
		return reply
	}
	may := reply.Finish != "length" // a retry would hit the same limit
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

// askArguments requests the arguments of one call again, constrained to its tool's schema. fault
// says what is wrong with them.
func (m *model) askArguments(ctx context.Context, req Request, said string, c ToolCall, spec ToolSpec, fault error) (ToolCall, error) {
	if m.knownQuirks()&noFormat != 0 || len(spec.Parameters) == 0 {
		return c, fault
	}
	again := req
	again.answerSchema = &spec
	again.Messages = append(slices.Clone(req.Messages),
		Message{Role: Assistant, Content: fmt.Sprintf("%s\n[%s with %s]", said, c.Name, c.Arguments)},
		Message{Role: User, Content: fmt.Sprintf("%v\n\nNow write the arguments of %s anew: one JSON object, and nothing else.",
			fault, c.Name)})
	reply, f := m.attempt(ctx, again, m.knownQuirks(), nil)
	if f != nil {
		if f.unexplained || f.quirk != 0 { // the new part, the schema, was refused
			m.learnQuirk(noFormat)
		}
		return c, fault
	}
	written := calls.Call{Name: c.Name, Arguments: reply.Text}
	for _, other := range reply.ToolCalls { // it wrote the whole call
		if other.Name == c.Name {
			written.Arguments = other.Arguments
		}
	}
	c.Arguments = callReader(req).Repair(written, reply.Finish == "length").Arguments
	c, err := req.Fit(c)
	m.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "arguments requested again", slog.String("model", m.Name), slog.String("tool", c.Name),
		slog.Bool("fit", err == nil))
	return c, err
}
