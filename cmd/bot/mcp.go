package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"

	"reverie/internal/memory"
	"reverie/internal/prompt/section"
	"reverie/internal/text"
	"reverie/internal/tool/mcp"
	"reverie/internal/tool/web"
)

// openMCP returns the configured MCP servers, or nil.
func openMCP(b *bot) *mcp.Servers {
	if len(b.cfg.MCP.Servers) == 0 {
		return nil
	}
	c := mcp.Config{Dir: b.cfg.Data, Hidden: b.hidden(), DB: b.db, Version: version, Log: b.log, Transport: web.Transport}
	for _, s := range b.cfg.MCP.Servers {
		environment := map[string]string{}
		for name, value := range s.Environment {
			environment[name] = string(value)
		}
		c.Servers = append(c.Servers, mcp.Server{Name: s.Name, URL: s.URL, Token: string(s.Token), Everyone: s.Everyone,
			Command: s.Command, Environment: environment, Folders: s.Folders, Network: s.Network})
	}
	return mcp.New(c)
}

func (b *bot) programs(ctx context.Context) ([]section.Program, error) {
	running, err := b.mcp.Running(ctx)
	if err != nil {
		return nil, err
	}
	var all []section.Program
	for _, r := range running {
		p := section.Program{Name: r.Name}
		for _, t := range r.Tools {
			p.Tools = append(p.Tools, section.ProgramTool{Name: r.Name + "." + t.Name, Summary: t.Description})
		}
		for _, t := range r.Prompts {
			p.Prompts = append(p.Prompts, t.Text)
		}
		all = append(all, p)
	}
	return all, nil
}

type mcpCommand struct {
	List  *mcpListCommand  `arg:"subcommand:list" help:"List the servers of the configuration, and whether the model may use them."`
	Check *mcpCheckCommand `arg:"subcommand:check" help:"Connect to a server and show what it offers."`
	Add   *mcpAddCommand   `arg:"subcommand:add" help:"Let the model use what a server offers, or say how to configure an address."`
	Serve *mcpServeCommand `arg:"subcommand:serve" help:"Offer one person's memory to another program, such as an editor."`
}

// mcpState is a server in a list.
type mcpState struct {
	Name    string   `json:"name"`
	URL     string   `json:"url,omitempty"`
	Command string   `json:"command,omitempty"`
	State   string   `json:"state"` // agreed, new, changed or unreachable
	Tools   []string `json:"tools"`
	Changes []string `json:"changes,omitempty"` // since the owner agreed
	Error   string   `json:"error,omitempty"`

	offer mcp.Offer
}

// inspect connects to a server and compares its offer with what was agreed to.
func inspect(ctx context.Context, b *bot, s mcp.Server) (mcpState, error) {
	m := mcpState{Name: s.Name, URL: s.URL, Command: s.Command, State: "agreed", Tools: []string{}}
	old, known, err := b.mcp.Agreed(ctx, s.Name)
	if err != nil {
		return m, err
	}
	if m.offer, err = b.mcp.Inspect(ctx, s.Name); err != nil {
		m.State, m.Error = "unreachable", err.Error()
		return m, nil
	}
	for _, t := range m.offer.Tools {
		m.Tools = append(m.Tools, t.Name)
	}
	if m.Changes = m.offer.Changes(old); !known {
		m.State, m.Changes = "new", nil
	} else if len(m.Changes) > 0 {
		m.State = "changed"
	}
	return m, nil
}

// reach inspects the server of that name. It fails if the configuration lacks it, or if it cannot be reached.
func reach(ctx context.Context, b *bot, name string) (mcpState, error) {
	var names []string
	for _, s := range b.mcp.Configured() {
		if s.Name == name {
			m, err := inspect(ctx, b, s)
			if err == nil && m.State == "unreachable" {
				err = fmt.Errorf("%s: %s", m.Name, m.Error)
			}
			return m, err
		}
		names = append(names, s.Name)
	}
	as, lines := newEntry(name)
	return mcpState{}, usageError{fmt.Errorf("the configuration has no MCP server %s; mcp.servers has: %s.\n"+
		"To connect it, write this into %s, then run `bot mcp add %s`:\n\nmcp:\n  servers:\n%s",
		name, cmp.Or(strings.Join(names, ", "), "none"), b.cfg.File, as, lines)}
}

