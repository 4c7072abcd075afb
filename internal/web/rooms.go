package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/subsession"
)

// rooms lists the conversations, the newest first.
func rooms(ctx context.Context, v *visit) (view, error) {
	list := block{Empty: "Nobody has written yet."}
	talks, err := v.talks(ctx)
	for _, t := range talks {
		list.Rows = append(list.Rows, []cell{roomLink(t)})
	}
	return view{Title: "Rooms", Blocks: []block{list}}, err
}

// talks lists the conversations that the person may read, the newest first. Those of sub-sessions have a page of their own.
func (v *visit) talks(ctx context.Context) (seen []history.Timeline, err error) {
	all, err := v.cfg.History.Rooms(ctx)
	for _, t := range all {
		talk := history.Timeline(t)
		if strings.HasPrefix(t, subsession.Prefix) {
			continue
		}
		switch err := v.mayRead(ctx, talk); {
		case err == nil:
			seen = append(seen, talk)
		case !errors.Is(err, errNotFound):
			return nil, err
		}
	}
	return seen, err
}

// mayRead returns errNotFound unless the person may read the current conversation of talk.
func (v *visit) mayRead(ctx context.Context, talk history.Timeline) error {
	r, err := v.cfg.History.Readers(ctx, talk)
	if err == nil && !v.sees(r) {
		err = errNotFound
	}
	return err
}

// messages reads those of f that the person may read.
func (v *visit) messages(ctx context.Context, f history.Filter) (all []history.Message, err error) {
	f.Readers = v.readers()
	err = history.Each(ctx, v.cfg.DB, f, func(m history.Message) error { all = append(all, m); return nil })
	return all, err
}

// roomLink leads to a conversation.
func roomLink(t history.Timeline) cell {
	name := t.Room()
	if t.Thread() != "" {
		name = "Thread in " + name
	}
	return link(name, "/rooms", string(t))
}

const turnsShown = 40

// turns lists the turns of a conversation, the newest first.
func turns(ctx context.Context, v *visit) (view, error) {
	talk := history.Timeline(v.PathValue("talk"))
	if err := v.mayRead(ctx, talk); err != nil {
		return view{}, err
	}
	before, _ := strconv.ParseInt(v.FormValue("before"), 10, 64) // otherwise the newest
	all, err := v.messages(ctx, history.Filter{Rooms: []history.Timeline{talk}, Before: before, Newest: true, Limit: 400})
	if err != nil {
		return view{}, err
	}
	reports, err := prompt.StoredReports(ctx, v.cfg.DB, []history.Timeline{talk}, 1000)
	if err != nil {
		return view{}, err
	}
	list := block{Title: "Turns", Head: []string{"When", "Who", "Message", "Prompt", "Reused"},
		Empty: "Nothing was said here, or you were not a member then."}
	end := int64(0) // of the turn, as they are read backwards
	for _, m := range all {
		if m.Role != llm.User {
			continue
		}
		size, reused := "", ""
		if r := reportsOf(reports, m.ID, end); len(r) > 0 {
			size, reused = spaced(r[0].Total), fmt.Sprintf("%.0f %%", 100*r[0].Reused)
		}
		list.Rows = append(list.Rows, []cell{v.at(m.At), {Text: m.Sender}, link(shorten(m), "/turns", fmt.Sprint(m.ID)),
			{Text: size, Class: "number"}, {Text: reused, Class: "number"}})
		if end = m.ID; len(list.Rows) == turnsShown {
			break
		}
	}
	more := block{Rows: [][]cell{{link("The prompt of the next message", "/rooms", string(talk), "next")}}}
	if len(list.Rows) == turnsShown {
		older := roomLink(talk)
		older.Text, older.Link = "Older turns", fmt.Sprintf("%s?before=%d", older.Link, end)
		more.Rows = append(more.Rows, []cell{older})
	}
	return view{Title: roomLink(talk).Text, Back: link("Rooms", "/rooms"), Blocks: []block{list, more}}, nil
}

// reportsOf returns the reports of the requests from message first to before end, the newest first. 0 = no end.
func reportsOf(all []prompt.StoredReport, first, end int64) (of []prompt.StoredReport) {
	for _, r := range all {
		if r.Message >= first && (end == 0 || r.Message < end) {
			of = append(of, r)
		}
	}
	return of
}

// shorten returns one line of a message.
func shorten(m history.Message) string {
	switch line := history.OneLine(m.Text, 120); {
	case line != "":
		return line
	case history.IsRedacted(m):
		return "(deleted)"
	case len(m.Files) > 0:
		return "(" + m.Files[0].Name + ")"
	}
	return "(empty)"
}

