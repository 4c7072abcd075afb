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
	failures     = 2                   // in a row, which stop the reading; one more stops the night
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
	lost := 0
	for _, batch := range batches(todo) {
		answer, ok := r.send(ctx, r.d.prompt(batch, strings.ToLower(rand.Text()[:8])))
		if ctx.Err() != nil {
			return
		}
		if !ok {
			r.more = true
			continue
		}
		r.report.Cost.Pairs += len(batch)
		said := setVerdicts(batch, answer)
		r.countAnswer(said > 0)
		lost += len(batch) - said
		if err := r.d.saveVerdicts(ctx, batch, salt, model, r.now); err != nil {
			r.note("what the model said could not be kept: %v", err)
		}
	}
	if lost > 0 {
		r.note("what the model said of %d pairs could not be read; nothing was done about them", lost)
	}
}

// timeLeft is the rest of the time budget, which the first request starts.
func (r *run) timeLeft() time.Duration {
	if r.began.IsZero() {
		r.began = time.Now()
	}
	return r.d.cfg.Budget.Time - time.Since(r.began)
}

// spent says which part of the budget prompt would exceed, or "". Of the budget, one share may be used.
// With all of it, the first request of a night may exceed the tokens.
func (r *run) spent(prompt string, share int) string {
	cost, calls, tokens := r.report.Cost, r.d.cfg.Budget.Calls/share, r.d.cfg.Budget.Tokens/share
	switch {
	case r.timeLeft() <= 0:
		return "the time for questions to the model is used up"
	case cost.Calls >= calls:
		return fmt.Sprintf("%d of %d requests are used up", cost.Calls, calls)
	case cost.Tokens >= tokens, (cost.Calls > 0 || share > 1) && cost.Tokens+llm.EstimateTokens(prompt) > tokens:
		return fmt.Sprintf("%d of %d tokens are used up", cost.Tokens, tokens)
	}
	return ""
}

// send sends one prompt to a model. It is not ok without an answer, and a note says why. Nothing more is
// sent in a night whose budget is spent, or after some failures in a row.
func (r *run) send(ctx context.Context, prompt string) (answer string, ok bool) {
	if r.silent {
		return "", false
	}
	why := r.spent(prompt, 1)
	if why == "" && r.failed > failures {
		why = "the model failed too often"
	}
	if why != "" {
		r.note("%s; the rest waits for the next dream", why)
		r.silent = true
		return "", false
	}
	ask := func(ctx context.Context, prompt string) (string, error) { return r.d.cfg.Ask(ctx, role, prompt) }
	answer, err := r.request(ctx, prompt, ask)
	if err != nil && ctx.Err() == nil {
		r.countAnswer(false)
		r.note("a model did not answer, so the things it was asked about stay as they are: %v", err)
	}
	return answer, err == nil
}

// countAnswer counts the requests in a row that gave no readable answer.
func (r *run) countAnswer(readable bool) {
	if r.failed++; readable {
		r.failed = 0
	}
}

// request sends one prompt with ask and counts its cost.
func (r *run) request(ctx context.Context, prompt string, ask func(context.Context, string) (string, error)) (string, error) {
	within, cancel := context.WithTimeout(ctx, min(callTime, r.timeLeft()))
	defer cancel()
	cost := &r.report.Cost
	cost.Calls++
	cost.Tokens += llm.EstimateTokens(prompt)
	answer, err := ask(within, prompt)
	cost.Tokens += llm.EstimateTokens(answer)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return "", fmt.Errorf("no answer within %s; %w", callTime, harvest.ErrLimit)
	}
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

// setVerdicts sets the verdicts of batch from an answer. It counts the readable ones; others are unclear.
func setVerdicts(batch []*pair, answer string) (said int) {
	for i, v := range readVerdicts(answer, len(batch)) {
		p := batch[i]
		if p.verdict = v; v == unclear {
			continue
		}
		if said++; !p.conflict && v != duplicate {
			p.verdict = neither
		}
	}
	return said
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

// readShare is the divisor of the budget for reading conversations: half of it.
const readShare = 2

// read harvests facts from quiet conversations before the plan. Failures become notes, because unread
// messages are read later. Only the end of ctx is an error.
func (r *run) read(ctx context.Context) error {
	h := r.d.cfg.Harvester
	if !r.has(Harvest) {
		return nil
	}
	if h == nil {
		if len(r.o.Phases) > 0 {
			r.note("conversations are not read here: there is no model, or harvest.enabled is false")
		}
		return nil
	}
	since := r.now.Add(-settled)
	if r.o.Now {
		since = r.now.AddDate(1, 0, 0)
	}
	rooms, messages, err := h.IdleRooms(ctx, since)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		r.note("what is to be read is not known: %v", err)
		return nil
	case r.o.DryRun && messages > 0:
		r.note("messages that were not read yet: %d; a dry run reads none, so what they say is not part of it", messages)
		return nil
	case len(rooms) == 0:
		return nil
	}
	within, cancel := context.WithTimeout(ctx, r.timeLeft()/readShare)
	defer cancel()
	read, err := h.Read(within, rooms, r.readPart, failures)
	r.report.Harvested = &read
	if err := ctx.Err(); err != nil {
		return err
	}
	if err != nil && within.Err() != nil {
		err = fmt.Errorf("half of the time for questions to the model is used up; %w", harvest.ErrLimit)
	}
	if err != nil {
		r.note("not all that was said is read: %v", err)
	}
	return nil
}

// readPart sends a harvest prompt if the budget allows it.
func (r *run) readPart(ctx context.Context, prompt string) (string, error) {
	if why := r.spent(prompt, readShare); why != "" {
		return "", fmt.Errorf("%s; %w", why, harvest.ErrLimit)
	}
	r.report.Cost.Read++
	return r.request(ctx, prompt, r.d.cfg.Harvester.Ask)
}
