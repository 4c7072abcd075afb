package dream

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reverie/internal/dream/report"
	"reverie/internal/harvest"
	"reverie/internal/llm"
	"reverie/internal/llm/answer"
	"reverie/internal/llm/template"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

// verdict is a model's label for a pair, out of a closed list.
type verdict string

const (
	keepFirst  verdict = "keep_first"
	keepSecond verdict = "keep_second"
	update     verdict = "update" // they contradict each other
	duplicate  verdict = "duplicate"
	neither    verdict = "neither" // both hold, and say different things
	unsure     verdict = "unsure"
	unclear    verdict = "unclear" // the model was asked, and its answer cannot be read
)

// verdicts maps the words of models to verdicts.
var verdicts = map[string]verdict{
	"keep_first": keepFirst, "keep_second": keepSecond, "update": update, "contradiction": update, "contradict": update, "conflict": update,
	"merge": duplicate, "duplicate": duplicate, "same": duplicate, "neither": neither, "both": neither,
	"compatible": neither, "different": neither, "unsure": unsure, "unknown": unsure,
}

const (
	perRequest   = 10                  // pairs
	perTokens    = 1200                // of the texts in one request; the first pair may be longer
	callTime     = 2 * time.Minute     // timeout of one request
	failures     = 2                   // consecutive failures that stop requests for the night
	unclearUntil = 60 * 24 * time.Hour // then a pair with an unreadable answer is asked again
)

// ask sets the verdict of each pair, stored or from a model. Failures leave pairs without one.
func (r *run) ask(ctx context.Context, pairs []*pair) {
	model := r.d.cfg.Model()
	salt, err := memory.Salt(ctx, r.d.cfg.DB)
	if err != nil {
		r.note("no model was asked: %v", err)
		return
	}
	todo := r.d.loadVerdicts(ctx, pairs, salt, model, r.now.Add(-unclearUntil))
	r.report.Cost.Cached = len(pairs) - len(todo)
	if len(todo) == 0 {
		return
	}
	if r.d.cfg.Ask == nil {
		r.note("%d pairs wait for a model: none was asked", len(todo))
		r.more = true
		return
	}
	r.requests(ctx, batches(todo), salt, model)
}

// requests asks a model about batches within the budget.
func (r *run) requests(ctx context.Context, batches [][]*pair, salt []byte, model string) {
	within, cancel := context.WithTimeout(ctx, r.models.timeLeft())
	defer cancel()
	failed, lost := 0, 0
	defer func() {
		if lost > 0 {
			r.note("what the model said of %d pairs could not be read; nothing was done about them", lost)
		}
	}()
	for _, batch := range batches {
		prompt := r.d.prompt(batch, strings.ToLower(rand.Text()[:8]))
		if why := r.models.spent(within, prompt); why != "" {
			r.note("%s; the rest waits for the next dream", why)
			r.more = true
			return
		}
		said, err := r.models.request(within, batch, prompt)
		if ctx.Err() != nil {
			return
		}
		if failed++; said > 0 {
			failed = 0
		}
		if err != nil {
			if r.more = true; failed == 1 {
				r.note("a model did not answer, so what it was asked waits: %v", err)
			}
		} else {
			lost += len(batch) - said
			if err := r.d.saveVerdicts(ctx, batch, salt, model, r.now); err != nil {
				r.note("what the model said could not be kept: %v", err)
			}
		}
		if failed > failures || err != nil && failed == failures { // an answer that cannot be read may be chance
			r.note("the model is asked no more tonight")
			r.more, r.models.silent = true, true
			return
		}
	}
}

// models sends the requests of a night within its budget.
type models struct {
	ask    Ask // nil = no model
	budget report.Budget
	cost   *report.Cost
	began  time.Time // time of the first request
	silent bool      // they failed too often
}

// timeLeft is the rest of the time budget, which the first request starts.
func (m *models) timeLeft() time.Duration {
	if m.began.IsZero() {
		m.began = time.Now()
	}
	return m.budget.Time - time.Since(m.began)
}

// spent says which part of the budget prompt would exceed, or "". The first request of a night may
// exceed the token budget.
func (m *models) spent(ctx context.Context, prompt string) string {
	cost, most := m.cost, m.budget
	switch {
	case ctx.Err() != nil || m.timeLeft() <= 0:
		return "the time for questions to the model is used up"
	case cost.Calls >= most.Calls:
		return fmt.Sprintf("the model was asked %d times", cost.Calls)
	case cost.Tokens >= most.Tokens, cost.Calls > 0 && cost.Tokens+llm.EstimateTokens(prompt) > most.Tokens:
		return fmt.Sprintf("%d tokens are used up", cost.Tokens)
	}
	return ""
}

// send sends one prompt to a model and counts its cost.
func (m *models) send(ctx context.Context, prompt string) (string, error) {
	within, cancel := context.WithTimeout(ctx, min(callTime, m.timeLeft()))
	defer cancel()
	m.cost.Calls++
	m.cost.Tokens += llm.EstimateTokens(prompt)
	answer, err := m.ask(within, role, prompt)
	m.cost.Tokens += llm.EstimateTokens(answer)
	return answer, err
}

// foreign reports whether p has foreign text. It may contain a prompt injection, so such a pair shares
// no request with trusted ones.
func (p *pair) foreign() bool { return min(p.a.Integrity, p.b.Integrity) < trust.User }

