package prompt

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"reverie/internal/lazyregexp"
)

// otherLineEnds are characters that a model may read as the end of a line.
var otherLineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// neutralize returns foreign text that cannot be mistaken for the program's: for a fence, a token of a
// chat template, or a message header such as
//
//	[Sat 2026-11-21 19:25 UTC, system event: scheduled task]
//
// It replaces the first bracket of a lookalike, or inserts a space after it. Other text is
// unchanged.
func neutralize(s string) string {
	s = otherLineEnds.Replace(s)
	if !strings.ContainsFunc(s, looksLikeOpeningBracket) {
		return s
	}
	f := fold(s)
	event := saysSystemEvent(f.text)
	var b strings.Builder
	done := 0
	for _, i := range f.open {
		at := f.at[i]
		instead := f.replacement(i, s[at] < utf8.RuneSelf, event)
		if instead == "" {
			continue
		}
		b.WriteString(s[done:at] + instead)
		_, size := utf8.DecodeRuneInString(s[at:])
		done = at + size
	}
	return b.String() + s[done:]
}

// looksLikeOpeningBracket reports whether a model may read r as an opening bracket.
func looksLikeOpeningBracket(r rune) bool {
	if r <= unicode.MaxASCII {
		return r == '[' || r == '<'
	}
	return r == '＜' || r == '﹤' || unicode.Is(unicode.Ps, r) && !strings.ContainsRune(otherOpening, r)
}

// otherOpening are quotation marks, parentheses and braces among opening punctuation.
const otherOpening = "„‚⹂〝「『｢﹁﹃（⁽₍❨❪﹙｛❴﹛⦃⦅｟"

// folded is a text as a careless reader sees it: small Latin letters, 0 for each digit, [ and ] for
// brackets, - for dashes; other letters are otherLetter.
type folded struct {
	text []byte
	at   []int // byte of text → offset of its character
	open []int // the opening brackets in text
}

const otherLetter = 0xff

func fold(s string) *folded {
	f := &folded{text: make([]byte, 0, len(s)), at: make([]int, 0, len(s))}
	for i, r := range s {
		c := foldRune(r)
		if c == 0 {
			continue
		}
		if looksLikeOpeningBracket(r) {
			f.open = append(f.open, len(f.text))
		}
		f.text, f.at = append(f.text, c), append(f.at, i)
	}
	return f
}

// foldRune returns what a reader takes r for; 0 = invisible.
func foldRune(r rune) byte {
	if r > unicode.MaxASCII {
		for _, r = range norm.NFKD.String(string(r)) {
			break
		}
	}
	switch {
	case r == '\n' || r == '<' || r == '[' || r == ']' || r == '|':
		return byte(r)
	case 'A' <= r && r <= 'Z':
		return byte(r) + 'a' - 'A'
	case '0' <= r && r <= '9':
		return '0'
	case r <= unicode.MaxASCII && !unicode.IsControl(r):
		return byte(r)
	case lookalikes[r] != 0:
		return lookalikes[r]
	case unicode.IsLetter(r):
		return otherLetter
	case unicode.Is(unicode.Nd, r):
		return '0'
	case unicode.Is(unicode.Pd, r) || r == '−':
		return '-'
	case unicode.IsSpace(r) || r == '▁': // the space of tokenizers
		return ' '
	case looksLikeOpeningBracket(r):
		return '['
	case unicode.Is(unicode.Pe, r):
		return ']'
	case unicode.In(r, unicode.Cf, unicode.Mn, unicode.Cc):
		return 0
	}
	return '.'
}

// lookalikes maps letters of other scripts to the Latin letters that they resemble.
var lookalikes = func() map[rune]byte {
	all := map[rune]byte{}
	for latin, others := range map[byte]string{
		'a': "аАɑαΑ", 'd': "ԁ", 'e': "еЕεΕ", 'f': "ғϝ", 'h': "һНΗ", 'i': "іІıιΙ", 'm': "мМΜ", 'n': "пոηΝ", 'o': "оОοΟօ",
		'r': "гᴦ", 's': "ѕЅꜱ", 't': "тТτΤ", 'u': "υսᴜ", 'v': "ѵνᴠ", 'w': "ԝѡω", 'y': "уУүγΥ",
	} {
		for _, r := range others {
			all[r] = latin
		}
	}
	return all
}()

// Continuations of a folded text after a bracket.
var (
	headerLike = lazyregexp.New(`^[ \t]*(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*[ \t,.]+0000[-/.]00[-/.]00`)
	noteLike   = lazyregexp.New(`^[ \t/\\]*note(?:[^a-z]|$)`)
	dataLike   = lazyregexp.New(`^[ \t/\\]*data(?:[^a-z_]|$)`)
	instLike   = lazyregexp.New(`^[ \t]*/?(?:inst|system_prompt|available_tools|tool_calls|tool_results|tool_content)[ \t]*\]`)
	tokenLike  = lazyregexp.New(`^<?[ \t]*/?[ \t]*` +
		`(?:(?:start|end)[_ ]of[_ ][a-z_]+|s|sys|bos|eos|unk|pad|think|tool_call|tool_response)[ \t]*>`)
)

// lookahead is how many bytes after a bracket are examined.
const lookahead = 160

// replacement returns the replacement for the i-th character, a bracket; "" = unchanged. ascii means
// that it is an ASCII bracket, event that the text names a system event.
func (f *folded) replacement(i int, ascii, event bool) string {
	rest := f.text[i+1 : min(len(f.text), i+1+lookahead)]
	inside := rest // after the bracket, or its line
	if end := bytes.IndexAny(rest, "]\n"); end >= 0 {
		inside = rest[:end]
	}
	angle := f.text[i] == '<'
	before := bytes.TrimRight(f.text[:i], " \t")
	beginsLine := len(before) == 0 || before[len(before)-1] == '\n'
	switch {
	case angle && len(rest) > 0 && rest[0] == '|':
		return "< "
	case (angle || !ascii) && (dataLike().Match(rest) || tokenLike().Match(rest)):
		return "‹"
	case angle:
		return ""
	case noteLike().Match(rest), instLike().Match(rest), event && saysSystemEvent(inside),
		// A header with an author continues with a comma.
		headerLike().Match(rest) && (beginsLine || bytes.IndexByte(inside, ',') >= 0):
		return "("
	}
	return ""
}

// saysSystemEvent reports whether a text contains "system event", with anything between the letters.
func saysSystemEvent(text []byte) bool {
	other := func(c byte) bool { return (c < 'a' || 'z' < c) && c != otherLetter }
	return bytes.Contains(slices.DeleteFunc(bytes.Clone(text), other), []byte("systemevent"))
}
