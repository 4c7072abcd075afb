package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"reverie/internal/memory"
	"reverie/internal/tool/mcp"
)

type mcpCommand struct {
	Serve *mcpServeCommand `arg:"subcommand:serve" help:"Offer one person's memory to another program, such as an editor."`
}

type mcpServeCommand struct {
	Person string `arg:"--for" placeholder:"@USER:SERVER" help:"Whose memory; the first owner's if left out."`
}

// Run serves until standard input ends. The bot may run at the same time.
func (s mcpServeCommand) Run(ctx context.Context, c console, b *bot) error {
	person := cmp.Or(s.Person, b.cfg.Owner())
	if err := memory.Private(person).Check(); err != nil || person != b.cfg.Owner() && !strings.HasPrefix(person, "@") {
		return usageError{fmt.Errorf("%q is no Matrix id: give --for @user:server", person)}
	}
	index, err := b.openIndex(ctx)
	if err != nil {
		return err
	}
	finder := b.backend().Find(index)
	find := func(ctx context.Context, q memory.Query) ([]memory.Hit, error) {
		return memory.Search(ctx, b.db, finder, q)
	}
	return mcp.Serve(ctx, mcp.Memory{Store: b.memory, Search: find, Person: person, Zone: b.cfg.Zone}, version, c.in, c.out)
}
