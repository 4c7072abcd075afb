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
	"reverie/internal/store"
	"reverie/internal/subsession"
)

// rooms lists the conversations, the newest first.
func rooms(ctx context.Context, v *visit) (view, error) {
	talks, err := v.talks(ctx)
	rows := store.Map(talks, func(t history.Timeline) []cell { return v.row(roomLink(t)) })
	return view{Title: "Rooms", Blocks: []block{{Empty: "Nobody has written yet.", Rows: rows}}}, err
}

// talks lists the conversations that the person may read, the newest first. Those of sub-sessions have a page of their own.
func (v *visit) talks(ctx context.Context) (seen []history.Timeline, err error) {
	all, err := v.cfg.History.Rooms(ctx)
	for _, t := range all {
		talk := history.Timeline(t)
		if strings.HasPrefix(t, subsession.Prefix) {
			continue
		}
		if err := v.mayRead(ctx, talk); err == nil {
			seen = append(seen, talk)
		} else if !errors.Is(err, errNotFound) {
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
	reports, err2 := prompt.StoredReports(ctx, v.cfg.DB, []history.Timeline{talk}, 1000)
	list := block{Title: "Turns", Head: []string{"When", "Who", "Message", "Prompt", "Reused"},
		Empty: "Nothing was said here, or you were not a member then."}
	end := int64(0) // of the turn, as they are read backwards
	for _, m := range all {
		if m.Role != llm.User {
			continue
		}
		size, reused := cell{Class: "number"}, cell{Class: "number"}
		if r := reportsOf(reports, m.ID, end); len(r) > 0 {
			size.Text, reused.Text = spaced(r[0].Total), fmt.Sprintf("%.0f %%", 100*r[0].Reused)
		}
		list.Rows = append(list.Rows, v.row(m.At, m.Sender, link(shorten(m), "/turns", fmt.Sprint(m.ID)), size, reused))
		if end = m.ID; len(list.Rows) == turnsShown {
			break
		}
	}
	more := block{Rows: [][]cell{v.row(link("The prompt of the next message", "/rooms", string(talk), "next"))}}
	if len(list.Rows) == turnsShown {
		older := roomLink(talk)
		older.Text, older.Link = "Older turns", fmt.Sprintf("%s?before=%d", older.Link, end)
		more.Rows = append(more.Rows, v.row(older))
	}
	return view{Title: roomLink(talk).Text, Back: link("Rooms", "/rooms"),
		Blocks: []block{list, more, v.logBlock(talk.Room())}}, errors.Join(err, err2)
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
	said, end := block{Title: "What was said and done"}, int64(0)
	for _, m := range after {
		if m.ID > first.ID && m.Role == llm.User {
			end = m.ID
			break
		}
		if m.ID >= first.ID {
			said.Texts = append(said.Texts, v.words(m))
		}
	}
	out := view{Title: shorten(first), Lead: v.stamp(first.At) + ", " + first.Sender, Blocks: []block{said},
		Back: roomLink(first.Room)}
	reports, err2 := prompt.StoredReports(ctx, v.cfg.DB, []history.Timeline{first.Room}, 2000)
	reports = reportsOf(reports, first.ID, end)
	if len(reports) == 0 {
		out.Blocks = append(out.Blocks, block{Title: "The prompt",
			Note: "No report is stored of it: they are stored while the inspector is on, of the newest requests."})
		return out, errors.Join(err, err2)
	}
	for i, r := range slices.Backward(reports) {
		b := v.reportBlock(r.Report)
		b.Title = fmt.Sprintf("Request %d of %d, %s", len(reports)-i, len(reports), r.At.In(v.cfg.Zone).Format("15:04:05"))
		out.Blocks = append(out.Blocks, b)
	}
	sent, err3 := v.sent(ctx, first, reports[0])
	out.Blocks = append(out.Blocks, sent)
	return out, errors.Join(err, err2, err3)
}

// sent shows the newest request of a turn as far as its texts are stored.
func (v *visit) sent(ctx context.Context, first history.Message, r prompt.StoredReport) (block, error) {
	out := block{Title: "What was sent", Note: "From the stored rows: later edits, deletions and summaries show."}
	prefix, hash, err := prompt.StoredPrefix(ctx, v.cfg.DB, first.Room)
	if err != nil || v.mayRead(ctx, first.Room) != nil {
		return out, err
	}
	system := words{Title: "system", Text: prefix, Closed: true}
	if hash != r.PrefixHash {
		system.Text, system.Note = "", "not stored: a new epoch has begun"
	}
	out.Texts = []words{system}
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
	w := words{Title: string(m.Role) + " " + m.Sender, Note: v.stamp(m.At) + ", integrity " + m.Label.Integrity.String(), Added: m.Tail}
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
func (v *visit) reportBlock(r prompt.Report) block {
	window := "unknown"
	if r.Window > 0 {
		window = spaced(r.Window)
	}
	epoch := "since " + r.Epoch.Started.Format("2006-01-02 15:04")
	if r.Epoch.New {
		epoch = "begins here"
	}
	table := block{Head: []string{"Zone", "Section", "Tokens", "State", "Note"}, Facts: v.facts("Tokens", r.Total, "Window", window,
		"Reused", fmt.Sprintf("%.0f %%", 100*r.Reused), "Layout", r.Layout, "Epoch", epoch+": "+r.Epoch.Reason,
		"Left out", fmt.Sprintf("%d older messages", r.History.LeftOut))}
	for _, s := range r.Sections {
		state := cell{Text: string(s.State)}
		if s.State != prompt.Kept {
			state.Class = "bad"
		}
		table.Rows = append(table.Rows, v.row(s.Zone, s.ID, s.Tokens, state, s.Note))
	}
	table.Rows = append(table.Rows, v.row("history", fmt.Sprintf("%d messages", r.History.Messages), r.History.Tokens, "", ""),
		v.row("", "tools", r.ToolTokens, "", ""))
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
		return view{Title: "The next prompt", Lead: err.Error(), Back: roomLink(talk)}, nil
	}
	offered := words{Title: "tools", Closed: true}
	for _, t := range tools {
		offered.Text += t.Name + "\n"
	}
	sent := block{Title: "What would be sent", Texts: []words{offered}}
	for _, m := range p.Messages() {
		sent.Texts = append(sent.Texts, words{Title: string(m.Role), Text: strings.TrimSpace(m.Content), Closed: m.Role != llm.System})
	}
	return view{Title: "The next prompt", Back: roomLink(talk), Blocks: []block{v.reportBlock(p.Report), sent}}, nil
}
