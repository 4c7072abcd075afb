package matrix

import (
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"maunium.net/go/mautrix/event"
)

// A spoiler is ||words|| that are shown when somebody asks to see them. "||" between words
// or letters, as in code, is none.

var kindSpoiler = ast.NewNodeKind("Spoiler")

type spoiler struct{ ast.BaseInline }

func (*spoiler) Kind() ast.NodeKind              { return kindSpoiler }
func (s *spoiler) Dump(source []byte, level int) { ast.DumpHelper(s, source, level, nil, nil) }

// spoilers finds them as the library finds what is emphasised: what is inside may be so, too.
type spoilers struct{}

func (spoilers) Trigger() []byte { return []byte{'|'} }

func (spoilers) IsDelimiter(b byte) bool                        { return b == '|' }
func (spoilers) CanOpenCloser(open, end *parser.Delimiter) bool { return open.Char == end.Char }
func (spoilers) OnMatch(int) ast.Node                           { return &spoiler{} }

func (p spoilers) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	d := parser.ScanDelimiter(line, before, 2, p)
	if d == nil || d.OriginalLength != 2 || before == '|' {
		return nil
	}
	after, _ := utf8.DecodeRune(line[2:])
	d.CanOpen = d.CanOpen && !wordRune(before)
	d.CanClose = d.CanClose && !wordRune(after)
	d.Segment = segment.WithStop(segment.Start + d.OriginalLength)
	block.Advance(d.OriginalLength)
	pc.PushDelimiter(d)
	return d
}

func wordRune(r rune) bool { return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

func renderSpoiler(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString("<span data-mx-spoiler>")
	} else {
		_, _ = w.WriteString("</span>")
	}
	return ast.WalkContinue, nil
}

// openSpoiler is where a spoiler begins.
var openSpoiler = regexp.MustCompile(`(?:^|[\s(>*_"'])\|\|[^\s|]`)

// unspoiled is a text that is still being written without the spoiler that it ends in: its
// words would be shown until its end comes.
func unspoiled(md string) string {
	for at := 0; ; {
		m := openSpoiler.FindStringIndex(md[at:])
		if m == nil {
			return md
		}
		begins := at + strings.Index(md[at+m[0]:], "||") + m[0]
		end := strings.Index(md[begins+2:], "||")
		if end < 0 {
			return md[:begins]
		}
		at = begins + 2 + end + 2
	}
}

var (
	spoilerSpan = regexp.MustCompile(`(?is)<span\s[^>]*data-mx-spoiler\b[^>]*>(.*?)</span>`)
	aTag        = regexp.MustCompile(`<[^>]*>`)
)

const mostSpoilers = 20 // of a message that are marked

// marked is the body of somebody's message with its spoilers marked as we write them: the
// model is to know what not everybody wants to read.
func marked(msg *event.MessageEventContent) string {
	body := msg.Body
	if msg.Format != event.FormatHTML || !strings.Contains(msg.FormattedBody, "data-mx-spoiler") {
		return body
	}
	done := 0
	for _, m := range spoilerSpan.FindAllStringSubmatch(msg.FormattedBody, mostSpoilers) {
		words := strings.TrimSpace(html.UnescapeString(aTag.ReplaceAllString(m[1], "")))
		at := strings.Index(body[done:], words)
		if words == "" || at < 0 {
			continue
		}
		at += done
		end := at + len(words)
		if strings.HasSuffix(body[:at], "||") && strings.HasPrefix(body[end:], "||") {
			done = end + 2
			continue
		}
		body = body[:at] + "||" + words + "||" + body[end:]
		done = end + 4
	}
	return body
}
