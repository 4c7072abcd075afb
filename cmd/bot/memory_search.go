package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"reverie/internal/chatexport"
	"reverie/internal/memory"
	"reverie/internal/memory/jsonl"
	"reverie/internal/search"
	"reverie/internal/store"
)

type memorySearchCommand struct {
	Query []string `arg:"positional" help:"What to look for, in your own words."`
	Scope []scope  `arg:"separate" placeholder:"SCOPE" help:"Only here: private:@user:server, room:!id:server or shared. May be repeated."`
	K     int      `arg:"-k" placeholder:"N" help:"The most hits to show (default 10)."`
	Turns bool     `help:"Search past messages too."`
	Past  bool     `help:"Also find inactive memories."`
	Batch string   `placeholder:"FILE" help:"A file of JSON lines with id, query and scope; each is answered by its id and refs."`
}

// Run prints the hits, best first. It changes nothing; the bot may run at the same time.
func (s memorySearchCommand) Run(ctx context.Context, c console, b *bot) error {
	text := strings.TrimSpace(strings.Join(s.Query, " "))
	switch {
	case s.K < 0:
		return usageError{errors.New("--k is a count: give a number from 1")}
	case text == "" && s.Batch == "":
		return usageError{errors.New("say what to look for: bot memory search where does Anna live")}
	case text != "" && s.Batch != "":
		return usageError{errors.New("give either a question or --batch, not both")}
	}
	index, err := b.openIndex(ctx)
	if err != nil {
		return err
	}
	scopes := store.Map(s.Scope, func(x scope) memory.Scope { return memory.Scope(x) })
	if len(scopes) == 0 {
		if scopes, err = index.Scopes(ctx); err != nil {
			return err
		}
	}
	q := memory.Query{Text: text, Scopes: scopes, Now: time.Now().In(b.cfg.Zone), K: s.K, Turns: s.Turns, Past: s.Past}
	find := func(q memory.Query) ([]memory.Hit, error) { return memory.Search(ctx, b.db, index.Search, q) }
	if s.Batch != "" {
		return s.batch(c, find, q)
	}
	hits, err := find(q)
	if err != nil {
		return err
	}
	found := store.Map(hits, func(h memory.Hit) foundHit { return foundHit{hitRef(h), h.Text(), h} })
	if len(found) == 0 && !c.json {
		_, err := fmt.Fprintln(c.out, "Nothing was found.")
		return err
	}
	return printList(c, found, "", func(f foundHit) string {
		at, who, id := f.Entry.ObservedAt, f.Entry.Subject, f.Entry.ID
		if f.Turn != nil {
			at, who, id = f.Turn.At, f.Turn.Sender, f.Turn.Event
		}
		if who != "" {
			who += ": "
		}
		return fmt.Sprintf("%s  %s%s  [%s]", at.In(b.cfg.Zone).Format(time.DateOnly), who, f.Text, id)
	})
}

// foundHit is a hit in --json, with the most used fields first.
type foundHit struct {
	Ref  string `json:"ref"`
	Text string `json:"text"`
	memory.Hit
}

// hitRef returns the hit's reference from an import, or else its ID. For a message it returns the
// event.
func hitRef(h memory.Hit) string {
	if h.Turn != nil {
		return h.Turn.Event
	}
	return cmp.Or(h.Entry.Ref, h.Entry.ID)
}

// batchQuestion is one line of a --batch file.
type batchQuestion struct {
	ID    json.RawMessage `json:"id"`
	Query string          `json:"query"`
	Scope memory.Scope    `json:"scope"`
}

