// Package compaction makes a conversation fit its model's window. It shortens old tool results first; if
// that is not enough, a summary replaces older messages. The newest 10, 3 or 1 messages stay, and a call
// stays with its result. Rows of the table message are marked or get a short form; they are never deleted.
// Without a usable summary by a model, an extract stands in. Package history/compact plans the compaction
// and checks the summary.
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
	Full     = "full"    // too little space is left for the next turn
	TooLarge = "over"    // the prompt does not fit the window
	Refused  = "refused" // the server refused the request as too large
	Asked    = "asked"   // the command !compact
)

const minAsked = 4 // messages that !compact summarises; fewer are not worth it

// Compactor compacts conversations.
type Compactor struct {
	Models  *llm.Models
	Prompt  *prompt.Assembler
	History *history.Store
	Windows window.Store
	Timeout time.Duration // of the model that summarises
	Now     func() time.Time
	Log     *slog.Logger
}

// Request says what to compact, and why.
type Request struct {
	Turn     prompt.Turn        // with the whole history
	Previous history.Compaction // the summary of older messages
	Reason   string
	Share    int  // percent of the history's space to fill
	Extract  bool // use an extract without asking a model
	// BeforeEvict is called before messages leave the prompt.
	BeforeEvict func()
}

// Compact compacts a conversation and stores the result. done has no ID if it did nothing, because too
// little would be saved.
func (c Compactor) Compact(ctx context.Context, r Request) (plan compact.Plan, done history.Compaction, err error) {
	l, err := c.limits(ctx, r.Turn, r.Share)
	if err != nil {
		return plan, done, err
	}
	l.Full = r.Reason == Asked
	plan = compact.NewPlan(r.Turn.History, l)
	if r.Reason == TooLarge && plan.Empty() { // else the prompt would drop messages without a summary
		l.Full = true
		plan = compact.NewPlan(r.Turn.History, l)
	}
	if !worthIt(plan, l, r.Reason) {
		return plan, done, nil
	}
	done = history.Compaction{Room: r.Turn.Timeline, Level: history.Trimmed, Reason: r.Reason, Summary: r.Previous.Summary,
		Details: r.Previous.Details, Integrity: r.Previous.Integrity, At: c.Now(),
		Before: plan.Before + llm.EstimateTokens(r.Previous.Text())}
	if len(plan.Removed) > 0 {
		r.BeforeEvict()
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

// Needed returns the reason to compact a conversation before its next request, or "". r and err are those
// of the assembled prompt.
func Needed(r prompt.Report, past []history.Message, err error) string {
	var large *prompt.TooLargeError
	switch {
	case errors.As(err, &large), err == nil && r.History.LeftOut > 0:
		return TooLarge
	case err != nil || r.Window <= 0 || len(past) == 0 || past[len(past)-1].Role != llm.User:
		return "" // within a turn only TooLarge counts
	}
	percent := 85 // of the room; small windows cannot spare any
	if r.Window <= 4096 {
		percent = 95
	} else if r.Window <= 8192 {
		percent = 90
	}
	if r.History.Tokens*100 > (r.Room()-r.Total+r.History.Tokens)*percent {
		return Full
	}
	return ""
}

// worthIt reports whether a plan saves enough. For TooLarge and Refused any saving is enough.
func worthIt(p compact.Plan, l compact.Limits, reason string) bool {
	switch reason {
	case Asked:
		return len(p.Removed) >= minAsked
	case TooLarge, Refused:
		return !p.Empty()
	}
	return !p.Empty() && p.Before-p.After >= l.Room/10
}

// limits measures the tokens that a prompt leaves for the history and the summary.
func (c Compactor) limits(ctx context.Context, t prompt.Turn, share int) (compact.Limits, error) {
	t.History, t.Summary, t.Preview = nil, "", true
	p, err := c.Prompt.Assemble(ctx, t)
	if err != nil {
		return compact.Limits{}, err
	}
	room := (p.Report.Room() - p.Report.Total) * share / 100
	// A longer summary would displace messages. A prompt section has a cap of 8,000 characters.
	const least, most = 100, 1_600
	return compact.Limits{Room: room, Summary: min(max(room*35/100, least), most)}, nil
}
