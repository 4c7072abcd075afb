package media

import (
	"bytes"
	"strconv"
	"strings"
)

// pdfLexer reads values one after the other. It always gets on.
type pdfLexer struct {
	data []byte
	at   int
	read int // values
}

// pdfValues is how many values are read one after the other.
const pdfValues = 2_000_000

const pdfSpace = "\x00\t\n\f\r "

// more goes to the next value, and says whether there is one.
func (p *pdfLexer) more() bool {
	for p.at < len(p.data) {
		c := p.data[p.at]
		switch {
		case strings.IndexByte(pdfSpace, c) >= 0:
			p.at++
		case c == '%':
			if i := bytes.IndexAny(p.data[p.at:], "\r\n"); i >= 0 {
				p.at += i
			} else {
				p.at = len(p.data)
			}
		default:
			return true
		}
	}
	return false
}

func (p *pdfLexer) has(s string) bool { return bytes.HasPrefix(p.data[p.at:], []byte(s)) }

// value reads a value; nil at the end, or where it is nested too deep.
func (p *pdfLexer) value(depth int) any {
	if p.read++; !p.more() || depth > pdfDepth || p.read > pdfValues {
		p.at = len(p.data) // nothing sensible nests so, or goes on so long
		return nil
	}
	switch c := p.data[p.at]; {
	case p.has("<<"):
		p.at += 2
		return p.dictionary(depth)
	case c == '<':
		return p.hex()
	case c == '(':
		return p.text()
	case c == '/':
		p.at++
		return pdfName(p.word())
	case c == '[':
		p.at++
		list := pdfArray{}
		for p.more() && p.data[p.at] != ']' {
			list = append(list, p.value(depth+1))
		}
		p.at++
		return list
	case c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.':
		return p.numberOrRef()
	}
	if w := p.word(); w != "" {
		return pdfWord(w)
	}
	p.at++ // a bracket that nobody opened
	return nil
}

func (p *pdfLexer) dictionary(depth int) any {
	d := pdfDict{}
	for p.more() && !p.has(">>") {
		key, ok := p.value(depth + 1).(pdfName)
		if !ok {
			continue
		}
		if p.more() && !p.has(">>") {
			d[key] = p.value(depth + 1)
		}
	}
	p.at += 2
	return d
}

// word reads up to the next delimiter; #20 in it is a blank.
func (p *pdfLexer) word() string {
	begin := p.at
	for p.at < len(p.data) && strings.IndexByte(pdfSpace+"()<>[]{}/%", p.data[p.at]) < 0 {
		p.at++
	}
	w := string(p.data[begin:p.at])
	for i := strings.IndexByte(w, '#'); i >= 0 && i+2 < len(w); i = strings.IndexByte(w, '#') {
		n, err := strconv.ParseUint(w[i+1:i+3], 16, 8)
		if err != nil || n == '#' {
			break
		}
		w = w[:i] + string([]byte{byte(n)}) + w[i+3:]
	}
	return w
}

// numberOrRef reads a number, or the three words that refer to an object.
func (p *pdfLexer) numberOrRef() any {
	w := p.word()
	if w == "" {
		p.at++
		return nil
	}
	n, err := strconv.ParseFloat(w, 64)
	if err != nil {
		return pdfWord(w)
	}
	after := p.at
	if n >= 0 && n == float64(int(n)) && p.more() && p.data[p.at] >= '0' && p.data[p.at] <= '9' {
		if gen := p.word(); len(gen) <= 5 && p.more() && p.word() == "R" {
			return pdfRef(int(n))
		}
	}
	p.at = after
	return n
}

func (p *pdfLexer) hex() any {
	p.at++
	var digits []byte
	for p.at < len(p.data) && p.data[p.at] != '>' {
		if c := p.data[p.at]; strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 {
			digits = append(digits, c)
		}
		p.at++
	}
	p.at++
	if len(digits)%2 == 1 {
		digits = append(digits, '0')
	}
	var b strings.Builder
	for i := 0; i < len(digits); i += 2 {
		n, _ := strconv.ParseUint(string(digits[i:i+2]), 16, 8) // they are digits
		b.WriteByte(byte(n))
	}
	return pdfString(b.String())
}

// text reads a string in brackets, which may stand in it in pairs.
func (p *pdfLexer) text() any {
	var b strings.Builder
	open := 0
	for ; p.at < len(p.data); p.at++ {
		c := p.data[p.at]
		switch {
		case c == '(':
			if open++; open == 1 {
				continue
			}
		case c == ')':
			if open--; open == 0 {
				p.at++
				return pdfString(b.String())
			}
		case c == '\\' && p.at+1 < len(p.data):
			p.escape(&b)
			continue
		}
		b.WriteByte(c)
	}
	return pdfString(b.String())
}

// escape reads what follows a backslash, up to its last character.
func (p *pdfLexer) escape(b *strings.Builder) {
	p.at++
	c := p.data[p.at]
	if i := strings.IndexByte("nrtbf", c); i >= 0 {
		b.WriteByte("\n\r\t\b\f"[i])
		return
	}
	if c < '0' || c > '7' {
		if c != '\n' && c != '\r' {
			b.WriteByte(c)
		}
		return
	}
	n := 0
	for i := 0; i < 3 && p.at < len(p.data) && p.data[p.at] >= '0' && p.data[p.at] <= '7'; i++ {
		n = n*8 + int(p.data[p.at]-'0')
		p.at++
	}
	p.at--
	b.WriteByte(byte(n))
}
