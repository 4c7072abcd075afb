package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"reverie/internal/delivery"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/store"
	"reverie/internal/usage"
)

// overview shows how the assistant is.
func overview(ctx context.Context, v *visit) (view, error) {
	queues, err := delivery.CountRows(ctx, v.cfg.DB, v.now.UnixMilli())
	used, err2 := v.cfg.Usage.LastWeek(ctx, usage.Everybody)
	today := 0
	for _, r := range used {
		today += r.Today
	}
	state := block{Title: "State", Rows: store.Map(v.cfg.Status(ctx), func(line string) []cell { return v.row(line) })}
	window, answer := v.cfg.Models.Window("chat")
	return view{Title: v.cfg.Name, Fresh: true, Blocks: []block{{Facts: v.facts(
		"Model", strings.Join(v.cfg.Models.Role("chat"), ", "),
		"Window", fmt.Sprintf("%s tokens, %s of it for the answer", spaced(window), spaced(answer)),
		"Tokens today", today,
		"Waiting messages", fmt.Sprintf("%d in, %d out", queues.Inbox, queues.Outbox),
		"Not decrypted yet", queues.Undecryptable,
		"Given up", fmt.Sprintf("%d in, %d out", queues.Lost, queues.Dead),
	)}, state}}, errors.Join(err, err2)
}

// doctor runs the checks when the form asks for them: they ask servers, so they do not run by themselves.
func doctor(ctx context.Context, v *visit) (view, error) {
	list := block{Head: []string{"Area", "State", "What", "Remedy"}, Forms: []form{{"/doctor", []button{{"", "", "Run the checks"}}}},
		Note: "Checks files, models, the prompts of the newest conversations, and what tools need. It may take half a minute."}
	if v.Method == http.MethodPost {
		for _, f := range v.cfg.Doctor(ctx) {
			state := cell{Text: f.State, Class: map[string]string{"ok": "good", "ill": "bad"}[f.State]}
			list.Rows = append(list.Rows, v.row(f.Area, state, long(f.What), long(f.Remedy)))
		}
	}
	return view{Title: "Doctor", Blocks: []block{list}}, nil
}

const usageDays, newestTurns = 30, 60

// tokens plots tokens, how long answers took, and how much of the prompts a server could reuse.
func tokens(ctx context.Context, v *visit) (view, error) {
	perDay, err1 := v.cfg.Usage.Days(ctx, usageDays)
	people, err2 := v.cfg.Usage.LastWeek(ctx, usage.Everybody)
	talks, err3 := v.talks(ctx)
	reports, err4 := prompt.StoredReports(ctx, v.cfg.DB, talks, newestTurns)
	took, err5 := v.latency(ctx)
	var reused, size []value
	for _, r := range slices.Backward(reports) {
		at, link := v.stamp(r.At), fmt.Sprintf("/turns/%d", r.Message)
		reused = append(reused, value{Label: at, Link: link, Parts: []float64{100 * r.Reused}})
		size = append(size, value{Label: at, Link: link,
			Parts: []float64{float64(r.PrefixTokens), float64(r.History.Tokens), float64(r.TailTokens), float64(r.ToolTokens)}})
	}
	zones := []string{"prefix", "history", "tail", "tools"}
	percent := func(f float64) string { return fmt.Sprintf("%.0f %%", f) }
	seconds := func(f float64) string { return fmt.Sprintf("%.1f s", f) }
	table := block{Title: "The last seven days", Head: []string{"Model", "For", "Today", "Week"}, Empty: "Nothing was used yet."}
	for _, r := range people {
		table.Rows = append(table.Rows, v.row(r.Model, cmp.Or(r.Person, "own work"), r.Today, r.Week))
	}
	return view{Title: "Usage", Blocks: []block{
		{Title: "Tokens", Bars: v.byDay(perDay)},
		{Title: "Time until the answer", Bars: plot("The newest answers, in seconds", nil, took, seconds)},
		{Title: "Size of prompts", Bars: plot("Tokens of the newest requests", zones, size, spaced)},
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
