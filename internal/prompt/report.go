package prompt

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"reverie/internal/llm"
	"reverie/internal/prompt/section"
	"reverie/internal/store"
	"reverie/internal/trust"
	"reverie/internal/voice"
)

// Report says what a prompt consists of and why. All sizes are estimated tokens.
type Report struct {
	Layout       Layout                     `json:"layout"`
	Sections     []SectionReport            `json:"sections"`
	PrefixHash   string                     `json:"prefix_hash"`
	PrefixTokens int                        `json:"prefix_tokens"`
	History      HistoryReport              `json:"history"`
	TailTokens   int                        `json:"tail_tokens"`
	ToolTokens   int                        `json:"tool_tokens"`
	Total        int                        `json:"total_tokens"`
	Window       int                        `json:"window"` // in the model's tokens, like MaxOutput; 0 = unknown
	MaxOutput    int                        `json:"max_output"`
	TokenRatio   float64                    `json:"dense"` // the model's tokens for one estimated token
	Epoch        EpochReport                `json:"epoch"`
	Reused       float64                    `json:"reused"`             // share of these bytes that the room's last request began with
	Pictures     int                        `json:"pictures,omitempty"` // number shown to the model; their tokens are unknown
	Oversize     []Oversize                 `json:"oversize,omitempty"`
	Instructions *section.InstructionReport `json:"instructions,omitempty"` // nil = the tier is unknown
	Style        []voice.Choice             `json:"style,omitempty"`
	Problems     []store.Problem            `json:"problems"`
}

// Oversize is a part of the prompt that exceeds its cap, whatever the window.
type Oversize struct {
	Contributor string `json:"contributor"` // memories, tasks, skills …
	Size        int    `json:"size"`        // characters
	Max         int    `json:"max"`
}

// SectionReport says what became of one section.
type SectionReport struct {
	ID     string       `json:"id"`
	Zone   section.Zone `json:"zone"`
	Tokens int          `json:"tokens"`
	State  State        `json:"state"`
	Note   string       `json:"note,omitempty"`

	Integrity trust.Integrity `json:"integrity"` // of its text
}

// HistoryReport counts the messages of the conversation.
type HistoryReport struct {
	Messages int `json:"messages"`
	LeftOut  int `json:"left_out"` // older messages without room
	Tokens   int `json:"tokens"`
}

// EpochReport says when and why the prefix was last rebuilt.
type EpochReport struct {
	New     bool      `json:"new"` // it begins with this request
	Started time.Time `json:"started"`
	Reason  string    `json:"reason"`
}

// Room returns the window's room for a request, in estimated tokens; 0 = unknown.
func (r Report) Room() int {
	if r.Window <= 0 {
		return 0
	}
	return int(float64(r.Window-r.MaxOutput) / r.TokenRatio)
}

// Counted returns the request's size in the model's tokens.
func (r Report) Counted() int { return int(float64(r.Total) * r.TokenRatio) }

// String returns the report as a table for people.
func (r Report) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "zone\tsection\ttokens\tstate\tnote\n")
	zone := section.Prefix
	history := func() {
		note := ""
		if r.History.LeftOut > 0 {
			note = fmt.Sprintf("%d older messages left out", r.History.LeftOut)
		}
		fmt.Fprintf(w, "history\t%d messages\t%d\tkept\t%s\n", r.History.Messages, r.History.Tokens, note)
	}
	for _, s := range r.Sections {
		if s.Zone == section.Tail && zone == section.Prefix {
			history()
		}
		zone = s.Zone
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", s.Zone, s.ID, s.Tokens, s.State, s.Note)
	}
	if zone == section.Prefix {
		history()
	}
	fmt.Fprintf(w, "tools\t\t%d\t\t\n", r.ToolTokens)
	w.Flush()
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	b.Reset()
	b.WriteString(strings.Join(lines, "\n"))
	window := "window not known"
	if r.Window > 0 {
		window = fmt.Sprintf("window %d, %d of it for the answer", r.Window, r.MaxOutput)
	}
	if r.TokenRatio != 1 {
		window = fmt.Sprintf("%d as the model counts; ", r.Counted()) + window
	}
	fmt.Fprintf(&b, "\n\ntotal %d tokens; %s\nlayout %s; prefix %s; %.0f%% of it as in the last request\n",
		r.Total, window, r.Layout, r.PrefixHash, 100*r.Reused)
	if r.Instructions != nil {
		fmt.Fprintf(&b, "%s\n", r.Instructions)
	}
	since := "since " + r.Epoch.Started.Format("2006-01-02 15:04")
	if r.Epoch.New {
		since = "begins here"
	}
	fmt.Fprintf(&b, "epoch %s: %s\n", since, r.Epoch.Reason)
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "problem: %s\n", p)
	}
	return strings.TrimRight(b.String(), "\n")
}

