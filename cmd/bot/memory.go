package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reverie/internal/approval"
	"reverie/internal/delivery"
	dreamt "reverie/internal/dream/report"
	"reverie/internal/history"
	"reverie/internal/manner"
	"reverie/internal/media"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/recall"
	"reverie/internal/store"
	"reverie/internal/subsession"
	"reverie/internal/trust"
)

// forgetTexts removes texts from everything that quotes memories.
func (b *bot) forgetTexts(ctx context.Context, tx *sql.Tx, texts []string) (kept int, err error) {
	kept, err = history.NewStore(b.db).Forget(ctx, tx, texts)
	beginnings := slices.Clip(texts)
	for _, t := range texts { // chat lists show the beginning of long ones
		if r := []rune(t); len(r) > listedRunes {
			beginnings = append(beginnings, string(r[:listedRunes]))
		}
	}
	return kept, errors.Join(err, prompt.Forget(ctx, tx, texts), subsession.Forget(ctx, tx, texts),
		approval.Forget(ctx, tx, texts), manner.ForgetQuoting(ctx, tx, texts),
		delivery.Forget(ctx, tx, beginnings), dreamt.Forget(b.cfg.Data, texts))
}

// Redacted deletes a redacted message, its files, and what was learned from it.
func (b *bot) Redacted(ctx context.Context, event string) error {
	files, err := b.history.FilesOf(ctx, event)
	if err == nil {
		err = recall.Redact(ctx, b.history, b.memory, manner.Store{DB: b.db}, event)
	}
	if err != nil {
		return err
	}
	return b.removeUnusedFiles(ctx, files)
}

// fileUses lists the files in use; moving returns those being transferred.
func (b *bot) fileUses(moving func(context.Context) ([]string, error)) media.Uses {
	return media.Uses{InMessages: b.history.AllFiles, InConversations: b.history.NeededFiles, InTransit: moving}
}

