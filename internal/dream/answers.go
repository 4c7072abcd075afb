package dream

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reverie/internal/memory"
	"reverie/internal/trust"
)

// A question is also answered by what a person says after it was asked, in the room where it
// was. Two keys turn: the words of the message, read here and without a model, take the one
// side and nothing else; and a model made of that message what the one side says. Each alone
// does nothing: then the question stays open, and !memory keep answers it.

var (
	// What agrees, and says nothing besides.
	agrees = wordSet(`yes yeah yep right correct true holds valid still now today currently indeed exactly one first second moved
		ja genau richtig stimmt korrekt gilt jetzt nun noch heute inzwischen aktuell umgezogen gezogen
		oui exact juste correcte vrai vraie maintenant toujours aujourd hui encore déménagé bon bonne vaut
		sí si correcto correcta cierto cierta verdad ahora todavía sigue vale mudado mudé
		sì giusto giusta corretto corretta vero vera adesso ora ancora vale trasferito trasferita`)
	// What says that something is not so, or no longer, without a "not".
	denies = wordSet(`wrong false incorrect untrue outdated obsolete old former previous mistake mistaken past
		falsch veraltet überholt alt alte alter altes alten frühere früherer frühere früheren ehemalige ehemaliger irrtum vorbei
		faux fausse inexact périmé périmée ancien ancienne erreur vieux vieille
		falso falsa incorrecto incorrecta equivocado equivocada antiguo antigua viejo vieja error
		sbagliato sbagliata errato errata vecchio vecchia superato superata errore`)
)

// chosen is which of two entries a message says to hold, by its words alone; "" = it does
// not say so beyond doubt. A sentence takes a side if it has words that only that one has,
// and else none but words of it or such as agree; whatever asks, doubts or compares is left alone.
func chosen(own string, first, second memory.Entry) memory.Choice {
	if strings.ContainsAny(own, "?？") {
		return ""
	}
	a, b := contentWords(first.Text, nil), contentWords(second.Text, nil)
	yes, against := [2]bool{}, [2]bool{}
	for _, clause := range clauseEnd.Split(own, -1) {
		words := contentWords(clause, nil)
		side := [2]bool{onlyIn(words, a, b), onlyIn(words, b, a)}
		denied, other := negated(clause), false
		for _, w := range words {
			denied = denied || denies[w.text]
			other = other || !denies[w.text] && !isNegation[w.text]
		}
		switch {
		case denied && !other, side[0] && side[1], hedges.MatchString(" " + strings.ToLower(clause) + " "): // denied: of what?
			return ""
		case !side[0] && !side[1]:
			continue
		}
		for i, entry := range [][]harvestWord{a, b} {
			switch {
			case !side[i]:
			case denied:
				against[i] = true
			case !onlyOf(words, entry):
				return ""
			default:
				yes[i] = true
			}
		}
	}
	switch {
	case yes[0] && !yes[1] && !against[0]:
		return memory.KeepFirst
	case yes[1] && !yes[0] && !against[1]:
		return memory.KeepSecond
	}
	return ""
}

// onlyIn reports whether words has one that is in mine and not in others.
func onlyIn(words, mine, others []harvestWord) bool {
	for _, w := range mine {
		if !saidIn(w.text, others) && exactly(w.text, words) {
			return true
		}
	}
	return false
}

// onlyOf reports whether each of words is one of entry, or agrees.
func onlyOf(words, entry []harvestWord) bool {
	for _, w := range words {
		if !agrees[w.text] && !saidIn(w.text, entry) {
			return false
		}
	}
	return true
}

// spoken is what a message says to a question.
type spoken struct {
	event  string
	choice memory.Choice
}

// answered supersedes what a person says does not hold, having been asked. pairs, with what
// a model says of them, tell what says the same in other words; nil = they are not known yet.
func (n *night) answered(ctx context.Context, scopes [][]*signature, pairs []*pair) {
	if !n.has(Contradiction) {
		return
	}
	for _, p := range pairs {
		if p.verdict == duplicate {
			n.alike[pairOf(p.a.ID, p.b.ID)] = true
		}
	}
	for _, q := range n.open {
		if q.Asked.IsZero() || q.Scope == memory.Shared {
			continue
		}
		said, known := n.said[q.ID]
		if !known {
			var err error
			if said, err = n.d.spoken(ctx, q); err != nil {
				n.note("what was said to question %d could not be read: %v", q.ID, err)
				continue
			}
			n.said[q.ID] = said
		}
		holds, other := n.byID[q.First.ID], n.byID[q.Second.ID]
		if said.choice == memory.KeepSecond {
			holds, other = other, holds
		}
		if said.choice == "" || holds == nil || other == nil || n.gone[other.ID] || other.Pinned {
			continue
		}
		if by := n.learned(ctx, scopes, said.event, holds); by != nil && !n.refused[pairOf(by.ID, other.ID)] {
			n.gone[other.ID] = true
			n.steps = append(n.steps, planned{memory.Step{Kind: memory.SettleStep, ID: other.ID, Rev: other.Rev, By: by.ID, ByRev: by.Rev}, Contradiction, "a person was asked, and says so"})
		}
	}
}