// LogValue returns the report in one line.
func (r Report) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.Int("total", r.Total), slog.Int("prefix", r.PrefixTokens), slog.Int("history", r.History.Tokens),
		slog.Int("left_out", r.History.LeftOut), slog.Int("tail", r.TailTokens), slog.String("prefix_hash", r.PrefixHash),
		slog.String("reused", fmt.Sprintf("%.2f", r.Reused)),
	}
	if r.Epoch.New {
		attrs = append(attrs, slog.String("new_epoch", r.Epoch.Reason))
	}
	for _, s := range r.Sections {
		if s.State != Kept {
			attrs = append(attrs, slog.String(s.ID, string(s.State)+": "+s.Note))
		}
	}
	return slog.GroupValue(attrs...)
}

// sectionReports returns the reports of the sections of one zone.
func sectionReports(sections []*rendered, zone section.Zone) []SectionReport {
	var out []SectionReport
	for _, s := range sections {
		if s.Zone == zone {
			out = append(out, s.SectionReport)
		}
	}
	return out
}

// toPrompt makes a Prompt of a draft.
func (r *request) toPrompt(d *draft) Prompt {
	p := Prompt{Layout: r.layout, Prefix: d.prefix, History: d.history, Tail: d.tail}
	sent := p.Messages()
	p.Report = r.report(d, sent)
	p.Integrity = r.integrity(d)
	for _, s := range d.sections {
		if s.ID == "steering" {
			p.notes = strings.Split(strings.TrimPrefix(s.Text, "- "), "\n- ")
		}
	}
	if r.turn.Preview {
		return p
	}
	old := r.room.epoch
	p.commit = &commit{room: r.room, roomID: r.turn.Timeline, epoch: d.epoch, newEpoch: d.newEpoch, sent: sent}
	changed := d.newEpoch || len(d.epoch.shown) != len(old.shown) || d.epoch.since != old.since || r.beginsTurn
	if changed && r.layout != job { // a job does not affect the next request
		p.commit.save = append(p.commit.save, func(ctx context.Context, tx *sql.Tx) error {
			return saveEpoch(ctx, tx, r.turn.Timeline, d.epoch)
		})
	}
	if r.a.cfg.Reports > 0 && r.newest != 0 {
		p.commit.save = append(p.commit.save, func(ctx context.Context, tx *sql.Tx) error {
			return saveReport(ctx, tx, r.turn.Timeline, r.newest, r.turn.Now, p.Report, r.a.cfg.Reports)
		})
	}
	if tail := joinTail(d.storedTail, d.tail); tail != r.turn.History[len(r.turn.History)-1].Tail {
		p.commit.save = append(p.commit.save, func(ctx context.Context, tx *sql.Tx) error {
			return r.a.cfg.History.SetTail(ctx, tx, r.newest, tail, r.tailIntegrity(d))
		})
	}
	return p
}

