package web

import (
	"cmp"
	"context"
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
	all, err := v.cfg.Usage.Days(ctx, usageDays)
	if err != nil {
		return view{}, err
	}
	people, err := v.cfg.Usage.LastWeek(ctx, usage.Everybody)
	if err != nil {
		return view{}, err
	}
	talks, err := v.talks(ctx)
	if err != nil {
		return view{}, err
	}
	reports, err := prompt.StoredReports(ctx, v.cfg.DB, talks, newestReport)
	if err != nil {
		return view{}, err
	}
	took, err := v.latency(ctx)
	if err != nil {
		return view{}, err
	}
	slices.Reverse(reports)
	var reused, size []value
	for _, r := range reports {
		at, link := v.stamp(r.At), fmt.Sprintf("/turns/%d", r.Message)
		reused = append(reused, value{at, fmt.Sprintf("%s: %.0f %%", at, 100*r.Reused), link, []float64{100 * r.Reused}})
		size = append(size, value{at, fmt.Sprintf("%s: %s", at, spaced(r.Total)), link,
			[]float64{float64(r.PrefixTokens), float64(r.History.Tokens), float64(r.TailTokens), float64(r.ToolTokens)}})
	}
	percent := func(f float64) string { return fmt.Sprintf("%.0f %%", f) }
	seconds := func(f float64) string { return fmt.Sprintf("%.1f s", f) }
	table := block{Title: "The last seven days", Head: []string{"Model", "For", "Today", "Week"}, Empty: "Nothing was used yet."}
	for _, r := range people {
		table.Rows = append(table.Rows, []cell{{Text: r.Model}, {Text: cmp.Or(r.Person, "own work")},
			count(r.Today), count(r.Week)})
	}
	zones := []string{"prefix", "history", "tail", "tools"}
	return view{Title: "Usage", Blocks: []block{
		{Title: "Tokens", Bars: v.byDay(all)},
		{Title: "Time until the answer", Bars: plot("The newest answers, in seconds", nil, took, seconds)},
		{Title: "Size of prompts", Bars: plot("Tokens of the newest requests", zones, size, spaced[float64])},
		{Title: "Reused", Bars: plot("Share of each prompt that was in the one before", nil, reused, percent)},
		table,
	}}, nil
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
		values = append(values, value{date, date + ": " + spaced(sum(parts)), "", parts})
	}
	return plot("Tokens by day", models, values, spaced[float64])
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
				at := v.stamp(m.At)
				all = append(all, value{at, fmt.Sprintf("%s: %.1f s", at, took), fmt.Sprintf("/turns/%d", m.ID), []float64{took}})
			}
			delete(answers, m.Room)
		}
	}
	slices.Reverse(all)
	return all, err
}
