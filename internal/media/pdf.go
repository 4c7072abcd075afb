package media

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The text of PDF files. Only what text needs is read, and by means that no file can
// turn against us: nothing is believed about places and lengths, nesting, time and what
// is unpacked are bounded, and what cannot be read is left out.

const (
	pdfTime     = 20 * time.Second
	pdfUnpacked = 48 << 20 // bytes that all streams of a file may have, unpacked
	pdfDepth    = 40       // how deep values, pages and forms may nest
	pdfObjects  = 100_000  // a document of a thousand pages has fewer
)

var (
	errLocked = errors.New("the PDF file is locked with a password")
	errSpent  = errors.New("the PDF file unpacks to more than is read here")
	// errObjects means that a file has too many objects.
	errObjects = fmt.Errorf("the PDF file has more than %d objects, which are not read here: send a part of it", pdfObjects)
)

// Values of a PDF file: nil, float64, pdfName, pdfString, pdfArray, pdfDict, pdfRef, pdfWord.
type (
	pdfName   string
	pdfString string
	pdfArray  []any
	pdfDict   map[pdfName]any
	pdfRef    int    // the number of an object
	pdfWord   string // an operator, or a word such as obj
)

type pdfObject struct {
	at   int // where its value begins in data
	data []byte
}

type pdfFile struct {
	ctx     context.Context
	objects map[int]pdfObject
	left    int // bytes that may still be unpacked
	fonts   map[pdfRef]*pdfFont
	out     strings.Builder
	x, y    float64 // where the line stands that was written last
}

var pdfBegins = regexp.MustCompile(`(\d{1,9})[ \t\r\n]+\d{1,5}[ \t\r\n]+obj\b`)

// pdfText is the text of a PDF file.
func pdfText(ctx context.Context, data []byte) (text string, err error) {
	f := &pdfFile{ctx: ctx, objects: map[int]pdfObject{}, left: pdfUnpacked, fonts: map[pdfRef]*pdfFont{}}
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(error); ok && (errors.Is(e, errSpent) || errors.Is(e, errObjects) || errors.Is(e, ctx.Err()) && ctx.Err() != nil) {
				err = e
			} else {
				err = errPDF
			}
		}
		if f.out.Len() > 0 && !errors.Is(err, errLocked) { // what was read before counts
			text, err = f.out.String(), nil
		}
	}()
	begins := pdfBegins.FindAllSubmatchIndex(data, pdfObjects+1)
	if len(begins) > pdfObjects {
		return "", errObjects
	}
	for _, m := range begins {
		n, _ := strconv.Atoi(string(data[m[2]:m[3]])) // nine digits are a number
		f.objects[n] = pdfObject{m[1], data}
	}
	if len(f.objects) == 0 {
		return "", errPDF
	}
	for _, n := range f.numbers() {
		d, _ := f.object(n).(pdfDict)
		switch d["Type"] {
		case pdfName("ObjStm"):
			f.openStream(n, d)
		case pdfName("XRef"):
			if d["Encrypt"] != nil {
				return "", errLocked
			}
		}
	}
	if at := bytes.LastIndex(data, []byte("trailer")); at >= 0 {
		p := pdfLexer{data: data, at: at + len("trailer")}
		if d, ok := p.value(0).(pdfDict); ok && d["Encrypt"] != nil {
			return "", errLocked
		}
	}
	for _, page := range f.pages() {
		f.page(page)
		if f.out.Len() > maxText {
			break
		}
	}
	return f.out.String(), nil
}

