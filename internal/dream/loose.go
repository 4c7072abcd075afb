package dream

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"reverie/internal/trust"
)

// A loose pair is one that might contradict each other by what it is about, but of which
// the structure alone does not say so: "Anna's dentist is Adler", "Anna goes to Bosse
// now". What a model says of it counts only if the model was right, night after night,
// about pairs of which the answer is known: the controls, which stand among the others
// and look like them.
const (
	looseRequest   = 12  // pairs of one request, beside its controls
	controls       = 3   // of one request
	proof          = 36  // controls that a model must have answered before it is believed
	perProof       = 4   // … and one for so many entries: the more there are, the more pairs it can be wrong about
	mistakes       = 500 // one mistake in so many is forgiven: each one that is not found out may cost what holds
	silences       = 50  // … and one silence or mistake in so many
	gross          = 20  // … and one in so many, where the structure says that two contradict each other
	enoughMistakes = 6   // that say what a model is worth
	perEntry       = 40  // older entries that one is compared with
	weekly         = .48 // requests an entry, in seven days
	rightControl   = verdict("control_right")
	wrongControl   = verdict("control_wrong")
	silentControl  = verdict("control_silent") // no proof of being right, and none of being wrong
	controlMinimum = 12                        // requests a week in a small memory
)

// subjects finds out whom or what each entry is about: of the names in it the one that
// is spoken of in the most ways.
func (n *night) subjects(scopes [][]*signature) {
	spoken := map[int32]map[int32]bool{}
	for _, all := range scopes {
		for _, s := range all {
			for _, who := range n.names.who(s) {
				if spoken[who] == nil {
					spoken[who] = map[int32]bool{}
				}
				for _, t := range s.tokens {
					if !t.name && !t.small {
						spoken[who][t.stem] = true
					}
				}
			}
		}
	}
	for _, all := range scopes {
		for _, s := range all {
			if s.subject = 0; s.self {
				s.subject = -1
			}
			most := 0
			for _, who := range n.names.who(s) {
				if len(spoken[who]) > most && (!s.self || s.Subject != "") {
					s.subject, most = who, len(spoken[who])
				}
			}
		}
	}
}

// name numbers a name, and whose something is.
func (n *namer) name(text string) int32 { return n.number("who " + strings.TrimRight(text, "s")) }

// who are the names in s; its subject alone, if it names one.
func (n *namer) who(s *signature) []int32 {
	if s.Subject != "" && strings.Contains(s.plain, strings.ToLower(s.Subject)) {
		return []int32{n.name(strings.ToLower(s.Subject))}
	}
	var out []int32
	for i, t := range s.tokens {
		if (t.name || i == 0 && !t.small) && !hasDigit(t.text) { // a word at the beginning may be a name
			out = append(out, n.name(t.text))
		}
	}
	return out
}

// loose finds such pairs, the likeliest first, at least one of each changed since the
// last dream.
//
// It takes out of strict what may say the same, but may as well be another answer: one
// question asks for both.
func (n *night) loose(scopes [][]*signature, strict []*pair) (rest, loose []*pair) {
	if !n.has(Contradiction) || n.d.cfg.Ask == nil {
		return strict, nil
	}
	n.subjects(scopes)
	known := map[[2]string]bool{}
	var out []scored
	for _, p := range strict {
		known[pairOf(p.a.ID, p.b.ID)] = true
	}
	fresh := func(a, b *signature) bool {
		return !known[pairOf(a.ID, b.ID)] && !n.refused[pairOf(a.ID, b.ID)] && (!a.UpdatedAt.Before(n.since) || !b.UpdatedAt.Before(n.since))
	}
	for _, p := range strict {
		if !p.conflict && likely(p.a, p.b, 0) > 0 {
			p.conflict, p.loose, p.same, p.class = true, true, true, "another answer"
			loose = append(loose, p)
		} else {
			rest = append(rest, p)
		}
	}
	for _, all := range scopes {
		k := n.kin(all)
		for i, b := range all {
			if !n.gone[b.ID] {
				out = append(out, k.pairs(i, fresh)...)
			}
		}
	}
	slices.SortFunc(out, likeliest)
	for _, p := range out {
		loose = append(loose, p.pair)
	}
	return rest, loose
}