func (s memorySearchCommand) batch(c console, find func(memory.Query) ([]memory.Hit, error), q memory.Query) error {
	questions, err := readQuestions(s.Batch)
	if err != nil {
		return err
	}
	encoder := jsonEncoder(c.out)
	for _, one := range questions {
		each := q
		each.Text = one.Query
		if one.Scope != "" {
			each.Scopes = []memory.Scope{one.Scope}
		}
		hits, err := find(each)
		if err != nil {
			return err
		}
		refs := store.Map(hits, hitRef)
		line := struct {
			ID   json.RawMessage `json:"id"`
			Refs []string        `json:"refs"`
		}{one.ID, refs}
		if err := encoder.Encode(line); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// readQuestions reads the whole file first, so that faults are reported before any answer.
func readQuestions(name string) ([]batchQuestion, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read questions: %w", err)
	}
	defer file.Close()
	var all []batchQuestion
	for lines := json.NewDecoder(file); ; {
		one := batchQuestion{ID: json.RawMessage(strconv.Itoa(len(all) + 1))}
		err := lines.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil && one.Scope != "" {
			err = one.Scope.Check()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: question %d is not a JSON object with id, query and scope: %w", name, len(all)+1, err)
		}
		all = append(all, one)
	}
}

type memoryImportCommand struct {
	File   string `arg:"positional,required" help:"JSON lines as export prints them, - for standard input, or a zip of ChatGPT or Claude."`
	Scope  scope  `placeholder:"SCOPE" help:"The scope of lines that name none (the first owner's private one)."`
	Remove bool   `help:"Delete the conversations of a zip again, with what was learned from them."`
}

// Run imports the file. The bot may run at the same time.
func (m memoryImportCommand) Run(ctx context.Context, c console, b *bot) error {
	if _, err := b.openIndex(ctx); err != nil {
		return err
	}
	if chatexport.Is(m.File) {
		return m.runChats(ctx, c, b)
	}
	if m.Remove {
		return usageError{fmt.Errorf("--remove is for the conversations of ChatGPT and Claude; `bot memory undo` reverts other imports")}
	}
	data, err := m.read(c.in)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	importer := jsonl.Importer{
		Store: b.memory, Scope: cmp.Or(memory.Scope(m.Scope), memory.Private(b.cfg.Owner())), Location: b.cfg.Zone, Now: time.Now,
	}
	begin := time.Now()
	result, err := importer.Import(ctx, m.File, data)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, result)
	}
	fmt.Fprintf(c.out, "Memories imported: %d, in %.1f s; already there: %d.\n", result.Added, time.Since(begin).Seconds(), result.Known)
	if b.vectors != nil && result.Added > 0 { // reading some thousands takes minutes, and words find them meanwhile
		fmt.Fprintln(c.err, "They can be found by their words now. "+
			"The bot indexes their meaning while it runs; `bot memory reindex` does it at once.")
	}
	if result.Batch != "" {
		fmt.Fprintf(c.out, "`bot memory undo %s` reverts the whole import.\n", result.Batch)
	}
	if result.Forgotten > 0 {
		fmt.Fprintf(c.out, "%d were skipped because they had been forgotten. `bot memory add TEXT` adds one again.\n", result.Forgotten)
	}
	return nil
}

func (m memoryImportCommand) read(in io.Reader) ([]byte, error) {
	if m.File == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(m.File)
}

type memoryReindexCommand struct{}

// Run rebuilds the index from the memories, which stay unchanged.
func (m memoryReindexCommand) Run(ctx context.Context, c console, b *bot) error {
	index, err := b.openIndex(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	documents, err := index.Rebuild(ctx)
	if err != nil {
		return err
	}
	return c.print(map[string]any{"texts": documents, "seconds": time.Since(begin).Seconds()},
		"The index was rebuilt: %d texts.\n", documents)
}

// commandPatience is how long a command waits for the vector of a query.
const commandPatience = 20 * time.Second

func (b *bot) openIndex(ctx context.Context) (_ *search.Hybrid, err error) {
	if b.vectors, err = b.openVectors(ctx, commandPatience); err != nil {
		return nil, err
	}
	return search.OpenHybrid(search.Open(b.db), b.vectors, b.openServer(b.vectors, commandPatience)), nil
}
