package attachment

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/text"
)

const (
	quoteRunes  = 1_500 // of one quote
	quotesRunes = 8_000 // of all quotes of a message
	quoteShare  = 8     // all quotes together take at most an eighth of the window
	quoteTokens = 2     // characters per token, a low estimate
)

// Quotes renders quotes for the model, and returns those that fit: replied messages before
// overheard ones, the newest first. Lines of a quote begin with "> ", so that none can pass for the
// line that names its author. us is our own user id.
func (r Reader) Quotes(quotes []chat.Quote, us string, in *time.Location) (out []history.Quoted, shown []chat.Quote) {
	room := quotesRunes
	if window, _ := r.Models.Window(r.Role); window > 0 {
		room = min(room, window/quoteShare*quoteTokens)
	}
	each := min(quoteRunes, room/2)
	keep := make([]string, len(quotes))
	for _, heard := range []bool{false, true} {
		for i := len(quotes) - 1; i >= 0; i-- {
			if heard != (quotes[i].Why == chat.QuoteContext) {
				continue
			}
			text := quote(quotes[i], us, in, each)
			n := utf8.RuneCountInString(text)
			if n > room {
				break
			}
			keep[i] = text
			room -= n
		}
	}
	for i, text := range keep {
		if text != "" {
			out, shown = append(out, history.Quoted{Event: quotes[i].ID, Text: text}), append(shown, quotes[i])
		}
	}
	return out, shown
}

// lineEnds are line ends besides \n.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// quote renders one quote, with at most most characters of its text.
func quote(q chat.Quote, us string, in *time.Location, most int) string {
	who := "somebody"
	switch {
	case q.Sender != "" && q.Sender == us:
		who = "you"
	case q.Sender != "":
		who = history.OneLine(q.Sender, 255)
	}
	how := map[chat.QuoteKind]string{
		chat.QuoteReply: "replied to", chat.QuoteThread: "the beginning of the thread", chat.QuoteContext: "said in the room",
	}[q.Why]
	var b strings.Builder
	b.WriteString(who)
	if !q.At.IsZero() {
		b.WriteString(", " + q.At.In(in).Format("Mon 2006-01-02 15:04"))
	}
	if how != "" {
		b.WriteString(", " + how)
	}
	b.WriteString(":")
	for line := range strings.SplitSeq(strings.TrimSpace(text.Clip(lineEnds.Replace(q.Text), most)), "\n") {
		fmt.Fprintf(&b, "\n> %s", strings.TrimRightFunc(line, unicode.IsSpace))
	}
	return b.String()
}
