package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"reverie/internal/text"
)

// Page is what a reader sees of a web page, as Markdown.
type Page struct {
	Title string
	URL   string // after redirects
	Text  string
}

const (
	maxBody = 2 << 20 // bytes; of a longer page the beginning is read
	maxPDF  = 8 << 20 // bytes
	maxPart = 10_000  // bytes, about 2,500 tokens in every script
)

// Fetch reads a page. Its errors say in a clause what is wrong, without addresses of the machine's
// network.
func (c *Client) Fetch(ctx context.Context, address string) (Page, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return Page{}, errors.New("it is not a valid address")
	}
	u.Host = strings.ToLower(u.Host)
	if err := c.guard.checkURL(u); err != nil {
		return Page{}, err
	}
	resp, err := c.get(ctx, c.guard.client(true), u.String(), http.Header{"Accept": {"text/html, text/plain, */*;q=0.5"}})
	if err != nil {
		return Page{}, explain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return Page{}, fmt.Errorf("its server answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	p, err := c.read(ctx, resp)
	p.URL = cut(resp.Request.URL.Redacted(), maxURL)
	return p, err
}

// read reads the body of an answer by its type.
func (c *Client) read(ctx context.Context, resp *http.Response) (p Page, err error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPDF+1))
	if err != nil {
		return p, explain(err)
	}
	said := cmp.Or(resp.Header.Get("Content-Type"), http.DetectContentType(body))
	kind, _, err := mime.ParseMediaType(said)
	if err != nil {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(body))
	}
	isText := strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "xml") || strings.HasSuffix(kind, "json")
	short := body[:min(len(body), maxBody)]
	switch {
	case kind == "application/pdf" || bytes.HasPrefix(body, []byte("%PDF-")):
		if p.Text, err = c.pdf(ctx, body); err != nil {
			return p, err
		}
	case kind == "text/html" || kind == "application/xhtml+xml":
		if p.Title, p.Text, err = readHTML(decode(short, said), resp.Request.URL); err != nil {
			return p, err
		}
	case isText && bytes.IndexByte(short, 0) < 0:
		p.Text = decode(short, said)
	default:
		return p, fmt.Errorf("it is a file of the type %s, which cannot be read", cut(kind, 60))
	}
	if p.Title, p.Text = cut(line(p.Title), maxTitle), text.Clean(p.Text); p.Text == "" {
		return p, errors.New("it has no text; perhaps it needs JavaScript")
	}
	if len(body) > len(short) && kind != "application/pdf" {
		p.Text += "\n\n[The page is larger than 2 MiB; the rest was not read.]"
	}
	return p, nil
}

func (c *Client) pdf(ctx context.Context, body []byte) (string, error) {
	switch {
	case len(body) > maxPDF:
		return "", errors.New("it is a PDF file of more than 8 MiB")
	case c.cfg.PDF == nil:
		return "", errors.New("it is a PDF file, which cannot be read here")
	}
	return c.cfg.PDF(ctx, body)
}

// decode converts data to UTF-8 by what its server says, the page itself says, or it looks like.
func decode(data []byte, contentType string) string {
	if strings.Contains(contentType, "json") || utf8.Valid(data) && !strings.Contains(contentType, "charset=") {
		return strings.ToValidUTF8(string(data), "\uFFFD")
	}
	enc, _, _ := charset.DetermineEncoding(data, contentType)
	out, err := enc.NewDecoder().Bytes(data)
	if err != nil {
		out = data
	}
	return strings.ToValidUTF8(string(out), "\uFFFD")
}

// Part returns the part number n of the text, from 1 on, and how many there are. Parts end at
// paragraphs or lines where they can.
func (p Page) Part(n int) (part string, of int) {
	rest := p.Text
	for rest != "" {
		of++
		at := partEnd(rest)
		if of == n {
			part = strings.TrimSpace(rest[:at])
		}
		rest = strings.TrimLeft(rest[at:], "\n ")
	}
	return part, of
}

// partEnd returns where the first part of s ends.
func partEnd(s string) int {
	if len(s) <= maxPart {
		return len(s)
	}
	for _, mark := range []string{"\n\n", "\n", ". ", " "} {
		if end := strings.LastIndex(s[:maxPart], mark); end > maxPart*3/4 {
			return end + len(mark)
		}
	}
	return len(strings.ToValidUTF8(s[:maxPart], "")) // not within a character
}
