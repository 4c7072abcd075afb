package prompt

import "context"

// gatherReread shows files whose text a compaction took out of the conversation, once.
func gatherReread(_ context.Context, q *question) (*content, error) {
	if len(q.turn.Reread) == 0 {
		return nil, nil
	}
	return newContent(content{source: "reread", lines: q.turn.Reread, integrity: q.turn.From.Reread}), nil
}
