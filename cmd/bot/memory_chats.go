package main

import (
	"context"
	"fmt"

	"reverie/internal/chatexport"
	"reverie/internal/memory"
	"reverie/internal/recall"
	"reverie/internal/trust"
)

// importedChats is what an import of conversations did.
type importedChats struct {
	Conversations int `json:"conversations"` // with messages of the person
	Messages      int `json:"messages"`
	Added         int `json:"added"` // messages that were not stored before
	Removed       int `json:"removed,omitempty"`
}

// runChats stores the conversations of an export of ChatGPT or Claude. The bot reads them for what is worth
// remembering while it runs.
func (m memoryImportCommand) runChats(ctx context.Context, c console, b *bot) error {
	scope := memory.Private(b.cfg.Owner())
	if m.Scope != "" {
		scope = memory.Scope(m.Scope)
	}
	person := scope.Person()
	if person == "" {
		return usageError{fmt.Errorf("conversations are private: give --scope private:@user:server, not %s", scope)}
	}
	var done importedChats
	label := trust.Label{Integrity: b.cfg.Level()(person), Readers: scope}
	err := chatexport.Each(m.File, func(talk chatexport.Conversation) error {
		if m.Remove {
			for _, said := range talk.Messages {
				if err := b.Redacted(ctx, recall.ImportedEvent(talk, said)); err != nil {
					return err
				}
				done.Removed++
			}
		} else {
			added, err := recall.Import(ctx, b.history, b.memory, talk, person, label)
			if done.Added += added; err != nil {
				return err
			}
		}
		done.Messages += len(talk.Messages)
		if done.Conversations++; done.Conversations%100 == 0 && !c.json {
			fmt.Fprintf(c.err, "%d conversations …\n", done.Conversations)
		}
		return ctx.Err()
	})
	if err != nil {
		return fmt.Errorf("import: %w; conversations done before it: %d", err, done.Conversations)
	}
	switch {
	case c.json:
		return printJSON(c.out, done)
	case m.Remove:
		fmt.Fprintf(c.out, "Messages removed, with what was learned from them: %d. "+
			"Importing the file again does not bring them back.\n", done.Removed)
	default:
		fmt.Fprintf(c.out, "Messages imported: %d of %d, from %d conversations. They can be found now.\n"+
			"The bot reads them for what is worth remembering while it runs, with up to %d requests a day (harvest.calls).\n"+
			"`bot dream --phase harvest` reads some at once; `bot memory import --remove %s` deletes them again.\n",
			done.Added, done.Messages, done.Conversations, b.cfg.Harvest.Calls, m.File)
	}
	return nil
}