// batches divides pairs into requests. Pairs of one request have one scope, one kind of question and
// either all foreign text or none.
func batches(pairs []*pair) (all [][]*pair) {
	pairs = slices.Clone(pairs)
	slices.SortStableFunc(pairs, func(p, q *pair) int { return flag(p.foreign()) - flag(q.foreign()) })
	together := func(p, q *pair) bool {
		return p.conflict == q.conflict && p.a.Scope == q.a.Scope && p.foreign() == q.foreign()
	}
	for len(pairs) > 0 {
		end, size := 0, 0
		for end < len(pairs) && end < perRequest && together(pairs[end], pairs[0]) {
			size += llm.EstimateTokens(pairs[end].a.Text) + llm.EstimateTokens(pairs[end].b.Text)
			if end > 0 && size > perTokens {
				break
			}
			end++
		}
		all, pairs = append(all, pairs[:end]), pairs[end:]
	}
	return all
}

// request sends prompt and sets the verdicts of batch. It counts the readable ones; others are unclear.
func (m *models) request(ctx context.Context, batch []*pair, prompt string) (said int, err error) {
	m.cost.Pairs += len(batch)
	answer, err := m.send(ctx, prompt)
	if err != nil {
		return 0, err
	}
	for i, v := range readVerdicts(answer, len(batch)) {
		p := batch[i]
		if p.verdict = v; v == unclear {
			continue
		}
		if said++; !p.conflict && v != duplicate {
			p.verdict = neither
		}
	}
	return said, nil
}

// readVerdicts parses the last list in an answer, which may be truncated. A pair without exactly one
// known verdict is unclear.
func readVerdicts(said string, pairs int) []verdict {
	out := make([]verdict, pairs)
	list, _ := answer.LastObjects(said) // as far as it goes
	for _, o := range list {
		at := answer.Int(o, "pair") - 1
		if at < 0 || at >= pairs {
			continue
		}
		v, known := verdicts[strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(answer.Text(o, "verdict")))]
		if !known || out[at] != "" && out[at] != v {
			v = unclear
		}
		out[at] = v
	}
	for i := range out {
		out[i] = cmp.Or(out[i], unclear)
	}
	return out
}

// The prompt templates.
var (
	pairPlaces     = []string{"{entry_1}", "{entry_2}"}
	conflictForm   = template.Template{File: "DREAM_CONTRADICTION_PROMPT.txt", Placeholders: [][]string{pairPlaces, {"{content}"}}}
	paraphraseForm = template.Template{File: "DREAM_DEDUP_PROMPT.txt", Placeholders: [][]string{{"{content}"}, pairPlaces}}
	taskForm       = template.Template{File: "DREAM_TASK_PROMPT.txt", Placeholders: [][]string{{"{content}"}}}
)

// Templates lists the prompt templates of a night.
func Templates() []template.Template {
	return []template.Template{conflictForm, paraphraseForm, taskForm, harvest.Template}
}

// prompt fills the template for batch. Memory texts stand between marks with a nonce, and braces in
// them are not expanded.
func (d *Dreamer) prompt(batch []*pair, nonce string) string {
	form := paraphraseForm
	if batch[0].conflict {
		form = conflictForm
	}
	return d.fill(form.Load(d.cfg.Prompts, d.cfg.Default, d.cfg.Log), batch, nonce)
}

// fill fills a template with batch. It repeats the paragraph with {entry_1} for each pair and puts the
// result at {content}, or at the end.
func (d *Dreamer) fill(form string, batch []*pair, nonce string) string {
	each := "Pair {pair}\n1: {entry_1}\n2: {entry_2}"
	parts := strings.Split(strings.TrimSpace(form), "\n\n")
	if i := slices.IndexFunc(parts, func(p string) bool { return strings.Contains(p, "{entry_1}") }); i >= 0 {
		each, parts[i] = parts[i], "{content}"
	}
	if !strings.Contains(each, "{pair}") {
		each = "Pair {pair}\n" + each
	}
	blocks := make([]string, len(batch))
	for i, p := range batch {
		in := strings.NewReplacer("{pair}", strconv.Itoa(i+1), "{entry_1}", d.quote(p.a, nonce), "{entry_2}", d.quote(p.b, nonce))
		blocks[i] = in.Replace(each)
	}
	all := strings.NewReplacer("{nonce}", nonce, "{count}", strconv.Itoa(len(batch))).Replace(strings.Join(parts, "\n\n"))
	return strings.TrimSpace(template.Fill(all, "{content}", strings.Join(blocks, "\n\n")))
}

// quote returns an entry's verbatim text with its date.
func (d *Dreamer) quote(s *signature, nonce string) string {
	who := ""
	if s.Subject != "" {
		who = ", about " + s.Subject
	}
	at := s.Since().In(d.cfg.Location).Format("2006-01-02 15:04")
	return fmt.Sprintf("(%s%s) <memory %s>%s</memory %s>", at, who, nonce, s.Text, nonce)
}

// hash returns a key for a pair that does not reveal its words.
func (p *pair) hash(salt []byte) string {
	x, y := p.a.plain, p.b.plain
	return hashed(salt, min(x, y)+"\x00"+max(x, y))
}

func hashed(salt []byte, text string) string {
	sum := sha256.Sum256(append(slices.Clone(salt), text...))
	return hex.EncodeToString(sum[:16])
}
