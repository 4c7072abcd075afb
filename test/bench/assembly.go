package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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

// size is the amount of data. The aim is a tenth of the milliseconds that a well-known assistant in
// Python takes for as much.
type size struct {
	memories, skills, tasks int
	aim                     float64
	backend                 string
}

var sizes = []size{
	{100, 20, 10, 0.053, "flat_file"},
	{1_000, 50, 50, 0.098, "flat_file"},
	{10_000, 200, 200, 0.336, "flat_file"},
}

// assembly measures the assembler with cached files, in a conversation of 20 messages.
func assembly(ctx context.Context, layout prompt.Layout, of size) ([]figure, error) {
	dir, err := os.MkdirTemp("", "reverie-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	a, turn, err := newAssembler(ctx, dir, layout, of)
	if err != nil {
		return nil, err
	}
	const n = 2_000
	took := make([]float64, n)
	var before, after runtime.MemStats
	for i := range 100 + n {
		if i == 50 {
			// The first assemblies wrote files. A file that just changed is read again each time,
			// but this measures the usual case, without edits.
			time.Sleep(3 * time.Second)
		}
		if i == 100 {
			runtime.ReadMemStats(&before)
		}
		began := time.Now()
		if _, err := a.Assemble(ctx, turn); err != nil {
			return nil, err
		}
		if i >= 100 {
			took[i-100] = float64(time.Since(began).Nanoseconds()) / 1e6
		}
	}
	runtime.ReadMemStats(&after)
	slices.Sort(took)
	name := func(s string) string {
		return fmt.Sprintf("assembly, %s, %d/%d/%d: %s", layout, of.memories, of.skills, of.tasks, s)
	}
	return []figure{
		{name("p50"), took[n/2], "ms", of.aim},
		{name("p99"), took[n*99/100], "ms", 0},
		{name("allocations"), float64(after.Mallocs-before.Mallocs) / n, "each", 0},
		{name("allocated"), float64(after.TotalAlloc-before.TotalAlloc) / n / 1e3, "kB", 0},
	}, nil
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
	a, err := prompt.New(prompt.Config{Layout: layout, DB: db, History: past, Sources: section.Sources{
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