// turn shows one turn: what was said and done, and what the model was sent.
func turn(ctx context.Context, v *visit) (view, error) {
	id, err := strconv.ParseInt(v.PathValue("id"), 10, 64)
	if err != nil {
		return view{}, errNotFound
	}
	found, err := v.messages(ctx, history.Filter{IDs: []int64{id}})
	if err != nil || len(found) == 0 || strings.HasPrefix(string(found[0].Room), subsession.Prefix) {
		return view{}, errors.Join(err, errNotFound)
	}
	first := found[0]
	after, err := v.messages(ctx, history.Filter{Rooms: []history.Timeline{first.Room}, Since: first.At, Limit: 500})
	if err != nil {
		return view{}, err
	}
	after = slices.DeleteFunc(after, func(m history.Message) bool { return m.ID < first.ID })
	end := int64(0)
	if i := slices.IndexFunc(after, func(m history.Message) bool { return m.ID > first.ID && m.Role == llm.User }); i >= 0 {
		after, end = after[:i], after[i].ID
	}
	said := block{Title: "What was said and done"}
	for _, m := range after {
		said.Texts = append(said.Texts, v.words(m))
	}
	out := view{Title: shorten(first), Lead: v.stamp(first.At) + ", " + first.Sender, Blocks: []block{said},
		Back: roomLink(first.Room)}
	reports, err := prompt.StoredReports(ctx, v.cfg.DB, []history.Timeline{first.Room}, 2000)
	if err != nil {
		return view{}, err
	}
	reports = reportsOf(reports, first.ID, end)
	if len(reports) == 0 {
		out.Blocks = append(out.Blocks, block{Title: "The prompt",
			Note: "No report is stored of it: they are stored while the inspector is on, of the newest requests."})
		return out, nil
	}
	for i, r := range slices.Backward(reports) {
		b := reportBlock(r.Report)
		b.Title = fmt.Sprintf("Request %d of %d, %s", len(reports)-i, len(reports), r.At.In(v.cfg.Zone).Format("15:04:05"))
		out.Blocks = append(out.Blocks, b)
	}
	sent, err := v.sent(ctx, first, reports[0])
	out.Blocks = append(out.Blocks, sent)
	return out, err
}

// sent shows the newest request of a turn as far as its texts are stored.
func (v *visit) sent(ctx context.Context, first history.Message, r prompt.StoredReport) (block, error) {
	out := block{Title: "What was sent", Note: "From the stored rows: later edits, deletions and summaries show."}
	prefix, hash, err := prompt.StoredPrefix(ctx, v.cfg.DB, first.Room)
	if err != nil || v.mayRead(ctx, first.Room) != nil {
		return out, err
	}
	if hash == r.PrefixHash {
		out.Texts = append(out.Texts, words{Title: "system", Text: prefix, Closed: true})
	} else {
		out.Texts = append(out.Texts, words{Title: "system", Note: "not stored: a new epoch has begun", Closed: true})
	}
	all, err := v.messages(ctx, history.Filter{Rooms: []history.Timeline{first.Room}, Before: r.Message + 1, Newest: true,
		Limit: r.History.Messages})
	for _, m := range slices.Backward(all) {
		w := v.words(m)
		w.Closed = true
		out.Texts = append(out.Texts, w)
	}
	return out, err
}

// words shows a message as the model gets it, its tail apart.
func (v *visit) words(m history.Message) words {
	w := words{Title: string(m.Role), Note: v.stamp(m.At), Added: m.Tail}
	if m.Sender != "" {
		w.Title += " " + m.Sender
	}
	w.Note += ", integrity " + m.Label.Integrity.String()
	if m.Failed {
		w.Note += ", failed"
	}
	m.Tail = ""
	w.Text = m.Content()
	for _, c := range m.Calls {
		w.Text += fmt.Sprintf("\n→ %s(%s)", c.Name, c.Arguments)
	}
	w.Text = strings.TrimSpace(w.Text)
	return w
}

// reportBlock shows what was kept, cut and reused.
func reportBlock(r prompt.Report) block {
	window := "unknown"
	if r.Window > 0 {
		window = spaced(r.Window)
	}
	epoch := "since " + r.Epoch.Started.Format("2006-01-02 15:04")
	if r.Epoch.New {
		epoch = "begins here"
	}
	table := block{Facts: facts("Tokens", spaced(r.Total), "Window", window, "Reused", fmt.Sprintf("%.0f %%", 100*r.Reused),
		"Layout", string(r.Layout), "Epoch", epoch+": "+r.Epoch.Reason, "Left out", fmt.Sprintf("%d older messages", r.History.LeftOut)),
		Head: []string{"Zone", "Section", "Tokens", "State", "Note"}}
	row := func(zone, name string, tokens int, state, note string) {
		c := cell{Text: state}
		if state != string(prompt.Kept) && state != "" {
			c.Class = "bad"
		}
		table.Rows = append(table.Rows, []cell{{Text: zone}, {Text: name}, count(tokens), c, {Text: note}})
	}
	for _, s := range r.Sections {
		row(string(s.Zone), s.ID, s.Tokens, string(s.State), s.Note)
	}
	row("history", fmt.Sprintf("%d messages", r.History.Messages), r.History.Tokens, "", "")
	row("", "tools", r.ToolTokens, "", "")
	return table
}

// nextPrompt shows what would be sent for the next message.
func nextPrompt(ctx context.Context, v *visit) (view, error) {
	talk := history.Timeline(v.PathValue("talk"))
	if err := v.mayRead(ctx, talk); err != nil {
		return view{}, err
	}
	p, tools, err := v.cfg.Preview(ctx, string(talk))
	if err != nil {
		return view{}, problem{err}
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	sent := block{Title: "What would be sent", Texts: []words{{Title: "tools", Text: strings.Join(names, ", "), Closed: true}}}
	for _, m := range p.Messages() {
		sent.Texts = append(sent.Texts, words{Title: string(m.Role), Text: strings.TrimSpace(m.Content), Closed: m.Role != llm.System})
	}
	return view{Title: "The next prompt", Back: roomLink(talk), Blocks: []block{reportBlock(p.Report), sent}}, nil
}
