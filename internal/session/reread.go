package session

import (
	"context"
	"encoding/json"
	"slices"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/trust"
)

const (
	fileTool    = "read_file"
	mostReread  = 5
	rereadShare = 10  // percent of the room of a compaction, for all files together
	leastReread = 100 // tokens; less of a file is not worth its place
	lately      = 20  // messages before the compaction; what was read earlier is done with
)

// reread reads the files again that the model read lately and whose text a compaction
// took away: the newest first, at most five, in a share of the room. The tool
// reads them, for the person in, so that nothing is shown that the model could not read now.
func (s *Session) reread(ctx context.Context, in Inbound, now roomMode, plan history.Plan, room int) (out []string, of trust.Integrity) {
	var calls []llm.ToolCall
	for _, m := range slices.Backward(plan.Gone[max(0, len(plan.Gone)-lately):]) {
		for _, c := range slices.Backward(m.Calls) {
			same := func(o llm.ToolCall) bool { return o.Name == c.Name && samePlace(o.Arguments, c.Arguments) }
			if c.Name == fileTool && !slices.ContainsFunc(calls, same) && !readIn(plan.Kept, same) && len(calls) < mostReread {
				calls = append(calls, c)
			}
		}
	}
	if len(calls) == 0 {
		return nil, trust.Owner
	}
	of = trust.Owner
	scope := s.toolScope(in, now)
	most := room * rereadShare / 100
	for _, c := range calls {
		if most < leastReread {
			break
		}
		result := s.cfg.Tools.Run(ctx, scope, c)
		if result.Failed {
			continue
		}
		text := history.Cut(result.Content, most)
		most -= llm.EstimateTokens(text)
		out, of = append(out, text), min(of, result.Integrity)
	}
	slices.Reverse(out)
	return out, of
}

// readIn reports whether messages hold such a call.
func readIn(messages []history.Message, such func(llm.ToolCall) bool) bool {
	return slices.ContainsFunc(messages, func(m history.Message) bool { return slices.ContainsFunc(m.Calls, such) })
}

// samePlace reports whether two calls read the same part of the same file.
func samePlace(a, b string) bool {
	type place struct {
		Path          string
		Offset, Limit int
	}
	var x, y place
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && x == y
}
