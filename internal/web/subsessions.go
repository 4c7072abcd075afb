package web

import (
	"context"
	"slices"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/subsession"
	"reverie/internal/text"
)

// subSessions shows the background work and what waits for what.
func subSessions(ctx context.Context, v *visit) (view, error) {
	all, err := v.nodes(ctx)
	if err != nil {
		return view{}, err
	}
	out := view{Title: "Sub-sessions",
		Lead: "A line joins a sub-session with one that needs its result; a dashed one, with one that it started."}
	list := block{Head: []string{"Began", "What", "State", "Requests", "Took"}, Empty: "There were no sub-sessions yet."}
	var nodes []node
	for _, n := range all[max(0, len(all)-40):] {
		nodes = append(nodes, node{id: n.ID, needs: n.Needs, above: n.Parent, Name: text.Clip(n.Objective, 26), Title: n.Objective,
			Class: n.Status, Note: n.Status + " · " + n.ID, Link: link("", "/subsessions", n.ID).Link})
	}
	for _, n := range slices.Backward(all) {
		took := ""
		if n.Status == subsession.Completed || n.Status == subsession.Failed || n.Status == subsession.Cancelled {
			took = i18n.Span(n.Ended.Sub(n.Created)).String()
		}
		list.Rows = append(list.Rows, []cell{v.at(n.Created), link(history.OneLine(n.Objective, 200), "/subsessions", n.ID),
			{Text: n.Status}, count(n.Rounds), {Text: took, Class: "number"}})
	}
	if len(nodes) > 0 {
		out.Blocks = append(out.Blocks, block{Graph: draw("The newest sub-sessions", nodes)})
	}
	out.Blocks = append(out.Blocks, list)
	return out, nil
}

// nodes lists the newest sub-sessions that the person may read, the oldest first.
func (v *visit) nodes(ctx context.Context) ([]subsession.Node, error) {
	all, err := subsession.Nodes(ctx, v.cfg.DB, 300)
	return slices.DeleteFunc(all, func(n subsession.Node) bool { return !v.sees(n.Readers) }), err
}

// subSession shows what a sub-session was asked, said and did.
func subSession(ctx context.Context, v *visit) (view, error) {
	all, err := v.nodes(ctx)
	if err != nil {
		return view{}, err
	}
	i := slices.IndexFunc(all, func(n subsession.Node) bool { return n.ID == v.PathValue("id") })
	if i < 0 {
		return view{}, errNotFound
	}
	n := all[i]
	said := block{Title: "What was said and done", Empty: "Nothing yet."}
	err = history.Each(ctx, v.cfg.DB, history.Filter{Rooms: []history.Timeline{n.Talk}, Limit: 500}, func(m history.Message) error {
		said.Texts = append(said.Texts, v.words(m))
		return nil
	})
	about := facts("State", n.Status, "Room", n.Room, "Began", v.stamp(n.Created), "Why", n.Reason.In(i18n.English))
	for _, id := range n.Needs {
		about = append(about, fact{"Needs", link(id, "/subsessions", id)})
	}
	return view{Title: n.Objective, Back: link("Sub-sessions", "/subsessions"), Blocks: []block{{Facts: about}, said}}, err
}
