package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/prompt/section"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/task"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// size is the amount of data.
type size struct {
	memories, skills, tasks int
	limit                   float64
	backend                 string
}

var sizes = []size{
	{100, 20, 10, 1, "flat_file"},
	{1_000, 50, 50, 2, "flat_file"},
	{10_000, 200, 200, 8, "flat_file"},
}

const plainPrompt = "reading and joining all files of memories and skills"

// assemblies measures the assembler in a conversation of 20 messages. With flat_file, all memories are in
// the prompt.
func (b *bench) assemblies(ctx context.Context, _ string) error {
	for _, layout := range []prompt.Layout{prompt.Stable, prompt.Classic} {
		for _, of := range sizes {
			name := fmt.Sprintf("assembly, %s, %d/%d/%d", layout, of.memories, of.skills, of.tasks)
			if err := b.assemble(ctx, name, layout, of, func(int) string { return "" }); err != nil {
				return err
			}
		}
	}
	return nil
}

// turns measures the assembler with the two searches that each message needs, each with new words.
func (b *bench) turns(ctx context.Context, _ string) error {
	asks := []string{"Do I like number %d more than number %d?", "What did I say about number %d by the sea?", "And fact %d, was it on a long walk?", "Tell me about fact %d, please, and number %d."}
	of := size{memories: 10_000, skills: 200, tasks: 200, backend: "fts5", limit: 3}
	return b.assemble(ctx, "assembly with a search for the message, fts5, 10000/200/200", prompt.Stable, of, func(i int) string {
		text := asks[i%len(asks)]
		return fmt.Sprintf(text, []any{7 * (i * 37 % 10_000), 3 * (i * 37 % 10_000)}[:strings.Count(text, "%d")]...)
	})
}

// assemble measures an assembler of a size. ask returns the newest message's text; "" = always the same.
func (b *bench) assemble(ctx context.Context, name string, layout prompt.Layout, of size, ask func(i int) string) error {
	return inFolder(func(dir string) error {
		a, turn, err := newAssembler(ctx, dir, layout, of)
		if err != nil {
			return err
		}
		newest := &turn.History[len(turn.History)-1]
		var before, after runtime.MemStats
		do := func(i int) error {
			if text := ask(i); text != "" {
				newest.Text = text
			}
			p, err := a.Assemble(ctx, turn)
			if err == nil && ask(i) != "" && p.Tail == "" {
				err = errors.New("the message brings nothing to mind")
			}
			return err
		}
		// The first assemblies wrote files. A file that just changed is read again each time, but this
		// measures the usual case, without edits.
		const n = 300
		if _, _, err := beside(20, do, nil); err != nil {
			return err
		}
		time.Sleep(3 * time.Second)
		if _, _, err := beside(20, do, nil); err != nil {
			return err
		}
		ours, theirs, err := beside(n, do, func(int) error { return joinFiles(dir) })
		if err != nil {
			return err
		}
		b.put(percentiles(name, of.limit, 0, ours, plainPrompt, theirs)...)
		runtime.ReadMemStats(&before)
		_, _, err = beside(50, do, nil)
		runtime.ReadMemStats(&after)
		b.put(figure{What: name + ", allocated", Value: float64(after.TotalAlloc-before.TotalAlloc) / 50 / 1e3, Unit: "kB"})
		return err
	})
}

// joinFiles is the plain way to make a prompt.
func joinFiles(dir string) error {
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || d.IsDir() || ext != ".md" && ext != ".txt" {
			return err
		}
		content, err := os.ReadFile(path)
		all.Write(content)
		return err
	})
	if err == nil && all.Len() == 0 {
		err = errors.New("there are no files")
	}
	return err
}

func newAssembler(ctx context.Context, dir string, layout prompt.Layout, of size) (*prompt.Assembler, prompt.Turn, error) {
	fail := func(err error) (*prompt.Assembler, prompt.Turn, error) { return nil, prompt.Turn{}, err }
	const owner = "@you:localhost"
	if _, err := store.WriteDefaults(reverie.Data, dir); err != nil {
		return fail(err)
	}
	var lines bytes.Buffer
	for i := range of.memories {
		fmt.Fprintf(&lines, "Fact %d: the person likes number %d more than number %d, and said so on a long walk by the sea.\n", i, i*7, i*3)
	}
	if err := store.WriteFile(filepath.Join(dir, "MEMORIES.txt"), lines.Bytes()); err != nil {
		return fail(err)
	}
	db, err := store.Open(ctx, filepath.Join(dir, "bot.db"), reverie.Migrations)
	if err != nil {
		return fail(err)
	}
	mem, err := memory.Open(ctx, memory.Config{DB: db, Dir: dir, Owner: owner, Backend: of.backend})
	if err != nil {
		return fail(err)
	}
	tasks, skills, past := task.NewStore(db, task.Config{}), skill.Open(filepath.Join(dir, "skills"), nil), history.NewStore(db)
	for i := range of.tasks {
		if _, err := tasks.Add(ctx, task.Task{Room: "!r", User: owner, Label: trust.Label{Integrity: trust.User, Readers: trust.PersonReaders(owner)}, Content: fmt.Sprintf("Do thing number %d", i), Priority: i%10 + 1}); err != nil {
			return fail(err)
		}
	}
	for i := range of.skills {
		if err := store.WriteFile(filepath.Join(dir, "skills", fmt.Sprintf("skill-%03d.md", i)), fmt.Appendf(nil, "How to do a thing of kind %d\n\nStep by step.\n", i)); err != nil {
			return fail(err)
		}
	}
	tools := tool.New(tool.Config{Memory: mem, Tasks: tasks, Goals: goal.NewStore(db, time.Now), Skills: skills, Dir: dir, Location: time.UTC})
	a, err := prompt.New(prompt.Config{Layout: layout, DB: db, History: past, Sources: &section.Sources{
		Dir: dir, Defaults: reverie.Data, Name: "Reverie", SeedLanguage: "en",
		Memory: mem, Tasks: tasks, Skills: skills, KnownTools: tools.Names()}})
	if err != nil {
		return fail(err)
	}
	turn := prompt.Turn{Window: 32768, MaxOutput: 2048, Turn: section.Turn{Room: "!r", User: owner,
		Scopes: memory.Strict.Visible("!r", owner, true), Tools: tools.Names(), Now: time.Now(), Mode: "assistant", Tier: 4}}
	for i := range 20 {
		m := history.Message{Room: "!r", Role: llm.User, Sender: owner, Text: fmt.Sprintf("Message %d of a conversation.", i), At: time.Now()}
		if i%2 == 1 {
			m.Role, m.Sender = llm.Assistant, ""
		}
		if err := past.Append(ctx, &m); err != nil {
			return fail(err)
		}
		if turn.History, err = past.Load(ctx, "!r"); err != nil {
			return fail(err)
		}
		if i%2 == 1 {
			continue
		}
		p, err := a.Assemble(ctx, turn) // the sent prompt, so that the epoch is real
		if err != nil {
			return fail(err)
		}
		if err := a.Commit(ctx, p); err != nil {
			return fail(err)
		}
	}
	turn.History = turn.History[:len(turn.History)-1] // the newest message is a person's
	return a, turn, nil
}
