package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"slices"
	"time"

	"reverie/internal/approval"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/pace"
	"reverie/internal/subsession"
	"reverie/internal/task"
)

// tasks lists tasks and their last runs.
func tasks(ctx context.Context, v *visit) (view, error) {
	all, err := v.cfg.Tasks.InRoom(ctx, "", task.All)
	list := block{Head: []string{"Task", "State", "Next", "Runs", "Room"}, Empty: "There are no tasks."}
	for _, t := range all {
		if v.sees(t.Label.Readers) && len(list.Rows) < 200 {
			list.Rows = append(list.Rows, v.row(long(t.Line(i18n.English)), t.Status, t.NextDue, t.Runs, t.Room))
		}
	}
	runs, err2 := v.cfg.Tasks.Runs(ctx, "", "", 200)
	past := block{Title: "Runs", Head: []string{"Due", "Task", "State", "Attempt", "Result"}, Empty: "Nothing was due yet."}
	for _, r := range runs {
		if v.sees(r.Task.Label.Readers) {
			past.Rows = append(past.Rows, v.row(r.Due, long(r.Task.Content), r.State, r.Attempt, long(r.Result.In(i18n.English))))
		}
	}
	return view{Title: "Tasks", Blocks: []block{list, past}}, errors.Join(err, err2)
}

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
		what := link(history.OneLine(n.Objective, 200), "/subsessions", n.ID)
		list.Rows = append(list.Rows, v.row(n.Created, what, n.Status, n.Rounds, took))
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

// approvals lists what the assistant asked before it acted, the open ones with their answers.
func approvals(ctx context.Context, v *visit) (view, error) {
	all, err := v.cfg.Approvals.ListNewest(ctx, 200)
	out := view{Title: "Approvals"}
	past := block{Title: "Answered", Head: []string{"When", "Asked for", "State", "Answered by"}, Empty: "There are none."}
	for _, a := range all {
		if !v.sees(a.Readers) {
			continue
		}
		question := a.Question(i18n.English)
		if a.State != approval.Open || !v.now.Before(a.Expires) {
			past.Rows = append(past.Rows, v.row(a.Created, long(question[0].Text), a.State, a.Answer.Sender))
			continue
		}
		b := block{Title: "For " + a.Asker, Note: "Until " + a.Expires.In(v.cfg.Zone).Format("15:04:05"),
			Texts: []words{{Title: question[1].Text, Note: a.Room, Text: question[0].Text}}}
		if v.cfg.Vote != nil {
			answer := form{Action: "/approvals/" + url.PathEscape(a.Code)}
			for _, o := range question[1].Options {
				answer.Buttons = append(answer.Buttons, button{"answer", o.ID, o.Text})
			}
			b.Forms = []form{answer}
		}
		out.Blocks = append(out.Blocks, b)
	}
	if len(out.Blocks) == 0 {
		out.Lead = "Nothing waits for an answer."
	}
	out.Blocks = append(out.Blocks, past)
	return out, err
}

// approve delivers the person's answer as a vote in the poll, so that the conversation decides whether it counts.
func approve(ctx context.Context, v *visit) (view, error) {
	a, err := v.cfg.Approvals.Find(ctx, v.cfg.DB, v.PathValue("code"))
	if err != nil {
		return view{}, err
	}
	answer := v.PostFormValue("answer")
	if a.State == "" || !v.sees(a.Readers) || v.cfg.Vote == nil ||
		!slices.Contains([]string{approval.Once, approval.Wide, approval.No}, answer) {
		return view{}, errNotFound
	}
	err = v.cfg.Vote(ctx, chat.Vote{Option: answer, Change: chat.Change{Target: a.QuestionID(),
		Head: chat.Head{ID: "web:" + rand.Text(), Room: a.Room, Sender: v.person, At: v.now}}})
	for i := 0; i < 40 && err == nil && a.State == approval.Open; i++ { // the conversation may be busy
		if err = pace.Pause(ctx, nil, 50*time.Millisecond); err == nil {
			a, err = v.cfg.Approvals.Find(ctx, v.cfg.DB, a.Code)
		}
	}
	out := view{Title: "Answered", Lead: "It is " + string(a.State) + ".", Back: link("Approvals", "/approvals")}
	if a.State == approval.Open {
		out.Title, out.Lead = "Not answered yet", "The conversation has your answer, and is busy."
	}
	return out, err
}