// integrity returns the least integrity of the request d.
func (r *request) integrity(d *draft) trust.Integrity {
	least := r.tailIntegrity(d)
	for _, s := range d.storedSections {
		least = min(least, s.Integrity)
	}
	for _, s := range d.sections {
		if s.Text != "" {
			least = min(least, s.Integrity)
		}
	}
	for i := d.leftOut; i < len(r.turn.History); i++ {
		least = min(least, r.turn.History[i].Integrity())
	}
	return least
}

// tailIntegrity returns the least integrity of the newest message's tail.
func (r *request) tailIntegrity(d *draft) trust.Integrity {
	least := trust.Owner
	if n := len(r.turn.History); n > 0 && d.storedTail != "" {
		least = r.turn.History[n-1].TailIntegrity
	}
	for _, s := range d.sections {
		if s.Zone == section.Tail && s.Text != "" {
			least = min(least, s.Integrity)
		}
	}
	return least
}

func (r *request) report(d *draft, sent []llm.Message) Report {
	prefix := sha256.Sum256([]byte(d.prefix))
	rep := Report{
		Layout: r.layout, TokenRatio: r.turn.TokenRatio, PrefixHash: hex.EncodeToString(prefix[:6]), ToolTokens: r.turn.ToolTokens,
		Window: r.turn.Window, MaxOutput: r.turn.MaxOutput,
		Epoch:  EpochReport{New: d.newEpoch, Started: d.epoch.started.In(r.turn.Now.Location()), Reason: d.epoch.reason},
		Reused: reusedShare(r.room.last, sent), Problems: r.problems, Pictures: d.pictures, Instructions: r.instructions,
		History: HistoryReport{Messages: len(d.history), LeftOut: d.leftOut},
	}
	made := append(sectionReports(d.sections, section.Prefix), d.storedSections...)
	made = append(made, sectionReports(d.sections, section.Tail)...)
	for i := range r.rows {
		row, c, err := &r.rows[i], r.contents[i], r.errs[i]
		at := slices.IndexFunc(made, func(s SectionReport) bool { return s.ID == row.Name })
		switch {
		case at >= 0:
			if err != nil {
				made[at].Note = fmt.Sprintf("as rendered earlier; now: %v", err)
			}
			rep.Sections = append(rep.Sections, made[at])
		case err != nil:
			rep.Sections = append(rep.Sections, SectionReport{ID: row.Name, Zone: row.Zone, State: Failed, Note: err.Error()})
		}
		if c != nil {
			rep.Style = append(rep.Style, c.Choices...)
		}
		// Content in both prefix and tail is counted at its first place.
		if c != nil && c.Size > row.Max && row.Change != section.NewLines {
			rep.Oversize = append(rep.Oversize, Oversize{r.a.contributors[row.source].Name, c.Size, row.Max})
		}
	}
	for _, s := range rep.Sections {
		if s.Zone == section.Prefix {
			rep.PrefixTokens += s.Tokens
		} else {
			rep.TailTokens += s.Tokens
		}
	}
	rep.TailTokens += d.tailTokens()
	for _, t := range d.turns {
		rep.History.Tokens += t.tokens
	}
	rep.Total = messageFrame + rep.PrefixTokens + rep.History.Tokens + rep.TailTokens + rep.ToolTokens
	return rep
}

// reusedShare returns the share of now's bytes that last begins with.
func reusedShare(last, now []llm.Message) float64 {
	all := size(now...)
	if all == 0 {
		return 0
	}
	same := 0
	for i := range min(len(last), len(now)) {
		a, b := last[i], now[i]
		if a.Role != b.Role {
			break
		}
		if a.Content != b.Content || !slices.Equal(a.ToolCalls, b.ToolCalls) || !slices.Equal(a.Pictures, b.Pictures) {
			same += commonPrefix(a.Content, b.Content)
			break
		}
		same += size(b)
	}
	return float64(same) / float64(all)
}

func size(messages ...llm.Message) (n int) {
	for _, m := range messages {
		n += len(m.Content)
		for _, c := range m.ToolCalls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	return n
}

// commonPrefix returns the length of the longest common prefix.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
