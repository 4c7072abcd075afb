package web

import (
	"context"
	"crypto/rand"
	"net/url"
	"slices"
	"time"

	"reverie/internal/approval"
	"reverie/internal/chat"
	"reverie/internal/i18n"
	"reverie/internal/pace"
)

// approvals lists what the assistant asked before it acted, the open ones with their answers.
func approvals(ctx context.Context, v *visit) (view, error) {
	all, err := v.cfg.Approvals.ListNewest(ctx, 200)
	if err != nil {
		return view{}, err
	}
	open := block{Title: "Open", Empty: "Nothing waits for an answer."}
	past := block{Title: "Answered", Head: []string{"When", "Asked for", "State", "Answered by"}, Empty: "There are none."}
	out := view{Title: "Approvals", Blocks: []block{open, past}}
	var asked []block
	for _, a := range all {
		if !v.sees(a.Readers) {
			continue
		}
		question := a.Question(i18n.English)
		if a.State != approval.Open || !v.now.Before(a.Expires) {
			past.Rows = append(past.Rows, []cell{v.at(a.Created), {Text: question[0].Text, Class: "text"}, {Text: string(a.State)},
				{Text: a.Answer.Sender}})
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
		asked = append(asked, b)
	}
	if len(asked) == 0 {
		asked = []block{open}
	}
	out.Blocks = append(asked, past)
	return out, nil
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
	for range 40 { // the conversation may be busy
		if err != nil || a.State != approval.Open {
			break
		}
		if err = pace.Pause(ctx, nil, 50*time.Millisecond); err == nil {
			a, err = v.cfg.Approvals.Find(ctx, v.cfg.DB, a.Code)
		}
	}
	if err != nil {
		return view{}, err
	}
	out := view{Title: "Answered", Lead: "It is " + string(a.State) + ".", Back: link("Approvals", "/approvals")}
	if a.State == approval.Open {
		out.Title, out.Lead = "Not answered yet", "The conversation has your answer, and is busy."
	}
	return out, nil
}