func (f *pdfFile) numbers() []int {
	all := make([]int, 0, len(f.objects))
	for n := range f.objects {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// object reads the object n; nil if there is none.
func (f *pdfFile) object(n int) any {
	if err := f.ctx.Err(); err != nil {
		panic(err)
	}
	o, ok := f.objects[n]
	if !ok {
		return nil
	}
	p := pdfLexer{data: o.data, at: o.at}
	return p.value(0)
}

// get is v, or the object that it refers to.
func (f *pdfFile) get(v any) any {
	for range 8 {
		ref, ok := v.(pdfRef)
		if !ok {
			return v
		}
		v = f.object(int(ref))
	}
	return nil
}

func (f *pdfFile) dict(v any) pdfDict { d, _ := f.get(v).(pdfDict); return d }

func (f *pdfFile) number(v any) int { n, _ := f.get(v).(float64); return int(n) }

// stream unpacks the stream of the object n, whose dictionary is d.
func (f *pdfFile) stream(n int, d pdfDict) []byte {
	o, ok := f.objects[n]
	if !ok || d == nil {
		return nil
	}
	p := pdfLexer{data: o.data, at: o.at}
	p.value(0)
	if p.value(0) != pdfWord("stream") {
		return nil
	}
	begin := p.at
	if begin < len(o.data) && o.data[begin] == '\r' {
		begin++
	}
	if begin < len(o.data) && o.data[begin] == '\n' {
		begin++
	}
	end := begin + max(f.number(d["Length"]), 0)
	if end <= begin || end > len(o.data) || !bytes.HasPrefix(bytes.TrimLeft(o.data[end:], "\r\n "), []byte("endstream")) {
		i := bytes.Index(o.data[begin:], []byte("endstream"))
		if i < 0 {
			return nil
		}
		end = begin + i
	}
	body := o.data[begin:end]
	filters, _ := f.get(d["Filter"]).(pdfArray)
	if name, ok := f.get(d["Filter"]).(pdfName); ok {
		filters = pdfArray{name}
	}
	for _, filter := range filters {
		if f.get(filter) != pdfName("FlateDecode") || len(filters) > 1 {
			return nil // pictures, as a rule
		}
		body = f.inflate(body)
	}
	return body
}

func (f *pdfFile) inflate(packed []byte) []byte {
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(z, int64(f.left)+1)) // of a broken one, what there is
	if f.left -= len(body); f.left < 0 {
		panic(errSpent)
	}
	return body
}

// openStream finds the objects within an object stream.
func (f *pdfFile) openStream(n int, d pdfDict) {
	body := f.stream(n, d)
	p := pdfLexer{data: body}
	first := f.number(d["First"])
	for range min(f.number(d["N"]), pdfObjects+1) {
		num, ok := p.value(0).(float64)
		at, ok2 := p.value(0).(float64)
		if !ok || !ok2 {
			return
		}
		if len(f.objects) > pdfObjects {
			panic(errObjects)
		}
		if where := first + int(at); where >= 0 && where < len(body) {
			if _, known := f.objects[int(num)]; !known {
				f.objects[int(num)] = pdfObject{where, body}
			}
		}
	}
}

// pages lists the pages in order; of a file without a tree of them, by their numbers.
func (f *pdfFile) pages() []pdfDict {
	var all, loose []pdfDict
	seen := map[pdfRef]bool{}
	var walk func(v any, depth int)
	walk = func(v any, depth int) {
		ref, ok := v.(pdfRef)
		if ok && seen[ref] || depth > pdfDepth {
			return
		}
		seen[ref] = ok
		d := f.dict(v)
		if kids, ok := f.get(d["Kids"]).(pdfArray); ok {
			for _, k := range kids {
				walk(k, depth+1)
			}
		} else if d != nil {
			all = append(all, d)
		}
	}
	for _, n := range f.numbers() {
		switch d, _ := f.object(n).(pdfDict); d["Type"] {
		case pdfName("Catalog"):
			walk(d["Pages"], 0)
		case pdfName("Page"):
			loose = append(loose, d)
		}
	}
	if len(all) == 0 {
		return loose
	}
	return all
}

func (f *pdfFile) page(d pdfDict) {
	resources := f.dict(d["Resources"])
	for up, i := d, 0; resources == nil && up != nil && i < pdfDepth; i++ {
		up = f.dict(up["Parent"])
		resources = f.dict(up["Resources"])
	}
	parts, ok := f.get(d["Contents"]).(pdfArray)
	if !ok {
		parts = pdfArray{d["Contents"]}
	}
	var body []byte
	for _, part := range parts {
		if ref, ok := part.(pdfRef); ok {
			body = append(append(body, f.stream(int(ref), f.dict(ref))...), '\n')
		}
	}
	f.run(body, resources, 0)
	f.out.WriteString("\n\n")
}

// run writes down what a content stream shows.
func (f *pdfFile) run(body []byte, resources pdfDict, depth int) {
	p := pdfLexer{data: body}
	fonts, forms := f.dict(resources["Font"]), f.dict(resources["XObject"])
	var font *pdfFont
	var args []any
	for steps := 0; p.more(); steps++ {
		if steps%1024 == 0 && f.ctx.Err() != nil {
			panic(f.ctx.Err())
		}
		v := p.value(0)
		op, ok := v.(pdfWord)
		if !ok {
			if args = append(args, v); len(args) > 64 {
				args = args[1:]
			}
			continue
		}
		last := func(i int) any { // the i-th argument from the end
			if i > len(args) {
				return nil
			}
			return args[len(args)-i]
		}
		num := func(i int) float64 { n, _ := last(i).(float64); return n }
		switch op {
		case "Tf":
			name, _ := last(2).(pdfName)
			font = f.font(fonts[name])
		case "Td", "TD":
			f.move(f.x+num(2), f.y+num(1))
		case "Tm":
			f.move(num(2), num(1))
		case "T*", "ET":
			f.newline()
		case "'", "\"":
			f.newline()
			f.show(font, last(1))
		case "Tj":
			f.show(font, last(1))
		case "TJ":
			list, _ := last(1).(pdfArray)
			for _, part := range list {
				if gap, ok := part.(float64); ok && gap < -180 {
					f.blank()
				}
				f.show(font, part)
			}
		case "Do":
			name, _ := last(1).(pdfName)
			ref, ok := forms[name].(pdfRef)
			if form := f.dict(ref); ok && depth < 4 && form["Subtype"] == pdfName("Form") {
				inner := f.dict(form["Resources"])
				if inner == nil {
					inner = resources
				}
				f.run(f.stream(int(ref), form), inner, depth+1)
			}
		case "BI": // a picture among the operators
			if i := bytes.Index(p.data[p.at:], []byte("EI")); i >= 0 {
				p.at += i + 2
			}
		}
		args = args[:0]
	}
}

// move goes to a place: in another line, or further on in this one.
func (f *pdfFile) move(x, y float64) {
	if y != f.y {
		f.newline()
	} else if x != f.x {
		f.blank()
	}
	f.x, f.y = x, y
}

func (f *pdfFile) newline() { f.end("\n") }

func (f *pdfFile) blank() { f.end(" ") }

// end writes a separator, unless one stands there.
func (f *pdfFile) end(with string) {
	s := f.out.String()
	if s != "" && s[len(s)-1] != '\n' && (with == "\n" || s[len(s)-1] != ' ') {
		f.out.WriteString(with)
	}
}

func (f *pdfFile) show(font *pdfFont, v any) {
	if s, ok := v.(pdfString); ok && f.out.Len() <= maxText {
		f.out.WriteString(font.decode(string(s)))
	}
}
