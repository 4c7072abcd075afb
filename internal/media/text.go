package media

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"reverie/internal/i18n"
	"reverie/internal/text"
)

const (
	maxText = 4 << 20           // largest text file, in bytes
	maxPDF  = 20 << 20          // largest PDF file, in bytes
	pdfType = "application/pdf" // MIME type
)

// Errors of Text, for people.
var (
	errNoText  = i18n.New("why.no_text")
	errUTF8    = i18n.New("why.no_utf8")
	errPDF     = i18n.New("why.pdf_broken")
	errScanned = i18n.New("why.pdf_scan")
)

// Text returns the text of a stored file. The error explains for people why there is no text.
func (s *Store) Text(ctx context.Context, name, kind string) (string, error) {
	if kind == pdfType {
		return s.pdf(ctx, name)
	}
	if !strings.HasPrefix(kind, "text/") && kind != "application/octet-stream" {
		return "", errNoText
	}
	data, err := s.read(name, maxText)
	if err != nil {
		return "", err
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch {
	case bytes.IndexByte(data, 0) >= 0:
		return "", errNoText
	case !utf8.Valid(data) && kind == "application/octet-stream":
		return "", errNoText
	case !utf8.Valid(data):
		return "", errUTF8
	}
	return text.Clean(string(data)), nil
}

// pdf extracts the text of a PDF file and stores it. So the rest of a long text can be read later;
// see TextPath.
func (s *Store) pdf(ctx context.Context, name string) (string, error) {
	if data, err := s.read(TextPath(name), maxText); err == nil {
		return string(data), nil
	}
	data, err := s.read(name, maxPDF)
	if err != nil {
		return "", err
	}
	read, err := s.PDFText(ctx, data)
	if err != nil {
		return "", err
	}
	return read, s.writeDerived(TextPath(name), []byte(read))
}

// PDFText returns the text of a PDF file. It reads one at a time. The error explains for people why there
// is no text.
func (s *Store) PDFText(ctx context.Context, data []byte) (string, error) {
	s.pdfLock.Lock()
	defer s.pdfLock.Unlock()
	ctx, cancel := context.WithTimeout(ctx, pdfTime)
	defer cancel()
	read, err := pdfText(ctx, data)
	if err != nil {
		return "", err
	}
	if read = text.Clean(read); read == "" {
		return "", errScanned
	}
	if len(read) > maxText {
		read = strings.ToValidUTF8(read[:maxText], "")
	}
	return read, nil
}

// TextPath returns the path of a stored file's text: the file itself, or the extracted text.
func TextPath(name string) string {
	if strings.HasSuffix(name, ".pdf") {
		return name + ".txt"
	}
	return name
}

// ClipMiddle returns the beginning and end of text, in about most characters together. A note says
// how much is missing. A shorter text is unchanged.
func ClipMiddle(text string, most int) string {
	n := utf8.RuneCountInString(text)
	if n <= most {
		return text
	}
	r := []rune(text)
	tail := most / 4
	head := most - tail
	begin, end := string(r[:head]), string(r[n-tail:])
	if i := strings.LastIndexByte(begin, '\n'); i > len(begin)*3/4 {
		begin = begin[:i]
	}
	if i := strings.IndexByte(end, '\n'); i >= 0 && i < len(end)/4 {
		end = end[i+1:]
	}
	gone := n - utf8.RuneCountInString(begin) - utf8.RuneCountInString(end)
	return fmt.Sprintf("%s\n[… %d of %d characters are left out here …]\n%s", begin, gone, n, end)
}
