package prompt

import (
	"cmp"
	"regexp"
	"strings"
	"unicode/utf8"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt/section"
)

// A draft is what a request comes to before it is a Prompt.
type draft struct {
	epoch    *epoch // as it is once this is sent
	fresh    bool   // it begins here
	stale    bool   // the newest message's tail, if it has one, is from before it
	prefix   string
	stored   []SectionReport // the prefix's sections, when it is reused
	sections []*rendered     // those that were rendered now
	history  []llm.Message
	turns    []turn
	skipped  int    // messages of the history that are left out
	pictures int    // that the model is shown
	kept     string // the newest message's tail, if it was sent before and stays
	tail     string
}

// turn is a user message and all that follows it up to the next one.
type turn struct {
	start  int // index in draft.history
	tokens int
}

// Tokens that the frame around a message, a picture and a tail takes.
const (
	messageFrame = 4
	pictureLine  = 30
	tailFrame    = 16
)

// dense is how many tokens the model counts for one by estimate.
func (t *Turn) dense() float64 { return cmp.Or(t.Dense, 1) }

// space is what the window has for prefix, history and tail, in tokens by estimate.
func (r *request) space() int {
	if r.turn.Window <= 0 {
		return 1 << 30
	}
	return int(float64(r.turn.Window-r.turn.MaxOutput)/r.turn.dense()) - r.turn.ToolTokens - messageFrame
}

// draft goes on with the room's epoch if it can, and begins a new one if not.
func (r *request) draft() (*draft, error) {
	old := r.room.epoch
	reason := r.ended(old)
	if reason == "" {
		d, g, err := r.compose(old, false, false)
		if err == nil && g.leave == 0 {
			return d, nil
		}
		reason = outgrown
	}
	return r.begin(old, reason)
}

// Reasons of an epoch that something else depends on.
const (
	newConversation = "new conversation"
	newDay          = "new day"
	outgrown        = "history" // it did not fit any more
)

// begin starts a new epoch, in which everything is shown anew and fits.
func (r *request) begin(old *epoch, reason string) (*draft, error) {
	e := &epoch{conversation: r.conversation, layout: r.layout, key: r.key(nil), since: r.newest,
		started: r.turn.Now, reason: reason, nonce: r.nonce(old)}
	if old != nil && old.conversation == r.conversation {
		e.first = old.first
	}
	for i, c := range r.contents {
		if c != nil && r.rows[i].Change == section.LinesEnd {
			e.shown = append(e.shown, shown{Source: c.Source, Lines: c.IDs()})
		}
	}
	d, g, err := r.compose(e, true, reason == outgrown)
	for err == nil && g.leave > 0 { // once more without the oldest turns: the tail may have to say what they said
		e.first = r.turn.History[d.skipped+d.turns[g.leave].start].ID
		d, g, err = r.compose(e, true, false)
	}
	if err != nil {
		return nil, err
	}
	if !r.rebuilt {
		d.epoch.prefix = d.prefix
		d.epoch.sections = reports(d.sections, section.Prefix)
	}
	return d, nil
}

// compose makes a request of a copy of the epoch e. What has less room than it would take is composed
// again, cut to that; the grant says how many turns must go as well. Within an epoch of a layout that
// keeps its prefix nothing gives way: what does not fit is an error, and a reason for a new epoch.
func (r *request) compose(e *epoch, fresh, batch bool) (*draft, grant, error) {
	d := r.composeOnce(e, fresh)
	if !fresh && !r.rebuilt {
		if d.tokens() > r.space() {
			return nil, grant{}, r.tooLarge(d.tokens())
		}
		return d, grant{}, nil
	}
	want := r.demand(d)
	want.batch = batch
	g, needed, ok := fit(want)
	if !ok {
		return nil, g, r.tooLarge(needed + d.tailTokens())
	}
	if r.squeeze(d, g) {
		d = r.composeOnce(e, fresh)
	}
	return d, g, nil
}

func (r *request) tooLarge(needed int) error {
	said := func(tokens int) int { return int(float64(tokens) * r.turn.dense()) }
	return &TooLargeError{Needed: said(needed), Room: said(r.space()), Window: r.turn.Window, Output: r.turn.MaxOutput,
		Tools: said(r.turn.ToolTokens)}
}

func (r *request) demand(d *draft) demand {
	want := demand{room: r.space() - d.tailTokens()}
	for _, s := range d.sections {
		row := &r.rows[s.row]
		n := need{id: s.ID, keep: row.Keep, tokens: s.Tokens, whole: row.Shrink == section.None}
		if len(r.contents[s.row].Lines) == 0 {
			n.keep = section.Must // only the program's few words: nothing to shrink
		}
		want.sections = append(want.sections, n)
	}
	total := 0
	for _, t := range d.turns {
		want.turns = append(want.turns, t.tokens)
		total += t.tokens
	}
	// A prefix that stays leaves room for the turns to come; one that is rebuilt
	// for each request only for those that are there.
	want.history = want.room / 3
	if r.rebuilt {
		want.history = min(want.history, total)
	}
	return want
}

