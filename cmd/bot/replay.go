package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	reverie "reverie"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/store"
	"reverie/internal/task"
)

// recorded is one line of a recorded conversation: a message as chat APIs write
// it. At is when it was written; without it, a minute after the one before.
type recorded struct {
	Role       llm.Role       `json:"role"`
	Content    string         `json:"content"`
	ToolCalls  []recordedCall `json:"tool_calls"`
	ToolCallID string         `json:"tool_call_id"`
	At         time.Time      `json:"at"`

	line int // of the file
}

// recordedCall is a tool call, its name and arguments beside the ID or below
// "function".
type recordedCall struct {
	ID string `json:"id"`
	recordedFunction
	Function recordedFunction `json:"function"`
}

type recordedFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// replayed is what became of one request.
type replayed struct {
	Request  int     `json:"request"`
	Line     int     `json:"line"` // of the file, of the message that it answers
	Tokens   int     `json:"tokens"`
	Repeated float64 `json:"repeated"` // share of the request before
	Epoch    string  `json:"new_epoch,omitempty"`
}

const replayRoom = "replay"

// replay assembles every request of a recorded conversation, over the data
// folder as it is and a database that is thrown away.
func (p promptCommand) replay(ctx context.Context, c console, b *bot) error {
	messages, err := readRecorded(p.Replay)
	if err != nil {
		return usageError{err}
	}
	dir, err := os.MkdirTemp("", "reverie-replay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(ctx, filepath.Join(dir, "bot.db"), reverie.Migrations)
	if err != nil {
		return err
	}
	defer db.Close()
	spare := *b
	spare.db, spare.history, spare.tasks = db, history.NewStore(db), task.NewStore(db, time.Now)
	spare.log = slog.New(slog.DiscardHandler) // nothing of this happened
	if spare.prompt, err = spare.openPrompt(); err != nil {
		return err
	}
	requests, err := spare.replay(ctx, messages)
	if err != nil {
		return err
	}
	if p.JSON {
		return printJSON(c.out, requests)
	}
	return printReplayed(c, requests)
}

func (b *bot) replay(ctx context.Context, messages []recorded) ([]replayed, error) {
	var out []replayed
	var last []llm.Message
	window, most := b.models.Window("chat")
	toolTokens := 0
	for _, s := range b.tools.Specs() {
		toolTokens += llm.EstimateTokens(s.Name) + llm.EstimateTokens(s.Description) + llm.EstimateTokens(string(s.Parameters))
	}
	for _, m := range messages {
		row := m.row(b)
		if err := b.history.Append(ctx, &row); err != nil {
			return nil, fmt.Errorf("line %d: %w", m.line, err)
		}
		if m.Role == llm.Assistant {
			continue
		}
		past, err := b.history.Load(ctx, replayRoom)
		if err != nil {
			return nil, err
		}
		made, err := b.prompt.Assemble(ctx, prompt.Turn{
			Room: replayRoom, User: b.cfg.owner(), Scopes: memory.Visible(replayRoom, b.cfg.owner(), true), Tools: b.tools.Names(),
			ToolTokens: toolTokens, Now: m.At, Window: window, MaxOutput: most, History: past,
		})
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", m.line, err)
		}
		if err := b.prompt.Commit(ctx, made); err != nil {
			return nil, err
		}
		r := replayed{Request: len(out) + 1, Line: m.line, Tokens: made.Report.Total, Repeated: prompt.Repeated(last, made.Messages())}
		if made.Report.Epoch.New {
			r.Epoch = made.Report.Epoch.Reason
		}
		out, last = append(out, r), made.Messages()
	}
	return out, nil
}

// row is the message as the history keeps it.
func (m recorded) row(b *bot) history.Message {
	row := history.Message{Room: replayRoom, Role: m.Role, Text: m.Content, CallID: m.ToolCallID, At: m.At}
	if m.Role == llm.User {
		row.Sender, row.Header = b.cfg.owner(), b.prompt.Header(m.At, b.cfg.owner(), false)
	}
	for _, call := range m.ToolCalls {
		f := call.recordedFunction
		if f.Name == "" {
			f = call.Function
		}
		row.Calls = append(row.Calls, llm.ToolCall{ID: call.ID, Name: f.Name, Arguments: f.Arguments})
	}
	return row
}

func printReplayed(c console, requests []replayed) error {
	w := tabwriter.NewWriter(c.out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "request\tline\ttokens\trepeats\t")
	sum, within := 0.0, 0
	for _, r := range requests {
		share := "–"
		if r.Epoch == "" {
			share = fmt.Sprintf("%.1f %%", 100*r.Repeated)
			sum, within = sum+r.Repeated, within+1
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\t %s\n", r.Request, r.Line, r.Tokens, share, epochNote(r.Epoch))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if within > 0 {
		fmt.Fprintf(c.out, "\nWithin an epoch, a request repeats %.1f %% of the one before, on average.\n", 100*sum/float64(within))
	}
	return nil
}

func epochNote(reason string) string {
	if reason == "" {
		return ""
	}
	return "new epoch: " + reason
}

// maxRecorded is the most bytes of one line of a recorded conversation.
const maxRecorded = 4 << 20

// readRecorded reads a conversation, one JSON message a line. System messages are
// passed over: the assembler makes its own.
func readRecorded(path string) ([]recorded, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []recorded
	at := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxRecorded)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var m recorded
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%s:%d: no JSON message (%w); write lines such as {\"role\": \"user\", \"content\": \"Hello\"}", path, n, err)
		}
		switch m.Role {
		case llm.User, llm.Assistant, llm.Tool:
		case llm.System:
			continue
		default:
			return nil, fmt.Errorf("%s:%d: role %q is none of user, assistant, tool, system", path, n, m.Role)
		}
		if m.At.IsZero() {
			m.At = at.Add(time.Minute)
		}
		at, m.line = m.At, n
		out = append(out, m)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(out) == 0 {
		return nil, errors.New(path + " has no messages")
	}
	return out, nil
}
