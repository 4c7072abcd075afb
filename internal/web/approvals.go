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
