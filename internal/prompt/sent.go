package prompt

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// ErrNotKept says that nothing is known of the last request: there was none, it was a
// scheduled job's, or its layout is rebuilt every time and keeps no prefix.
var ErrNotKept = errors.New("prompt: the last request of this room is not kept")

// Sent returns the last request of a room, byte for byte as it went to the model,
// from the epoch and the history in the database.
func (a *Assembler) Sent(ctx context.Context, room history.Talk) ([]llm.Message, error) {
	e, err := loadEpoch(ctx, a.cfg.DB, room)
	if err != nil {
		return nil, err
	}
	if e == nil || e.layout != Stable {
		return nil, ErrNotKept
	}
	past, err := a.cfg.History.Load(ctx, room)
	if err != nil {
		return nil, err
	}
	compacted, err := a.cfg.History.Compacted(ctx, room)
	if err != nil {
		return nil, err
	}
	if id := compacted.ID; id != 0 && keyPart(e.key, "compaction") != strconv.FormatInt(id, 16) {
		return nil, ErrNotKept // what it held is shorter or gone by now
	}
	for len(past) > 0 && past[len(past)-1].Role == llm.Assistant { // the answer to it
		past = past[:len(past)-1]
	}
	if len(past) == 0 || past[0].Conversation != e.conversation || ofJob(past) {
		return nil, ErrNotKept
	}
	out := []llm.Message{{Role: llm.System, Content: e.prefix}}
	from := shownFrom(past, e.since)
	for i := range past {
		m := &past[i]
		if m.ID < e.first {
			continue
		}
		tail := m.Tail
		if m.ID < e.since {
			tail = ""
		}
		sent, _ := sendMessage(m, tail, e.nonce, a.cfg.Dir, m.ID >= from)
		out = append(out, sent)
	}
	return out, nil
}

// ofJob reports whether past ends with a scheduled job, by the header that it has.
func ofJob(past []history.Message) bool {
	for i := len(past) - 1; i >= 0; i-- {
		if past[i].Role == llm.User {
			return past[i].Sender == "" && strings.Contains(past[i].Header, "system event: scheduled task]")
		}
	}
	return false
}
