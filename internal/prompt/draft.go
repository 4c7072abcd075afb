package prompt

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt/section"
)

// A draft is a prompt being composed.
type draft struct {
	epoch          *epoch // as it will be after sending
	newEpoch       bool   // the epoch begins here
	staleTail      bool   // the newest message's stored tail is from before the epoch
	prefix         string
	storedSections []SectionReport // the prefix's sections, if the prefix is reused
	sections       []*rendered     // the sections rendered now
	history        []llm.Message
	turns          []turn
	leftOut        int    // messages of the history that are left out
	pictures       int    // shown to the model
	storedTail     string // the newest message's tail, if it was sent before and stays
	tail           string
}

// turn is a user message and all messages up to the next one.
type turn struct {
	start  int // index in draft.history
	tokens int
}

// Overhead in tokens of a message, a picture and a tail.
const (
	messageFrame = 4
	pictureLine  = 30
	tailFrame    = 16
)

// space returns the window's room for prefix, history and tail, in estimated tokens.
func (r *request) space() int {
	if r.turn.Window <= 0 {
		return 1 << 30
	}
	return int(float64(r.turn.Window-r.turn.MaxOutput)/r.turn.TokenRatio) - r.turn.ToolTokens - messageFrame
}

// draft continues the room's epoch if possible, or else begins a new one.
func (r *request) draft() (*draft, error) {
	old := r.room.epoch
	reason := r.endReason(old)
	if reason == "" {
		d, g, err := r.compose(old, false, false)
		if err == nil && g.dropTurns == 0 {
			return d, nil
		}
		reason = outgrown
	}
	return r.beginEpoch(old, reason)
}

// Reasons of an epoch's end that are tested elsewhere.
const (
	newConversation = "new conversation"
	newDay          = "new day"
	outgrown        = "history" // it no longer fits
)

// beginEpoch starts a new epoch, which shows everything and fits.
func (r *request) beginEpoch(old *epoch, reason string) (*draft, error) {
	e := &epoch{conversation: r.conversation, layout: r.layout, key: r.epochKey(nil), since: r.newest,
		started: r.turn.Now, reason: reason, nonce: r.nonce(old)}
	if old != nil && old.conversation == r.conversation {
		e.first = old.first
		notes := slices.DeleteFunc(slices.Clone(old.shown), func(s shown) bool { return s.Source != "steering" })
		e.shown = notes[max(0, len(notes)-50):] // five turns have fewer
	}
	for i, c := range r.contents {
		if c != nil && r.rows[i].Change == section.LinesEnd {
			e.shown = append(e.shown, shown{Source: c.Source, Lines: c.IDs()})
		}
	}
	d, g, err := r.compose(e, true, reason == outgrown)
	for err == nil && g.dropTurns > 0 { // once more without the oldest turns: the tail may have to repeat their content
		e.first = r.turn.History[d.leftOut+d.turns[g.dropTurns].start].ID
		d, g, err = r.compose(e, true, false)
	}
	if err != nil {
		return nil, err
	}
	if !r.rebuilt {
		d.epoch.prefix = d.prefix
		d.epoch.sections = sectionReports(d.sections, section.Prefix)
	}
	return d, nil
}

// compose makes a request from a copy of the epoch e. Sections over their grant are composed again
// at that size; the grant also says how many turns must go. Within an epoch that keeps its prefix
// nothing shrinks: too much content is an error, and a reason for a new epoch.
func (r *request) compose(e *epoch, fresh, batch bool) (*draft, grant, error) {
	d := r.composeOnce(e, fresh)
	if !fresh && !r.rebuilt {
		if d.tokens() > r.space() {
			return nil, grant{}, r.tooLarge(d.tokens())
		}
		return d, grant{}, nil
	}
	want := r.demand(d)
	want.mustDrop = batch
	g, needed, ok := fit(want)
	if !ok {
		return nil, g, r.tooLarge(needed + d.tailTokens())
	}
	if r.limitSections(d, g) {
		d = r.composeOnce(e, fresh)
	}
	return d, g, nil
}