// squeeze gives the rows of the sections that were granted less than they took that much,
// and reports whether there were any.
func (r *request) squeeze(d *draft, g grant) (any bool) {
	for i, s := range d.sections {
		if g.sections[i] < s.Tokens {
			any = true
			r.most[s.row] = utf8.RuneCountInString(s.Text) * g.sections[i] / s.Tokens * 9 / 10
			r.granted[s.row] = g.sections[i]
		}
	}
	return any
}

func (r *request) composeOnce(e *epoch, fresh bool) *draft {
	next := *e
	d := &draft{epoch: &next, fresh: fresh, stale: fresh, prefix: e.prefix, stored: e.sections}
	if r.newest != 0 && r.newest < e.since { // a retry took back the message that the epoch began with
		next.since, d.stale = r.newest, true
	}
	if fresh || r.rebuilt {
		d.stored, d.prefix = nil, r.composePrefix(d)
	}
	r.composeTail(d)
	r.composeHistory(d)
	return d
}

// divider stands between two sections of the prefix.
const divider = "\n\n---\n\n"

func (r *request) composePrefix(d *draft) string {
	var parts []string
	for i := range r.rows {
		row, c := &r.rows[i], r.contents[i]
		if row.Zone != section.Prefix || c == nil || len(c.Lines) == 0 && c.Lead == "" {
			continue
		}
		if c = r.unsaid(d.epoch, c, parts); c == nil {
			continue
		}
		s := r.section(i, c, d.epoch.nonce)
		d.sections = append(d.sections, s)
		if s.Text != "" {
			parts = append(parts, "# "+row.Title+"\n"+s.Text)
		}
	}
	return strings.Join(parts, divider)
}

// composeTail finds what is new for the newest message, and notes in the epoch
// that it has been shown.
func (r *request) composeTail(d *draft) {
	var parts []string
	e := d.epoch
	e.shown = e.shown[:len(e.shown):len(e.shown)] // others may hold it
	for i := range r.rows {
		row, c := &r.rows[i], r.contents[i]
		if row.Zone != section.Tail || c == nil {
			continue
		}
		c, records := r.news(e, row, c, d.prefix)
		e.shown = append(e.shown, records...)
		if c == nil {
			continue
		}
		s := r.section(i, c, e.nonce)
		d.sections = append(d.sections, s)
		if s.Text == "" {
			continue
		}
		if row.Title != "" {
			parts = append(parts, row.Title+":")
		}
		parts = append(parts, s.Text)
	}
	if len(parts) > 0 {
		d.tail = openNote(e.nonce) + "\n" + strings.Join(parts, "\n") + "\n" + closeNote(e.nonce)
	}
}

// news returns the part of c that the newest message must carry, if any, and
// the records of what the model will have seen then.
func (r *request) news(e *epoch, row *row, c *section.Content, prefix string) (*section.Content, []shown) {
	past := r.turn.History
	if row.Change == section.NewLines {
		var records []shown
		var untold []int
		for _, i := range e.unseen(c, past) {
			l := &c.Lines[i]
			if e.holds(l) || e.knows(l.Same, prefix, past) {
				continue
			}
			if in := r.told(l.Text); in != 0 {
				records = append(records, shown{Source: c.Source, Message: in, Lines: []uint64{l.ID}})
			} else {
				untold = append(untold, i)
			}
		}
		if len(untold) == 0 {
			return nil, records
		}
		c = c.Only(untold)
		return c, append(records, shown{Source: c.Source, Message: r.newest, Lines: c.IDs()})
	}
	hash, before := e.lastShown(c.Source, past)
	switch {
	case before && (hash == c.Hash || row.Change == section.Once):
		return nil, nil
	case !before && len(c.Lines) == 0:
		return nil, nil
	}
	return c, []shown{{Source: c.Source, Message: r.newest, Hash: c.Hash}}
}

// unsaid is recalled memory without what stands above it in a prefix, or in the
// history; nil = nothing is left. Any other content is as it was.
func (r *request) unsaid(e *epoch, c *section.Content, above []string) *section.Content {
	if c.Source != section.Recalled {
		return c
	}
	prefix := strings.Join(above, divider)
	var keep []int
	for i := range c.Lines {
		if l := &c.Lines[i]; !e.holds(l) && !e.knows(l.Same, prefix, nil) {
			keep = append(keep, i)
		}
	}
	if len(keep) == 0 {
		return nil
	}
	return c.Only(keep)
}

