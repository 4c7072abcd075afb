package matrix

import (
	"context"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/text"
)

const (
	maxRoot  = 1500 // runes of a thread's root that are quoted
	rootTime = 10 * time.Second
)

// fetchRoot quotes the root of the thread that m begins for us. What cannot be read is said
// in its place: the model then knows that something is missing, and the person hears of it.
func (f *completer) fetchRoot(ctx context.Context, m *chat.Message) error {
	if m.Thread == "" {
		return nil
	}
	if m.Branch != "" { // else it is answered outside, where the thread is not known
		if begun, err := history.NewStore(f.cfg.DB).Exists(ctx, history.TimelineOf(m.Room, m.Branch)); err != nil || begun {
			return err
		}
	}
	l, err := f.link(ctx, m.Room, m.Thread)
	root := l.quote
	switch {
	case err != nil:
		root = chat.Quote{Text: "[it could not be read]"}
	case root.Text == "":
		root.Text = "[it was taken back, or has no words]"
	}
	root.ID, root.Why, root.Text = m.Thread, chat.QuoteThread, text.Clip(root.Text, maxRoot)
	m.Quotes = append([]chat.Quote{root}, m.Quotes...)
	return err
}