func (r *request) tooLarge(needed int) error {
	said := func(tokens int) int { return int(float64(tokens) * r.turn.TokenRatio) }
	return &TooLargeError{Needed: said(needed), Room: said(r.space()), Window: r.turn.Window, Output: r.turn.MaxOutput,
		Tools: said(r.turn.ToolTokens)}
}

func (r *request) demand(d *draft) demand {
	want := demand{room: r.space() - d.tailTokens(), budget: r.a.cfg.Budget}
	for _, s := range d.sections {
		row := &r.rows[s.row]
		n := need{id: s.ID, keep: row.Keep, tokens: s.Tokens, allOrNothing: row.Shrink == section.None}
		if len(r.contents[s.row].Lines) == 0 {
			n.keep = section.Must // a few words of the program: nothing to shrink
		}
		want.sections = append(want.sections, n)
	}
	total := 0
	for _, t := range d.turns {
		want.turns = append(want.turns, t.tokens)
		total += t.tokens
	}
	// A fixed prefix leaves room for future turns; one rebuilt for each request only for the
	// present ones.
	want.history = want.room / 3
	if r.rebuilt {
		want.history = min(want.history, total)
	}
	return want
}

// limitSections limits the sections over their grant, and reports whether there were any.
func (r *request) limitSections(d *draft, g grant) (any bool) {
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
	d := &draft{epoch: &next, newEpoch: fresh, staleTail: fresh, prefix: e.prefix, storedSections: e.sections}
	if r.newest != 0 && r.newest < e.since { // a retry removed the message that the epoch began with
		next.since, d.staleTail = r.newest, true
	}
	if fresh || r.rebuilt {
		d.storedSections, d.prefix = nil, r.composePrefix(d)
	}
	r.composeTail(d)
	r.composeHistory(d)
	return d
}

// divider separates sections of the prefix.
const divider = "\n\n---\n\n"

func (r *request) composePrefix(d *draft) string {
	var parts []string
	for i := range r.rows {
		row, c := &r.rows[i], r.contents[i]
		if row.Zone != section.Prefix || c == nil || len(c.Lines) == 0 && c.Lead == "" {
			continue
		}
		if c = r.withoutRepeats(d.epoch, c, parts); c == nil {
			continue
		}
		s := r.renderSection(i, c, d.epoch.nonce)
		d.sections = append(d.sections, s)
		if s.Text != "" {
			parts = append(parts, "# "+row.Title+"\n"+s.Text)
		}
	}
	return strings.Join(parts, divider)
}