// likely says how likely it is that b, the newer one, takes the place of a; 0 = not at
// all, as where a model would have to be believed that reads foreign text. score is the weight of what both are about, and of what b has to tell.
func likely(a, b *signature, score int) int {
	if a == b || a.compound && !a.turned || b.Since().Sub(a.Since()) < time.Second || !together(a, b) || a.Pinned || (&pair{a: a, b: b}).foreign() || sameGroup(a, b) {
		return 0
	}
	if a.negative != b.negative {
		score += 2
	}
	if outranks(a.Entry, b.Entry) { // at the most they say the same, or a person is asked
		score /= 2
	}
	return score + 1
}

// control finds a pair with a that cannot contradict each other: of two people, or of one
// and two questions that are known and different. taken are those that were asked about.
func (n *night) control(all []*signature, a *signature, taken func(*pair) bool) *pair {
	var other *pair
	start := rand.IntN(len(all))
	for i := range all {
		b := all[(start+i)%len(all)]
		if b == a || n.gone[b.ID] || !together(a, b) || b.Integrity < trust.User || b.hedged || a.compound || b.compound {
			continue
		}
		p := &pair{a: a, b: b, conflict: true, control: true}
		if b.Since().Before(a.Since()) {
			p.a, p.b = b, a
		}
		switch {
		case b.subject == a.subject && len(a.classes) == 1 && len(b.classes) == 1 && a.classes[0].class != b.classes[0].class && !overlap[a.classes[0].class.name+" "+b.classes[0].class.name] && !taken(p):
			return p
		case other == nil && b.subject != a.subject && a.subject != 0 && b.subject != 0 && share(a.stems, b.stems) == 0 && !taken(p):
			other = p
		}
		if i > 300 && other != nil {
			break
		}
	}
	return other
}

// overlap are questions that one answer may be given to.
var overlap = map[string]bool{
	"residence address": true, "address residence": true, "job employer": true, "employer job": true, "code phone": true, "phone code": true, "birth age": true, "age birth": true,
	"code size": true, "size code": true, "address mail": true, "mail address": true, "study employer": true, "employer study": true, "study job": true, "job study": true,
}

// askLoose asks about loose pairs, as long as a week's requests last. Pairs of which
// the verdict is known, from a model that is to be believed, get it.
func (n *night) askLoose(ctx context.Context, scopes [][]*signature, pairs []*pair) {
	model := n.d.cfg.Model()
	salt, err := n.d.salt(ctx)
	if err != nil {
		n.note("no model was asked: %v", err)
		return
	}
	said, err := n.d.said(ctx, model, n.now.Add(-unclearUntil))
	if err != nil {
		n.note("what was said of pairs could not be read: %v", err)
		return
	}
	said.need = n.active / perProof
	taken := map[string]bool{}
	take := func(p *pair) bool {
		h := p.hash(salt)
		_, before := said.verdict(p, salt)
		was := taken[h] || before
		taken[h] = true
		return was
	}
	var todo []*pair
	for _, p := range pairs {
		if v, there := said.verdict(p, salt); there {
			p.verdict = v
			n.report.Cost.Cached++
		} else if !take(p) {
			todo = append(todo, p)
		} else {
			n.more = true // the same words as another: its verdict is known next time
		}
	}
	week := max(controlMinimum, int(weekly*float64(n.active+said.left)))
	n.requests(ctx, func(yield func([]*pair) bool) {
		for len(todo) > 0 && n.report.Cost.Calls-n.report.Cost.Read+said.calls < week {
			loose, count := looseRequest, controls
			if said.right < said.needed() { // until the model has shown what it is worth
				loose, count = min(looseRequest/2, (len(todo)+2)/3), looseRequest
			}
			batch := slices.Clone(todo[:min(loose, len(todo))])
			if i := slices.IndexFunc(batch, func(p *pair) bool { return p.a.Scope != batch[0].a.Scope }); i > 0 {
				batch = batch[:i]
			}
			todo = todo[len(batch):]
			batch = n.withControls(scopes, batch, count, take)
			if !yield(batch) {
				n.more = true
				return
			}
			for _, p := range batch {
				switch {
				case p.control && p.verdict == rightControl:
					said.right++
				case p.control && p.verdict == wrongControl:
					said.wrong++
				case p.control && p.verdict == silentControl:
					said.silent++
				}
			}
		}
		n.more = n.more || len(todo) > 0
	}, salt, model)
	if said.proven() {
		return
	}
	for _, p := range pairs {
		if p.verdict != "" && p.verdict != neither && said.sound() {
			n.more = true // it may be believed later
		}
		if !p.same || p.verdict != duplicate { // to put two together loses nothing
			p.verdict = ""
		}
	}
	if wrong := said.wrong + said.silent; !said.sound() {
		n.note("the model was wrong about %d of %d pairs of which the answer is known, so it is believed only where the structure says the same", wrong, said.right+wrong)
	}
}