// told returns the message, among the tool results that no request has carried
// yet, in which line stands verbatim: as a line, in quotes, or after a colon.
func (r *request) told(line string) int64 {
	verbatim := "(?:\\A|[\n\"“`]|: |- )" + regexp.QuoteMeta(line) + "(?:\\z|[\n\"”`.])"
	past := r.turn.History
	for i := len(past) - 1; i >= 0 && past[i].Role == llm.Tool; i-- {
		if found, err := regexp.MatchString(verbatim, past[i].Text); err == nil && found { // a line that is no UTF-8 is none that was told
			return past[i].ID
		}
	}
	return 0
}

// section renders row i.
func (r *request) section(i int, c *section.Content, nonce string) *rendered {
	s := render(&r.rows[i], c, r.most[i], nonce)
	s.row = i
	if s.Tokens > r.granted[i] {
		s.State, s.Text, s.Tokens = Dropped, "", 0
	}
	if s.State == Failed {
		r.a.cfg.Log.Error("prompt section broke its fence", "section", s.ID, "err", s.Note, "text", c.Text())
	}
	return s
}

// nonce of the conversation: the stored one, or a new one that stays the same
// until it is stored.
func (r *request) nonce(old *epoch) string {
	if old != nil && old.conversation == r.conversation {
		return old.nonce
	}
	if r.room.nonce == "" || r.room.nonceFor != r.conversation {
		r.room.nonce, r.room.nonceFor = r.a.nonce(), r.conversation
	}
	return r.room.nonce
}

// composeHistory makes the messages from e.first on, each as it was sent
// before. What looks like a fence of ours in them is broken up; tails from before the
// epoch are left out, for the epoch shows all that they said.
func (r *request) composeHistory(d *draft) {
	e := d.epoch
	for d.skipped < len(r.turn.History) && r.turn.History[d.skipped].ID < e.first {
		d.skipped++
	}
	past := r.turn.History[d.skipped:]
	from := shownFrom(r.turn.History, e.since)
	d.history = make([]llm.Message, 0, len(past)+1) // and the tail of a preview
	for i := range past {
		m := &past[i]
		tail := m.Tail
		if m.ID < e.since || d.stale && m.ID == r.newest {
			tail = ""
		}
		seen := m.ID >= from
		sent, tokens := sendMessage(m, tail, e.nonce, r.a.cfg.Dir, seen)
		if m.Role == llm.User || len(d.turns) == 0 {
			d.turns = append(d.turns, turn{start: len(d.history)})
		}
		d.turns[len(d.turns)-1].tokens += tokens
		if seen && r.turn.Sees {
			for j := range m.Files {
				if f := &m.Files[j]; f.Picture != "" {
					d.turns[len(d.turns)-1].tokens += history.PictureTokens(f.W, f.H)
					d.pictures++
				}
			}
		}
		d.history = append(d.history, sent)
		if m.ID == r.newest {
			d.kept = tail
		}
	}
}

// sendMessage is a message of the history as it is sent, with its pictures if they are still
// seen, and the tokens that it takes without them.
func sendMessage(m *history.Message, tail, nonce, dir string, seen bool) (sent llm.Message, tokens int) {
	said := *m
	said.Tail = tail
	if quotes := m.Quotes(); quotes != "" {
		said.Quoted = []history.Quoted{{Text: fenced(quotes, quotedSource, nonce)}}
	}
	if m.Role != llm.Assistant || strings.Contains(m.Text, nonce) {
		said.Text = plain(m.Text)
	}
	files, shown := brought(m, nonce, dir, seen)
	if files != "" {
		said.Text = strings.TrimPrefix(said.Text+"\n"+files, "\n")
	}
	sent = llm.Message{Role: m.Role, Content: said.Content(), ToolCalls: m.Calls, ToolCallID: m.CallID, Pictures: shown}
	tokens = messageFrame + llm.EstimateTokens(sent.Content) + pictureLine*len(shown)
	for _, c := range m.Calls {
		tokens += messageFrame + llm.EstimateTokens(c.Name) + llm.EstimateTokens(c.Arguments)
	}
	return sent, tokens
}

// tokens of prefix, history and tail.
func (d *draft) tokens() int {
	n := 0
	for _, s := range d.stored {
		n += s.Tokens
	}
	for _, s := range d.sections {
		n += s.Tokens
	}
	for _, t := range d.turns {
		n += t.tokens
	}
	return n + d.tailTokens()
}

// tailTokens is what the frame of the tail takes, if there is one.
func (d *draft) tailTokens() int {
	if d.tail == "" {
		return 0
	}
	return tailFrame
}
