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

// TestPDF: what pdftotext reads is handed on by pages, and kept beside the file.
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
		"nothing":  []byte("%PDF-1.7\n"),
		"cut":      pdfOf(catalog, tree, onePage)[:60],
		"locked":   bytes.Replace(pdfOf(catalog, tree, onePage, streamOf("", "BT /F1 12 Tf (x) Tj ET"), latin1), []byte("/Root"), []byte(password+" /Root"), 1),
		"a scan":   pdfOf(catalog, tree, onePage, streamOf("", "q 1 0 0 1 0 0 cm /Im1 Do Q")),
		"circles":  pdfOf("<< /Type /Catalog /Pages 1 0 R /Kids [1 0 R] /Parent 1 0 R /Contents 1 0 R /Length 1 0 R >>", "<< /Kids [2 0 R 1 0 R] >>"),
		"brackets": pdfOf(catalog, strings.Repeat("[", 2_000_000)),
		"bomb":     pdfOf(catalog, tree, "<< /Type /Page /Contents ["+strings.Repeat("4 0 R ", 50)+"] >>", bomb),
	} {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), pdfTime)
		s := Open(t.TempDir(), 0)
		text, err := s.Text(ctx, keep(t, s, data).Path, "application/pdf")
		cancel()
		if err == nil && name != "bomb" {
			t.Errorf("%s: read %.100q", name, text)
		}
		if name == "locked" && err != errLocked { //nolint:errorlint // our own value
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %v, %d characters, %v", name, time.Since(began).Round(time.Millisecond), len(text), err)
	}
}