// composeTail collects what is new for the newest message. It records it in the epoch as shown.
func (r *request) composeTail(d *draft) {
	var parts []string
	e := d.epoch
	e.shown = slices.Clone(e.shown) // other epochs may share it
	e.shown = append(slices.DeleteFunc(e.shown, func(s shown) bool { return s.Source == r.begun.Source }), r.begun)
	for i := range r.rows {
		row, c := &r.rows[i], r.contents[i]
		if row.Zone != section.Tail || c == nil {
			continue
		}
		c, records := r.newContent(e, row, c, d.prefix)
		e.shown = append(e.shown, records...)
		if c == nil {
			continue
		}
		s := r.renderSection(i, c, e.nonce)
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

// newContent returns the part of c for the newest message, if any. It also returns the records of
// what the model will have seen then.
func (r *request) newContent(e *epoch, row *row, c *section.Content, prefix string) (*section.Content, []shown) {
	past := r.turn.History
	if row.Change == section.NewLines {
		var records []shown
		var untold []int
		for _, i := range e.unseen(c, past) {
			l := &c.Lines[i]
			if e.saidInHistory(l) || e.showsMemory(l, prefix, past) {
				continue
			}
			if in := r.resultWith(l.Text); in != 0 {
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

// withoutRepeats returns recalled memory without lines already in the prefix or history; nil = nothing
// left. Other content is unchanged.
func (r *request) withoutRepeats(e *epoch, c *section.Content, above []string) *section.Content {
	if c.Source != section.Recalled {
		return c
	}
	prefix := strings.Join(above, divider)
	var keep []int
	for i := range c.Lines {
		if l := &c.Lines[i]; !e.saidInHistory(l) && !e.showsMemory(l, prefix, nil) {
			keep = append(keep, i)
		}
	}
	if len(keep) == 0 {
		return nil
	}
	return c.Only(keep)
}

// resultWith returns the message among the unsent tool results that holds line verbatim: as a line, in
// quotes, or after a colon.
func (r *request) resultWith(line string) int64 {
	verbatim := "(?:\\A|[\n\"“`]|: |- )" + regexp.QuoteMeta(line) + "(?:\\z|[\n\"”`.])"
	past := r.turn.History
	for i := len(past) - 1; i >= 0 && past[i].Role == llm.Tool; i-- {
		if found, err := regexp.MatchString(verbatim, past[i].Text); err == nil && found { // an invalid UTF-8 line never matches
			return past[i].ID
		}
	}
	return 0
}

// renderSection renders row i.
func (r *request) renderSection(i int, c *section.Content, nonce string) *rendered {
	s := render(&r.rows[i], c, r.most[i], nonce)
	s.row = i
	if s.Tokens > r.granted[i] {
		s.State, s.Text, s.Tokens = Dropped, "", 0
	}
	if s.State == Failed {
		r.a.cfg.Log.Error("prompt section broke its fence", "section", s.ID, "err", s.Note)
	}
	return s
}

// nonce returns the conversation's nonce: the stored one, or a new one that is stable until stored.
func (r *request) nonce(old *epoch) string {
	if old != nil && old.conversation == r.conversation {
		return old.nonce
	}
	if r.room.nonce == "" || r.room.nonceFor != r.conversation {
		r.room.nonce, r.room.nonceFor = r.a.nonce(), r.conversation
	}
	return r.room.nonce
}

// composeHistory makes the messages from e.first on, each as it was sent before. It neutralizes
// foreign fences. It drops tails from before the epoch, which shows all their content.
func (r *request) composeHistory(d *draft) {
	e := d.epoch
	for d.leftOut < len(r.turn.History) && r.turn.History[d.leftOut].ID < e.first {
		d.leftOut++
	}
	past := r.turn.History[d.leftOut:]
	from := firstWithPictures(r.turn.History, e.since)
	d.history = make([]llm.Message, 0, len(past)+1) // and the tail of a preview
	for i := range past {
		m := &past[i]
		tail := m.Tail
		if m.ID < e.since || d.staleTail && m.ID == r.newest {
			tail = ""
		}
		seen := m.ID >= from
		sent, tokens := sendMessage(m, tail, e.nonce, r.a.cfg.Dir, seen)
		if m.Role == llm.User || len(d.turns) == 0 {
			d.turns = append(d.turns, turn{start: len(d.history)})
		}
		d.turns[len(d.turns)-1].tokens += tokens
		if seen && r.turn.Vision {
			for j := range m.Files {
				if f := &m.Files[j]; f.Picture != "" {
					d.turns[len(d.turns)-1].tokens += history.PictureTokens(f.W, f.H)
					d.pictures++
				}
			}
		}
		d.history = append(d.history, sent)
		if m.ID == r.newest {
			d.storedTail = tail
		}
	}
}

// sendMessage returns a message of the history as sent, with its pictures if seen. It also returns
// its size without them.
func sendMessage(m *history.Message, tail, nonce, dir string, seen bool) (sent llm.Message, tokens int) {
	said := *m
	said.Tail = tail
	if quotes := m.Quotes(); quotes != "" {
		said.Quoted = []history.Quoted{{Text: fenced(quotes, quotedSource, nonce)}}
	}
	if m.Role != llm.Assistant || strings.Contains(m.Text, nonce) {
		said.Text = neutralize(m.Text)
	}
	files, shown := renderFiles(m, nonce, dir, seen)
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

// tokens returns the sizes of prefix, history and tail.
func (d *draft) tokens() int {
	n := 0
	for _, s := range d.storedSections {
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

// tailTokens returns the overhead of a tail; 0 = no tail.
func (d *draft) tailTokens() int {
	if d.tail == "" {
		return 0
	}
	return tailFrame
}
