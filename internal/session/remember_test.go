package session

import "context"

// remember keeps who talks in the room, for prompts built while nobody does.
func (m *Manager) remember(ctx context.Context, in Inbound) error {
	return m.rememberIn(ctx, m.cfg.DB, in)
}