// removeUnusedFiles deletes the files of a redacted message that no other message has. The
// message's row must be empty already.
func (b *bot) removeUnusedFiles(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	used, err := b.history.AllFiles(ctx)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if !slices.ContainsFunc(used, func(u string) bool { return media.Stem(u) == media.Stem(p) }) {
			if err := b.media.Remove(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// listedRunes is a length that chat lists of memories always show.
const listedRunes = 200

// operatorName is the actor of the command line.
const operatorName = "operator"

// operator has access to everything: who can run this program can read the database.
func operator() memory.Access {
	return memory.Access{Actor: operatorName, All: true, Owner: true, Integrity: trust.Owner}
}

type memoryCommand struct {
	List    *memoryListCommand    `arg:"subcommand:list" help:"List memories."`
	Add     *memoryAddCommand     `arg:"subcommand:add" help:"Remember a text."`
	Forget  *memoryForgetCommand  `arg:"subcommand:forget" help:"Forget for good: nothing of it is left in the data folder."`
	History *memoryHistoryCommand `arg:"subcommand:history" help:"Show what was done to a memory."`
	Undo    *memoryUndoCommand    `arg:"subcommand:undo" help:"Revert a change; the last one if none is given."`
	Export  *memoryExportCommand  `arg:"subcommand:export" help:"Print all memories as JSON lines; with --json, as an array."`
	Search  *memorySearchCommand  `arg:"subcommand:search" help:"Search the memories."`
	Import  *memoryImportCommand  `arg:"subcommand:import" help:"Import memories from a file of JSON lines."`
	Reindex *memoryReindexCommand `arg:"subcommand:reindex" help:"Rebuild the search index."`
}

// scope is a memory scope in a flag.
type scope memory.Scope

// UnmarshalText rejects invalid scopes, which would silently match nothing.
func (s *scope) UnmarshalText(text []byte) error {
	*s = scope(text)
	return memory.Scope(text).Check()
}

type scopeFlag struct {
	Scope scope `placeholder:"SCOPE" help:"Whose: private:@user:server, room:!id:server or shared."`
}

// access returns the access that the flag asks for; without it, everything.
func (f scopeFlag) access() memory.Access {
	a := operator()
	if f.Scope != "" {
		a.All, a.Scopes = false, []memory.Scope{memory.Scope(f.Scope)}
	}
	return a
}

// listStates returns the states to list; nil = active only.
func listStates(anyState bool) []memory.State {
	if anyState {
		return []memory.State{memory.Active, memory.Archived, memory.Merged, memory.Superseded}
	}
	return nil
}

type memoryListCommand struct {
	Words []string `arg:"positional" help:"Only those that contain all of these words."`
	scopeFlag
	Any bool `help:"Also inactive ones (archived, merged, superseded), and those that another one stands for."`
}

func (l memoryListCommand) Run(ctx context.Context, c console, b *bot) error {
	q := memory.Filter{Words: strings.Join(l.Words, " "), Members: l.Any, States: listStates(l.Any)}
	all, err := b.memory.List(ctx, l.access(), q)
	if err != nil {
		return err
	}
	none := "There are no memories yet."
	if q.Words != "" {
		none = "No memory contains these words."
	}
	return printList(c, all, none, func(e memory.Entry) string {
		mark := ""
		if e.State != memory.Active {
			mark = " (" + string(e.State) + ")"
		}
		return fmt.Sprintf("%s  %s  %s  %s%s", e.ID, e.ObservedAt.In(b.cfg.Zone).Format(time.DateOnly), e.Scope, e.Text, mark)
	})
}

type memoryAddCommand struct {
	Text []string `arg:"positional,required" help:"The fact, in one sentence."`
	scopeFlag
}

// Run adds an entry as if its person had said it.
func (a memoryAddCommand) Run(ctx context.Context, c console, b *bot) error {
	if a.Scope == "" {
		a.Scope = scope(memory.Private(b.cfg.Owner()))
	}
	e, added, err := b.memory.Add(ctx, memory.Entry{Scope: memory.Scope(a.Scope), Text: strings.Join(a.Text, " "),
		Source: memory.UserExplicit, Integrity: trust.Owner}, operatorName)
	if err != nil {
		return err
	}
	word := "Remembered"
	if !added {
		word = "Already known"
	}
	return c.print(map[string]any{"added": added, "entry": e}, "%s: %s  %s  %s\n", word, e.ID, e.Scope, e.Text)
}

type memoryForgetCommand struct {
	What []string `arg:"positional,required" help:"An id or the whole text; other words list the memories that contain them."`
	scopeFlag
	All bool `help:"Forget all memories that contain the words."`
}

func (f memoryForgetCommand) Run(ctx context.Context, c console, b *bot) error {
	found, exact, err := b.memory.Find(ctx, f.access(), strings.Join(f.What, " "))
	if err != nil {
		return err
	}
	if !exact && !f.All {
		for _, e := range found {
			fmt.Fprintf(c.err, "%s  %s  %s\n", e.ID, e.Scope, e.Text)
		}
		return usageError{fmt.Errorf("memories with these words: %d; nothing was forgotten: give one id, or add --all",
			len(found))}
	}
	ids := store.Map(found, func(e memory.Entry) string { return e.ID })
	done, err := b.memory.Forget(ctx, f.access(), ids...)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Forgotten for good, earlier wordings included: %d.\n", done.Entries)
	if done.Unindexed > 0 {
		text += fmt.Sprintf("%d earlier messages say it in other words; search no longer finds them.\n", done.Unindexed)
	}
	if done.StillQuoted > 0 {
		text += fmt.Sprintf("%d messages that people wrote in conversations still say it.\n", done.StillQuoted)
	}
	return c.print(map[string]any{"ids": ids, "entries": done.Entries, "kept": done.StillQuoted, "unfound": done.Unindexed}, "%s", text)
}

type memoryHistoryCommand struct {
	ID string `arg:"positional,required" help:"The memory's id, as list shows it."`
}

func (h memoryHistoryCommand) Run(ctx context.Context, c console, b *bot) error {
	all, err := b.memory.History(ctx, operator(), h.ID)
	if err != nil {
		return err
	}
	return printList(c, all, "", func(o memory.Op) string {
		return fmt.Sprintf("%s  batch %s  %s  %s  %s  %s", o.At.In(b.cfg.Zone).Format(time.DateTime), o.Batch, o.Actor, o.Op, o.Entry,
			describeOp(o, b.cfg.Zone))
	})
}

// describeOp describes an operation of the journal, and for an added entry its source.
func describeOp(o memory.Op, zone *time.Location) string {
	e := o.After
	if e == nil {
		return ""
	}
	text := string(e.Scope) + "  " + e.Text
	if o.Op != "add" {
		return text
	}
	text += fmt.Sprintf("\n    source %s, %s, integrity %s, said %s", e.Source, e.Kind, e.Integrity,
		e.ObservedAt.In(zone).Format("2006-01-02 15:04"))
	if e.Quote != "" {
		text += "\n    " + strconv.Quote(e.Quote)
	}
	return text
}

type memoryUndoCommand struct {
	Batch string `arg:"positional" help:"The batch, as history shows it."`
}

func (u memoryUndoCommand) Run(ctx context.Context, c console, b *bot) error {
	done, err := b.memory.Undo(ctx, operator(), u.Batch)
	if err != nil {
		return err
	}
	return c.print(done, "Undone: batch %s. %s\n`bot memory undo %s` reverts this.\n", done.Undid, strings.Join(done.Lines(), "; "),
		done.Batch)
}

type memoryExportCommand struct {
	scopeFlag
	Any bool `help:"Also inactive ones."`
}

// Run prints the entries in the format of import.
func (x memoryExportCommand) Run(ctx context.Context, c console, b *bot) error {
	all, err := b.memory.List(ctx, x.access(), memory.Filter{Members: true, States: listStates(x.Any)})
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, append([]memory.Entry{}, all...))
	}
	e := jsonEncoder(c.out)
	for i := range all {
		if err := e.Encode(&all[i]); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}
