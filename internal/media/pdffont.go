package media

import (
	"strconv"
	"strings"
	"unicode/utf16"
)

// pdfFont says which characters the codes of a font are.
type pdfFont struct {
	wide bool           // two bytes a code
	to   map[int]string // nil = as in Windows' Latin alphabet
}

func (f *pdfFile) font(v any) *pdfFont {
	ref, isRef := v.(pdfRef)
	if known := f.fonts[ref]; isRef && known != nil {
		return known
	}
	d := f.dict(v)
	font := &pdfFont{wide: d["Subtype"] == pdfName("Type0")}
	if to, ok := d["ToUnicode"].(pdfRef); ok {
		font.to = cmap(f.stream(int(to), f.dict(to)))
	} else if enc := f.dict(d["Encoding"]); enc != nil {
		differences, _ := f.get(enc["Differences"]).(pdfArray)
		font.to = named(differences)
	}
	if isRef {
		f.fonts[ref] = font
	}
	return font
}

// named reads codes that are named one by one; of names only those that tell their
// character are known.
func named(differences pdfArray) map[int]string {
	to, code := map[int]string{}, 0
	for _, v := range differences {
		switch v := v.(type) {
		case float64:
			code = int(v)
		case pdfName:
			if n, err := strconv.ParseUint(strings.TrimPrefix(string(v), "uni"), 16, 16); err == nil && len(v) == 7 {
				to[code] = string(rune(n))
			} else if known := glyphs[v]; known != "" {
				to[code] = known
			} else if len(v) == 1 {
				to[code] = string(v)
			}
			code++
		}
	}
	return to
}

// glyphs are the names of characters that texts are full of.
var glyphs = map[pdfName]string{
	"space": " ", "period": ".", "comma": ",", "hyphen": "-", "colon": ":", "semicolon": ";", "parenleft": "(", "parenright": ")", "slash": "/", "quotesingle": "'",
	"quoteright": "’", "quoteleft": "‘", "quotedblleft": "“", "quotedblright": "”", "quotedblbase": "„", "endash": "–", "emdash": "—", "bullet": "•", "exclam": "!", "question": "?",
	"zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "percent": "%", "plus": "+", "equal": "=", "at": "@",
	"fi": "fi", "fl": "fl", "ff": "ff", "ffi": "ffi", "ffl": "ffl", "adieresis": "ä", "odieresis": "ö", "udieresis": "ü", "Adieresis": "Ä", "Odieresis": "Ö", "Udieresis": "Ü", "germandbls": "ß",
	"eacute": "é", "egrave": "è", "ecircumflex": "ê", "agrave": "à", "aacute": "á", "iacute": "í", "oacute": "ó", "uacute": "ú", "ntilde": "ñ", "ccedilla": "ç", "Euro": "€",
}

func (t *pdfFont) decode(s string) string {
	var b strings.Builder
	step := 1
	if t != nil && t.wide {
		step = 2
	}
	for i := 0; i+step <= len(s); i += step {
		code := int(s[i])
		if step == 2 {
			code = code<<8 | int(s[i+1])
		}
		known := ""
		if t != nil {
			known = t.to[code]
		}
		switch {
		case known != "":
			b.WriteString(known)
		case step == 1 && code >= 0x80 && code < 0xa0:
			b.WriteString(latin[code-0x80])
		case step == 1:
			b.WriteRune(rune(code))
		}
	}
	return b.String()
}

// latin is what Windows' Latin alphabet has from 128 to 159.
var latin = strings.Split("€||‚|ƒ|„|…|†|‡|ˆ|‰|Š|‹|Œ||Ž|||‘|’|“|”|•|–|—|˜|™|š|›|œ||ž|Ÿ", "|")

// cmap reads which characters codes are.
func cmap(body []byte) map[int]string {
	to := map[int]string{}
	p := pdfLexer{data: body}
	var args []any
	left := 1 << 18 // codes, also those that are said twice
	for p.more() && left > 0 {
		v := p.value(0)
		op, ok := v.(pdfWord)
		if !ok {
			if args = append(args, v); len(args) > 1000 {
				args = args[1:]
			}
			continue
		}
		switch op {
		case "endbfchar":
			for i := 0; i+1 < len(args); i += 2 {
				if chars, ok := args[i+1].(pdfString); ok {
					to[codeOf(args[i])] = utf16Text(string(chars), 0)
				}
			}
		case "endbfrange":
			for i := 0; i+2 < len(args); i += 3 {
				from, until := codeOf(args[i]), codeOf(args[i+1])
				list, _ := args[i+2].(pdfArray)
				chars, _ := args[i+2].(pdfString)
				for c := from; c <= until && c >= 0 && left > 0; c++ {
					left--
					if list == nil {
						to[c] = utf16Text(string(chars), c-from)
					} else if c-from < len(list) {
						one, _ := list[c-from].(pdfString)
						to[c] = utf16Text(string(one), 0)
					}
				}
			}
		}
		args = args[:0]
	}
	return to
}

func codeOf(v any) int {
	s, ok := v.(pdfString)
	if !ok || len(s) > 2 {
		return -1
	}
	n := 0
	for i := range len(s) {
		n = n<<8 | int(s[i])
	}
	return n
}

// utf16Text is a text in UTF-16, its last unit so many further on.
func utf16Text(s string, further int) string {
	var units []uint16
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	if n := len(units); n > 0 {
		units[n-1] += uint16(further)
	}
	return string(utf16.Decode(units))
}