// newEntry returns the lines of the configuration for a server that is given by its name, address or command.
func newEntry(given string) (name, lines string) {
	key, value, name := "url", "https://mcp.example.org/mcp", given
	if u, err := url.Parse(given); err == nil && u.Host != "" {
		value = given
		name, _, _ = strings.Cut(strings.TrimPrefix(u.Hostname(), "mcp."), ".")
	} else if strings.ContainsAny(given, " /") {
		key, value, name = "command", given, strings.ToLower(path.Base(strings.Fields(given)[0]))
	}
	return name, fmt.Sprintf("    - name: %s\n      %s: %q", name, key, value)
}

type mcpListCommand struct{}

// Run lists the servers. It connects to each.
func (mcpListCommand) Run(ctx context.Context, c console, b *bot) error {
	var all []mcpState
	for _, s := range b.mcp.Configured() {
		m, err := inspect(ctx, b, s)
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	return printList(c, all, "There are no MCP servers: mcp.servers in the configuration is empty.", func(m mcpState) string {
		return fmt.Sprintf("%s  %s  %s  tools: %d%s", m.Name, m.State, cmp.Or(m.URL, m.Command), len(m.Tools), m.remedy())
	})
}

// remedy says what is to be done about a server that the model may not use, on a line of its own.
func (m mcpState) remedy() string {
	switch m.State {
	case "unreachable":
		return "\n  " + m.Error
	case "changed":
		return fmt.Sprintf("\n  It is off: %s. `bot mcp add %s` shows it and asks you.", strings.Join(m.Changes, ", "), m.Name)
	case "new":
		return fmt.Sprintf("\n  It is off: `bot mcp add %s` shows what it offers and asks you.", m.Name)
	}
	return ""
}

type mcpCheckCommand struct {
	Name string `arg:"positional,required" help:"The server's name in the configuration."`
}

// Run shows what a server offers. It fails if the server cannot be reached.
func (k mcpCheckCommand) Run(ctx context.Context, c console, b *bot) error {
	m, err := reach(ctx, b, k.Name)
	if err != nil {
		return err
	}
	return c.print(struct {
		mcpState
		Offer mcp.Offer `json:"offer"`
	}{m, m.offer}, "%s%s\n", m.texts(), strings.TrimPrefix(m.remedy(), "\n"))
}

// texts returns all texts of a server that the model may read.
func (m mcpState) texts() string {
	var b strings.Builder
	for _, t := range m.offer.Tools {
		fmt.Fprintf(&b, "tool %s: %s\n  arguments: %s\n", t.Name, t.Description, t.Schema)
	}
	for _, p := range m.offer.Prompts {
		fmt.Fprintf(&b, "prompt %s: %s\n", p.Name, p.Text)
	}
	return b.String()
}

type mcpAddCommand struct {
	Name string `arg:"positional,required" help:"The server's name in the configuration."`
	Yes  bool   `arg:"-y" help:"Agree without being asked."`
}

// Run shows what a server offers, asks, and stores the answer. A running bot needs no restart.
func (a mcpAddCommand) Run(ctx context.Context, c console, b *bot) error {
	m, err := reach(ctx, b, a.Name)
	if err != nil {
		return err
	}
	if m.State == "agreed" {
		_, err := fmt.Fprintf(c.out, "You have agreed to this before; nothing has changed. Tools: %d.\n", len(m.Tools))
		return err
	}
	fmt.Fprint(c.out, m.texts())
	for _, line := range m.Changes {
		fmt.Fprintln(c.out, "Since you agreed:", line)
	}
	if !a.Yes && !confirm(c, "The model reads these texts as yours. Agree?") {
		return fmt.Errorf("not agreed; %s stays off", text.Clip(a.Name, 40))
	}
	if err := b.mcp.Agree(ctx, a.Name, m.offer); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "Agreed. The model may use %s from the next message on.\n", a.Name)
	return err
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
	find := func(ctx context.Context, q memory.Query) ([]memory.Hit, error) {
		return memory.Search(ctx, b.db, index.Search, q)
	}
	return mcp.Serve(ctx, mcp.Memory{Store: b.memory, Search: find, Person: person, Zone: b.cfg.Zone}, version, c.in, c.out)
}