// withControls puts count controls among batch, in places that nobody can guess.
func (n *night) withControls(scopes [][]*signature, batch []*pair, count int, taken func(*pair) bool) []*pair {
	i := slices.IndexFunc(scopes, func(all []*signature) bool { return all[0].Scope == batch[0].a.Scope })
	for k := range count {
		if c := n.control(scopes[i], batch[k%len(batch)].a, taken); c != nil {
			batch = slices.Insert(batch, rand.IntN(len(batch)+1), c)
		}
	}
	return batch
}

// said is what a model said in earlier nights.
type said struct {
	of           map[string]verdict
	right, wrong int // controls
	silent       int // controls of which it said nothing
	calls        int // in the last seven days, but for those that read conversations
	need         int // controls that the size of this memory asks for
	left         int // entries that dreams put away in these days
}

// verdict is what was said of p, whichever question it was asked with.
func (s said) verdict(p *pair, salt []byte) (verdict, bool) {
	if v, there := s.of[p.hash(salt)]; there {
		return v, true
	}
	v, there := s.of[p.otherHash(salt)]
	return v, there
}

// proven reports whether the model is to be believed about loose pairs.
func (s said) proven() bool { return s.right >= s.needed() && s.sound() }

// needed is how many controls a model must have been right about before it is believed.
func (s said) needed() int { return max(proof, s.need) }

// sound reports whether nothing speaks against believing the model about loose pairs.
func (s said) sound() bool {
	return s.wrong*mistakes <= s.right && (s.wrong+s.silent)*silences <= s.right
}

// disproven reports whether the model errs so often that it is not to be believed about
// anything that takes a text out of use.
func (s said) disproven() bool { return s.wrong >= enoughMistakes && s.wrong*gross > s.right }

// disbelieve takes no notice of what a model says that was too often wrong about pairs of
// which the answer is known, whether it was asked today or before.
func (n *night) disbelieve(ctx context.Context, pairs []*pair) {
	if !slices.ContainsFunc(pairs, func(p *pair) bool { return p.verdict != "" }) {
		return
	}
	said, err := n.d.said(ctx, n.d.cfg.Model(), n.now.Add(-unclearUntil))
	if err != nil {
		n.note("what was said of pairs could not be read: %v", err)
	}
	if err == nil && !said.disproven() {
		return
	}
	for _, p := range pairs {
		p.verdict = ""
	}
}

func (d *Dreamer) said(ctx context.Context, model string, fresh time.Time) (said, error) {
	out := said{of: map[string]verdict{}}
	week := d.cfg.Now().AddDate(0, 0, -7).UnixMilli()
	if err := d.cfg.DB.QueryRowContext(ctx, `SELECT coalesce(sum(calls - harvest), 0) FROM dream_run WHERE at > ?`, week).Scan(&out.calls); err != nil {
		return out, err
	}
	if err := d.cfg.DB.QueryRowContext(ctx, `SELECT count(*) FROM dream_op WHERE undone = 0 AND kind IN ('merge', 'supersede', 'archive') AND run IN (SELECT id FROM dream_run WHERE at > ?)`, week).Scan(&out.left); err != nil {
		return out, err
	}
	rows, err := d.cfg.DB.QueryContext(ctx, `SELECT pair, verdict FROM dream_seen WHERE model = ? AND (verdict <> 'unclear' OR at > ?)`, model, fresh.UnixMilli())
	if err != nil {
		return out, err
	}
	defer rows.Close()
	for rows.Next() {
		var pair string
		var v verdict
		if err := rows.Scan(&pair, &v); err != nil {
			return out, err
		}
		switch out.of[pair] = v; v {
		case rightControl:
			out.right++
		case wrongControl:
			out.wrong++
		case silentControl:
			out.silent++
		}
	}
	return out, rows.Err()
}
