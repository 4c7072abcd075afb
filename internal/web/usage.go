package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/usage"
)

const (
	usageDays    = 30
	newestTurns  = 60
	newestReport = 60
)

// tokens plots tokens, how long answers took, and how much of the prompts a server could reuse.
func tokens(ctx context.Context, v *visit) (view, error) {
	perDay, err1 := v.cfg.Usage.Days(ctx, usageDays)
	people, err2 := v.cfg.Usage.LastWeek(ctx, usage.Everybody)
	talks, err3 := v.talks(ctx)
	reports, err4 := prompt.StoredReports(ctx, v.cfg.DB, talks, newestReport)
	took, err5 := v.latency(ctx)
	var reused, size []value
	for _, r := range slices.Backward(reports) {
		at, link := v.stamp(r.At), fmt.Sprintf("/turns/%d", r.Message)
		reused = append(reused, value{Label: at, Link: link, Parts: []float64{100 * r.Reused}})
		size = append(size, value{Label: at, Link: link,
			Parts: []float64{float64(r.PrefixTokens), float64(r.History.Tokens), float64(r.TailTokens), float64(r.ToolTokens)}})
	}
	percent := func(f float64) string { return fmt.Sprintf("%.0f %%", f) }
	seconds := func(f float64) string { return fmt.Sprintf("%.1f s", f) }
	table := block{Title: "The last seven days", Head: []string{"Model", "For", "Today", "Week"}, Empty: "Nothing was used yet."}
	for _, r := range people {
		table.Rows = append(table.Rows, v.row(r.Model, cmp.Or(r.Person, "own work"), r.Today, r.Week))
	}
	return view{Title: "Usage", Blocks: []block{
		{Title: "Tokens", Bars: v.byDay(perDay)},
		{Title: "Time until the answer", Bars: plot("The newest answers, in seconds", nil, took, seconds)},
		{Title: "Size of prompts", Bars: plot("Tokens of the newest requests", []string{"prefix", "history", "tail", "tools"}, size, spaced)},
		{Title: "Reused", Bars: plot("Share of each prompt that was in the one before", nil, reused, percent)},
		table,
	}}, errors.Join(err1, err2, err3, err4, err5)
}

// byDay plots tokens by day and model.
func (v *visit) byDay(all []usage.Day) *bars {
	var models []string
	for _, d := range all {
		if !slices.Contains(models, d.Model) {
			models = append(models, d.Model)
		}
	}
	var values []value
	for _, date := range days(v.now, usageDays) {
		parts := make([]float64, len(models))
		for _, d := range all {
			if d.Date == date {
				parts[slices.Index(models, d.Model)] += float64(d.Tokens)
			}
		}
		values = append(values, value{Label: date, Parts: parts})
	}
	return plot("Tokens by day", models, values, spaced)
}

// latency returns how long the newest answers took, the oldest first.
func (v *visit) latency(ctx context.Context) (all []value, err error) {
	newest, err := v.messages(ctx, history.Filter{Newest: true, Limit: 10 * newestTurns})
	answers := map[history.Timeline]time.Time{}
	for _, m := range newest {
		switch {
		case m.Role == llm.Assistant && answers[m.Room].IsZero():
			answers[m.Room] = m.At
		case m.Role == llm.User && !answers[m.Room].IsZero():
			if took := answers[m.Room].Sub(m.At).Seconds(); m.Sender != "" && took >= 0 && len(all) < newestTurns {
				all = append(all, value{Label: v.stamp(m.At), Link: fmt.Sprintf("/turns/%d", m.ID), Parts: []float64{took}})
			}
			delete(answers, m.Room)
		}
	}
	slices.Reverse(all)
	return all, err
}
