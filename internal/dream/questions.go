package dream

import (
	"context"
	"strings"

	"reverie/internal/memory"
)

// maxQuestions is how many questions a dream comes upon in one scope: a scope with many
// takes none from the others, and the rest is found in the next nights.
const maxQuestions = 10

func (n *night) tooMany(scope memory.Scope) bool {
	found := 0
	for _, q := range n.report.Questions {
		if q.Scope == scope {
			found++
		}
	}
	return found >= maxQuestions
}

// wonder stores what r asks, and fills in what waits from earlier dreams.
func (d *Dreamer) wonder(ctx context.Context, r *Report) error {
	found := make([]memory.Question, len(r.Questions))
	for i, q := range r.Questions {
		found[i] = memory.Question{Run: r.Run, Scope: q.Scope, First: memory.Entry{ID: q.First}, Second: memory.Entry{ID: q.Second}, Why: q.Why}
	}
	if err := d.cfg.Store.Wonder(ctx, found); err != nil {
		return err
	}
	open, err := d.cfg.Store.Questions(ctx, everything)
	if err != nil {
		return err
	}
	for _, q := range open {
		if q.Run != r.Run {
			r.Waiting = append(r.Waiting, asked(q))
			continue
		}
		for i := range r.Questions {
			if r.Questions[i].First == q.First.ID && r.Questions[i].Second == q.Second.ID {
				r.Questions[i].Number = q.ID
			}
		}
	}
	return nil
}

func asked(q memory.Question) Question {
	return Question{Number: q.ID, Scope: q.Scope, First: q.First.ID, FirstText: q.First.Text, FirstAt: q.First.Since(),
		Second: q.Second.ID, SecondText: q.Second.Text, SecondAt: q.Second.Since(), Why: q.Why}
}

// sameAs reports whether two entries say the same, as far as is known.
func (n *night) sameAs(a, b *signature) bool {
	aboutOne := a.Scope == b.Scope && (strings.EqualFold(a.Subject, b.Subject) || a.Subject == "" && b.Subject == b.Scope.Person() || b.Subject == "" && a.Subject == a.Scope.Person())
	return aboutOne && (covers(a, b) || covers(b, a)) || n.alike[pairOf(a.ID, b.ID)] || sameGroup(a, b)
}

// repeated reports whether p asks in other words what was a question before.
func (n *night) repeated(p *pair) bool {
	for q := range n.asked {
		for i, id := range q {
			other := n.byID[q[1-i]]
			if other != nil && (id == p.b.ID && n.sameAs(other, p.a) || id == p.a.ID && n.sameAs(other, p.b)) {
				return true
			}
		}
	}
	return false
}
