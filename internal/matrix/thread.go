package matrix

import (
	"context"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/text"
)

const (
	maxRoot  = 1500 // runes of a quoted thread root
	rootTime = 10 * time.Second
)

// quoteThreadRoot quotes the root of m's thread if m begins the bot's conversation there. If the root
// cannot be read, the quote says so: the model can tell the person.
func (f *completer) quoteThreadRoot(ctx context.Context, m *chat.Message) error {
	if m.Thread == "" {
		return nil
	}
	if m.Branch != "" { // else it is answered in the main timeline, which does not know the thread
		if begun, err := history.NewStore(f.cfg.DB).Exists(ctx, history.NewTimeline(m.Room, m.Branch)); err != nil || begun {
			return err
		}
	}
	l, err := f.fetchMessageToQuote(ctx, m.Room, m.Thread)
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
