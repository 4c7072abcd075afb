// Package compaction makes a conversation fit its model's window. Old tool results are shortened; if that is
// not enough, a summary replaces the older messages. The newest 10, 3 or 1 messages stay, a call always with
// its result. Rows of message are marked or get a short form, and are never deleted. If the model gives no
// usable summary, an extract takes its place. Package history/compact plans it and checks the summary.
package compaction

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"reverie/internal/history"
	"reverie/internal/history/compact"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/window"
)

// Why a conversation is compacted.
const (
	Full    = "full"    // it left no room for what is to come
	Over    = "over"    // it did not fit
	Refused = "refused" // it did not fit, says the server
	Asked   = "asked"   // somebody said !compact
)

const leastAsked = 4 // messages; fewer are not worth a summary, though somebody asks for it

// Compactor compacts conversations.
type Compactor struct {
	Models  *llm.Models
	Prompt  *prompt.Assembler
	History *history.Store
	Windows window.Store
	Time    time.Duration // how long a model may take to summarise
	Now     func() time.Time
	Log     *slog.Logger
}

// Request says what is compacted, and why.
type Request struct {
	Turn   prompt.Turn        // with the conversation as it is
	Before history.Compaction // what stands for the part before it
	Reason string
	Share  int  // percent of the room for the history that may be taken
	Words  bool // no model is asked: the words themselves stand in
	// Leaving is called before messages leave the conversation.
	Leaving func()
}

// Compact compacts a conversation, and stores what it did. Without an ID that is nothing: too little would
// be won.
func (c Compactor) Compact(ctx context.Context, r Request) (plan compact.Plan, done history.Compaction, err error) {
	l, err := c.limits(ctx, r.Turn, r.Share)
	if err != nil {
		return plan, done, err
	}
	l.Full = r.Reason == Asked
	plan = compact.NewPlan(r.Turn.History, l)
	if r.Reason == Over && plan.Empty() { // it would fit, but the prompt leaves messages out: better a summary of them
		l.Full = true
		plan = compact.NewPlan(r.Turn.History, l)
	}
	if !worthIt(plan, l, r.Reason) {
		return plan, done, nil
	}
	done = history.Compaction{Room: r.Turn.Talk, Level: history.Trimmed, Reason: r.Reason, Summary: r.Before.Summary,
		Details: r.Before.Details, Integrity: r.Before.Integrity, Before: plan.Before + llm.EstimateTokens(r.Before.Text()), At: c.Now()}
	if len(plan.Removed) > 0 {
		r.Leaving()
		if err := c.summarise(ctx, &done, r, plan.Removed, l.Summary); err != nil {
			return plan, done, err
		}
	}
	done.After = history.Tokens(plan.Kept) + llm.EstimateTokens(done.Text())
	if err := c.History.Compact(ctx, &done, plan.Removed, plan.Shortened); err != nil {
		return plan, history.Compaction{}, err
	}
	c.Log.Info("conversation compacted", "reason", r.Reason, "level", done.Level, "summarised", done.Messages, "shortened", done.Shortened,
		"before", done.Before, "after", done.After, "room", l.Room)
	return plan, done, nil
}

// Needed says why a conversation must be compacted before its next request, or "". r and err are of the prompt for it.
func Needed(r prompt.Report, past []history.Message, err error) string {
	var large *prompt.TooLargeError
	switch {
	case errors.As(err, &large), err == nil && r.History.LeftOut > 0:
		return Over
	case err != nil || r.Window <= 0 || len(past) == 0 || past[len(past)-1].Role != llm.User:
		return "" // in the middle of a turn only what must be is done
	}
	room := r.Room() - (r.Total - r.History.Tokens)
	if r.History.Tokens*100 > room*boundary(r.Window) {
		return Full
	}
	return ""
}

// boundary is where at the beginning of a turn the history is full, in percent of
// its room. Small windows have none to spare.
func boundary(window int) int {
	switch {
	case window <= 4096:
		return 95
	case window <= 8192:
		return 90
	}
	return 85
}

// worthIt reports whether a plan wins enough: who asked for it, or is refused
// otherwise, gets what there is.
func worthIt(p compact.Plan, l compact.Limits, reason string) bool {
	switch reason {
	case Asked:
		return len(p.Removed) >= leastAsked
	case Over, Refused:
		return !p.Empty()
	}
	return !p.Empty() && p.Before-p.After >= l.Room/10
}

// limits measures what a fresh prompt leaves for the history and the summary.
func (c Compactor) limits(ctx context.Context, t prompt.Turn, share int) (compact.Limits, error) {
	t.History, t.Summary, t.Preview = nil, "", true
	p, err := c.Prompt.Assemble(ctx, t)
	if err != nil {
		return compact.Limits{}, err
	}
	room := (p.Report.Room() - p.Report.Total) * share / 100
	// A summary that is much longer would cost the conversation its place, and a section
	// of the prompt has a cap of 8,000 characters.
	const least, most = 100, 1_600
	return compact.Limits{Room: room, Summary: min(max(room*35/100, least), most)}, nil
}
