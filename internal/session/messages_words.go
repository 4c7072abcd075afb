package session

import (
	"context"
	"strings"

	"reverie/internal/i18n"
)

// For returns Text for a room, in the language that it has now.
func (m *Messages) For(ctx context.Context, room string) i18n.Say {
	language := m.Language(ctx, room)
	return func(key string, fill ...string) string { return m.In(language, key, fill...) }
}

// why is a reason in the language of the room. What some other program said is for the log,
// and people are told so.
func (s *Session) why(ctx context.Context, reason i18n.Text) string {
	if !reason.Known() {
		return s.text(ctx, "why.trouble")
	}
	return reason.In(s.cfg.Messages.For(ctx, s.room))
}

// sentences puts sentences one after the other, without those that are empty. Where the one
// before ends as in Chinese and Japanese no blank belongs between two.
func sentences(each ...string) string {
	all := ""
	for _, s := range each {
		if s != "" && all != "" && !strings.HasSuffix(all, "。") && !strings.HasSuffix(all, "？") && !strings.HasSuffix(all, "！") {
			all += " "
		}
		all += s
	}
	return all
}
