package main

import (
	"context"
	"fmt"
	"time"

	reverie "reverie"
	"reverie/cmd/bot/config"
	"reverie/internal/approval"
	"reverie/internal/chat"
	"reverie/internal/i18n"
	"reverie/internal/matrix/room"
	"reverie/internal/questions"
	"reverie/internal/web"
)

// openInspector opens the socket of the inspector; nil = it is off.
func openInspector(ctx context.Context, c config.Listener) (*web.Server, error) {
	if c.Listen == "" {
		return nil, nil
	}
	return web.Listen(ctx, web.Address{Listen: c.Listen, Hosts: c.Hosts}, time.Now)
}

// inspectorConfig returns what the inspector shows of the sessions s. deliver may be nil, see web.Config.
func (s *service) inspectorConfig(deliver func(context.Context, chat.Inbound) error) web.Config {
	b := s.bot
	return web.Config{
		Name: b.cfg.Name, Zone: b.cfg.Zone, DB: b.db, Log: b.log,
		Memory: b.memory, Questions: questions.Store{DB: b.db, Memory: b.memory}, Tasks: b.tasks, History: b.history,
		Approvals: approval.Store{DB: b.db, Messages: b.messages, Now: time.Now}, Usage: b.usage, Models: b.models, Docs: reverie.Docs,
		OIDC: web.OIDC{Issuer: b.cfg.Web.OIDC.Issuer, ClientID: b.cfg.Web.OIDC.ClientID, ClientSecret: string(b.cfg.Web.OIDC.ClientSecret),
			Users: b.cfg.Web.OIDC.Users},
		Level: b.cfg.Level(), Preview: s.Preview, Vote: deliver,
		Rooms: func(ctx context.Context, person string) ([]string, error) {
			if b.cfg.Matrix == nil {
				return nil, nil
			}
			return room.RoomsOf(ctx, b.db, person)
		},
		Status: func(ctx context.Context) []string {
			lines := s.statusLines(ctx, i18n.English)
			if last, err := b.nightly.Status(ctx, i18n.English); err == nil {
				lines = append(lines, last)
			}
			return lines
		},
		Doctor: func(ctx context.Context) (all []web.Finding) {
			for _, f := range b.doctor().Examine(ctx) {
				all = append(all, web.Finding{Area: f.Area, State: string(f.State), What: f.What, Remedy: f.Remedy})
			}
			return all
		},
	}
}

// storedReports is how many requests the inspector can tell about; each takes about 3 kB.
const storedReports = 2000

type webCommand struct{}

// Run serves the inspector until a signal ends it, and prints a link. The bot may run at the same time: approvals are
// answered in the room.
func (webCommand) Run(ctx context.Context, c console, b *bot) error {
	server, err := web.Listen(ctx, web.Address{Listen: "127.0.0.1:0"}, time.Now)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "Open this within five minutes; it works once:\n%s\nCtrl-C ends it.\n", server.Link(b.cfg.Owner()))
	return server.Run(ctx, b.connect(connection{}).inspectorConfig(nil))
}