// spoken is the newest message that says what holds, of one who may, where and after q was asked.
func (d *Dreamer) spoken(ctx context.Context, q memory.Question) (spoken, error) {
	rows, err := d.cfg.DB.QueryContext(ctx, `SELECT m.event_id, m.sender, m.text FROM message AS m JOIN room AS r ON r.id = m.room
		WHERE (r.id = ?1 OR r.branch_of = ?1) AND m.role = 'user' AND m.sender <> '' AND m.event_id <> '' AND m.at > ?2 ORDER BY m.id DESC LIMIT 2000`, q.Room, q.Asked.UnixMilli())
	if err != nil {
		return spoken{}, fmt.Errorf("dream: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var s spoken
		var sender, text string
		if err := rows.Scan(&s.event, &sender, &text); err != nil {
			return spoken{}, fmt.Errorf("dream: %w", err)
		}
		if who := q.Scope.Person(); who != "" && who != sender || d.cfg.Trusted != nil && !d.cfg.Trusted(sender) {
			continue
		}
		if s.choice = chosen(ownWords(text), q.First, q.Second); s.choice != "" {
			return s, nil
		}
	}
	return spoken{}, rows.Err()
}

// learned is what was learned from the message event and says what holds says: that entry
// itself, or one that says it too; nil = nothing.
func (n *night) learned(ctx context.Context, scopes [][]*signature, event string, holds *signature) *signature {
	var again bool
	if err := n.d.cfg.DB.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM memory_again WHERE entry = ? AND event = ?)`, holds.ID, event).Scan(&again); err != nil {
		n.note("what was said again could not be read: %v", err)
		return nil
	}
	if again && !n.gone[holds.ID] {
		return holds
	}
	for _, all := range scopes {
		for _, s := range all {
			if s.Event == event && s.Scope == holds.Scope && s != holds && !n.gone[s.ID] && n.sameAs(s, holds) {
				return s
			}
		}
	}
	return nil
}

// sameAs reports whether two entries say the same, as far as is known.
func (n *night) sameAs(a, b *signature) bool {
	aboutOne := a.Scope == b.Scope && (strings.EqualFold(a.Subject, b.Subject) || a.Subject == "" && b.Subject == b.Scope.Person() || b.Subject == "" && a.Subject == a.Scope.Person())
	return aboutOne && (covers(a, b) || covers(b, a)) || n.alike[pairOf(a.ID, b.ID)] || sameGroup(a, b)
}

// noted is how a step of that kind is called in the ledger.
func noted(k memory.StepKind) memory.StepKind {
	if k == memory.SettleStep {
		return memory.SupersedeStep
	}
	return k
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

// asks are the questions that were asked in room before at, about what is of scope. Those
// about foreign text are left out, as a request must not show it; !memory keep answers them.
func (h *Harvester) asks(ctx context.Context, room string, scope memory.Scope, at time.Time) ([]memory.Question, error) {
	open, err := h.cfg.Store.Questions(ctx, memory.Access{Actor: harvestRole, Scopes: []memory.Scope{scope}})
	var out []memory.Question
	for _, q := range open {
		own := min(q.First.Integrity, q.Second.Integrity) >= trust.User
		if own && !q.Asked.IsZero() && q.Room == room && at.After(q.Asked) {
			out = append(out, q)
		}
	}
	return out, err
}

// settles reports whether fact says, in its words, what t says to hold having been asked:
// then it is no matter that it was recalled, or that the message says it in fewer words.
func (t *turn) settles(fact string) bool {
	for _, q := range t.asks {
		holds := q.First
		if chosen(t.own, q.First, q.Second) == memory.KeepSecond {
			holds = q.Second
		}
		if memory.SameWords(holds.Text, fact) && chosen(t.own, q.First, q.Second) != "" {
			return true
		}
	}
	return false
}

// askedOf is what a model reads of the questions that t may answer.
func (t *turn) askedOf() string {
	var b strings.Builder
	for _, q := range t.asks {
		if chosen(t.own, q.First, q.Second) != "" {
			fmt.Fprintf(&b, "    (it was asked before which of these holds: %q or %q; if the message says so, its fact is that one, word for word)\n", q.First.Text, q.Second.Text)
		}
	}
	return b.String()
}
