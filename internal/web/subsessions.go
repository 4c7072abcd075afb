package web

import (
	"cmp"
	"context"
	"slices"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/subsession"
)

// subSessions shows the background work and what waits for what.
func subSessions(ctx context.Context, v *visit) (view, error) {
	all, err := v.nodes(ctx)
	list := block{Head: []string{"Began", "What", "State", "Requests", "Took"}, Empty: "There were no sub-sessions yet."}
	if len(all) > 0 {
		list.Graph = draw(all[max(0, len(all)-40):])
	}
	for _, n := range slices.Backward(all) {
		took := cell{Class: "number"}
		if n.Status == subsession.Completed || n.Status == subsession.Failed || n.Status == subsession.Cancelled {
			took.Text = i18n.Span(n.Ended.Sub(n.Created)).String()
		}
		list.Rows = append(list.Rows, v.row(n.Created, link(history.OneLine(n.Objective, 200), "/subsessions", n.ID), n.Status, n.Rounds, took))
	}
	return view{Title: "Sub-sessions", Blocks: []block{list},
		Lead: "A line joins a sub-session with one that needs its result; a dashed one, with one that it started."}, err
}

// nodes lists the newest sub-sessions that the person may read, the oldest first.
func (v *visit) nodes(ctx context.Context) ([]subsession.Node, error) {
	all, err := subsession.Nodes(ctx, v.cfg.DB, 300)
	return slices.DeleteFunc(all, func(n subsession.Node) bool { return !v.sees(n.Readers) }), err
}

// subSession shows what a sub-session was asked, said and did.
func subSession(ctx context.Context, v *visit) (view, error) {
	all, err := v.nodes(ctx)
	i := slices.IndexFunc(all, func(n subsession.Node) bool { return n.ID == v.PathValue("id") })
	if err != nil || i < 0 {
		return view{}, cmp.Or(err, errNotFound)
	}
	n := all[i]
	said := block{Title: "What was said and done", Empty: "Nothing yet."}
	err = history.Each(ctx, v.cfg.DB, history.Filter{Rooms: []history.Timeline{n.Talk}, Limit: 500}, func(m history.Message) error {
		said.Texts = append(said.Texts, v.words(m))
		return nil
	})
	about := v.facts("State", n.Status, "Room", n.Room, "Began", n.Created, "Why", n.Reason.In(i18n.English))
	for _, id := range n.Needs {
		about = append(about, v.row("Needs", link(id, "/subsessions", id)))
	}
	return view{Title: n.Objective, Back: link("Sub-sessions", "/subsessions"), Blocks: []block{{Facts: about}, said}}, err
}
