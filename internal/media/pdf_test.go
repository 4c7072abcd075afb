package media

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func packed(s string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write([]byte(s)) // into memory
	_ = z.Close()
	return b.String()
}

// pdfOf is a PDF file of objects, numbered from 1.
func pdfOf(objects ...string) []byte {
	var b strings.Builder
	b.WriteString("%PDF-1.5\n")
	for i, o := range objects {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	b.WriteString("trailer\n<< /Root 1 0 R >>\n%%EOF\n")
	return []byte(b.String())
}

func streamOf(dict, body string) string {
	return fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", dict, len(body), body)
}

const (
	catalog = "<< /Type /Catalog /Pages 2 0 R >>"
	tree    = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
	onePage = "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>"
	latin1  = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
)

// needReader leaves out a test where pdftotext is not installed.
func needReader(t testing.TB) {
	t.Helper()
	if !ReadsPDF() {
		t.Skip("pdftotext is not installed (package poppler-utils)")
	}
}

// pdfInStream is a PDF file whose page, the object 6, is packed into the object stream 5.
func pdfInStream(page string, objects ...string) []byte {
	b := bytes.NewBufferString("%PDF-1.5\n")
	var at []int
	for i, o := range append(objects, streamOf("/Type /ObjStm /N 1 /First 4 /Filter /FlateDecode", packed("6 0 "+page))) {
		at = append(at, b.Len())
		fmt.Fprintf(b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	begin := b.Len()
	refs := "\x00\x00\x00\x00"
	for _, n := range append(at, begin) {
		refs += string([]byte{1, byte(n >> 8), byte(n), 0})
	}
	refs = refs[:4*6] + "\x02\x00\x05\x00" + refs[4*6:]
	fmt.Fprintf(b, "7 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n", streamOf("/Type /XRef /Size 8 /W [1 2 1] /Root 1 0 R", refs), begin)
	return b.Bytes()
}

// Holds M42.
func TestPDF(t *testing.T) {
	needReader(t)
	flate := "/Filter /FlateDecode"
	toUnicode := streamOf(flate, packed("1 begincodespacerange <0000> <ffff> endcodespacerange 2 beginbfrange <0001> <0003> <0041> <0010> <0011> [<00e4> <d83dde00>] endbfrange 1 beginbfchar <0020> <0020> endbfchar"))
	for _, tt := range []struct {
		name    string
		objects []string
		want    string
	}{
		{"plain", []string{catalog, tree, onePage, streamOf("", `BT /F1 12 Tf 72 700 Td (Gr\374\337e \(from\) here) Tj 0 -14 Td (next line) Tj ET`), latin1}, "Grüße (from) here\nnext line"},
		{"packed, with gaps", []string{catalog, tree, onePage, streamOf(flate, packed(`BT /F1 12 Tf 14 TL 72 700 Td [(two)-300(wo)20(rds)] TJ T* <6f6e65> Tj ET`)), latin1}, "two words\none"},
		{"codes", []string{catalog, tree, onePage, streamOf(flate, packed(`BT /F1 12 Tf <0001000200030020001000110020> Tj ET`)),
			"<< /Type /Font /Subtype /Type0 /ToUnicode 6 0 R >>", toUnicode}, "ABC ä😀"},
		{"names", []string{catalog, tree, onePage, streamOf("", `BT /F1 12 Tf (abc) Tj ET`), "<< /Type /Font /Encoding << /Differences [97 /X /odieresis /uni20AC] >> >>"}, "Xö€"},
		{"length that lies", []string{catalog, tree, onePage, "<< /Length 3 >>\nstream\nBT /F1 1 Tf (whole) Tj ET\nendstream", latin1}, "whole"},
		{"a form", []string{catalog, tree, "<< /Type /Page /Parent 2 0 R /Contents 4 0 R " +
			"/Resources << /Font << /F1 6 0 R >> /XObject << /X 5 0 R >> >> >>",
			streamOf("", "/X Do"), streamOf("/Subtype /Form /BBox [0 0 600 800]", "BT /F1 12 Tf 72 700 Td (inside) Tj ET"), latin1}, "inside"},
		{"two pages", []string{catalog, "<< /Type /Pages /Kids [3 0 R 3 0 R] /Count 2 >>", onePage,
			streamOf("", `BT /F1 12 Tf 72 700 Td (a page) Tj ET`), latin1},
			"a page\n\n\na page"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Open(t.TempDir(), 0)
			k := keep(t, s, pdfOf(tt.objects...))
			got, err := s.Text(t.Context(), k.Path, k.Type)
			if strings.TrimSpace(got) != tt.want || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			if beside, err := s.Text(t.Context(), Beside(k.Path), "text/plain"); beside != got || err != nil {
				t.Errorf("beside it stands %q, %v", beside, err)
			}
		})
	}
}

// TestPackedPDF: a page that is an object of an object stream is read.
func TestPackedPDF(t *testing.T) {
	needReader(t)
	data := pdfInStream("<< /Type /Page /Parent 2 0 R /Contents 3 0 R /Resources << /Font << /F1 4 0 R >> >> >>", catalog,
		"<< /Type /Pages /Kids [6 0 R] /Count 1 >>", streamOf("", "BT /F1 12 Tf 72 700 Td (packed page) Tj ET"), latin1)
	if text, err := pdfText(t.Context(), data); strings.TrimSpace(text) != "packed page" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// TestNoPDFReader: without pdftotext, the person is told what is missing.
func TestNoPDFReader(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := Open(t.TempDir(), 0)
	k := keep(t, s, pdfOf(catalog, tree, onePage, streamOf("", "BT (x) Tj ET")))
	if _, err := s.Text(t.Context(), k.Path, k.Type); !errors.Is(err, errNoReader) || ReadsPDF() {
		t.Errorf("%v", err)
	}
}

// TestHostilePDF: no file hangs or kills us, and each has a reason.
// Holds F43.
func TestHostilePDF(t *testing.T) {
	needReader(t)
	key := strings.Repeat("4f", 32)
	password := "/ID [<00> <00>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <" + key + "> /U <" + key + "> >>"
	bomb := streamOf("/Filter /FlateDecode", packed(strings.Repeat("( ) Tj ", 1<<22)))
	for name, data := range map[string][]byte{
		"nothing": []byte("%PDF-1.7\n"),
		"cut":     pdfOf(catalog, tree, onePage)[:60],
		"locked":  bytes.Replace(pdfOf(catalog, tree, onePage, streamOf("", "BT /F1 12 Tf (x) Tj ET"), latin1), []byte("/Root"), []byte(password+" /Root"), 1),
		"no tree": pdfOf("<< /Type /Page /Contents 2 0 R >>", streamOf("", "BT (loose) Tj ET")),
		"a scan":  pdfOf(catalog, tree, onePage, streamOf("", "q 1 0 0 1 0 0 cm /Im1 Do Q")),
		"circles": pdfOf("<< /Type /Catalog /Pages 1 0 R /Kids [1 0 R] /Parent 1 0 R /Contents 1 0 R /Length 1 0 R >>", "<< /Kids [2 0 R 1 0 R] >>"),
		"a form in itself": pdfOf(catalog, tree, "<< /Type /Page /Contents 4 0 R /Resources << /XObject << /X 4 0 R >> >> >>",
			streamOf("/Subtype /Form", "/X Do /X Do /X Do /X Do")),
		"brackets":      pdfOf(catalog, strings.Repeat("[", 2_000_000)),
		"dictionaries":  pdfOf(catalog, strings.Repeat("<</a", 500_000)),
		"bomb":          pdfOf(catalog, tree, "<< /Type /Page /Contents ["+strings.Repeat("4 0 R ", 50)+"] >>", bomb),
		"large numbers": pdfOf(catalog, tree, streamOf("/Type /ObjStm /N 999999999999 /First -99999999999 ", "1 999999999 2 -5")),
		"wide ranges": pdfOf(catalog, tree, onePage, streamOf("", "BT /F1 1 Tf <0001> Tj ET"), "<< /Subtype /Type0 /ToUnicode 6 0 R >>",
			streamOf("", strings.Repeat("<0000> <ffff> <0041> ", 100_000)+"endbfrange")),
	} {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), pdfTime)
		s := Open(t.TempDir(), 0)
		text, err := s.Text(ctx, keep(t, s, data).Path, "application/pdf")
		cancel()
		if err == nil && name != "bomb" && name != "wide ranges" {
			t.Errorf("%s: read %.100q", name, text)
		}
		if name == "locked" && err != errLocked { //nolint:errorlint // our own value
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %v, %d characters, %v", name, time.Since(began).Round(time.Millisecond), len(text), err)
	}
}

func FuzzPDF(f *testing.F) {
	needReader(f)
	f.Add(pdfOf(catalog, tree, onePage, streamOf("", `BT /F1 12 Tf 72 700 Td (a\(b) Tj [(c)-300<64>] TJ ET`), latin1))
	f.Add(pdfOf(catalog, "<< /Type /Pages /Kids [13 0 R] >>", streamOf("/Type /ObjStm /N 1 /First 5 /Filter /FlateDecode", packed("13 0 << /Type /Page /Contents 4 0 R >>")), streamOf("", `/X Do BI x EI`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), pdfTime)
		defer cancel()
		if text, err := pdfText(ctx, data); err == nil && len(text) > 2*maxText+1000 {
			t.Errorf("%d bytes of text", len(text))
		}
		if ctx.Err() != nil {
			t.Error("it took too long")
		}
	})
}
