package media

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reverie/internal/test/expect"
)

func keep(t *testing.T, s *Store, data []byte) Stored {
	t.Helper()
	k := expect.Must(s.Save(bytes.NewReader(data), 64<<20))(t)
	return k
}

// noise is an image that no encoder makes small, half of it red.
func noise(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = byte(i * 7919 >> 3)
	}
	for y := range h {
		for x := range w {
			c := m.NRGBAAt(x, y)
			c.A = 255
			if x < w/2 {
				c = color.NRGBA{255, 0, 0, 255}
			}
			m.SetNRGBA(x, y, c)
		}
	}
	return m
}

func encode(t *testing.T, kind string, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	err := errors.New("no such kind")
	switch kind {
	case "png":
		err = png.Encode(&b, m)
	case "jpeg":
		err = jpeg.Encode(&b, m, nil)
	case "gif":
		err = gif.Encode(&b, m, nil)
	}
	expect.OK(t, err)
	return b.Bytes()
}

func TestKeep(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, 0)
	k := keep(t, s, encode(t, "png", noise(8, 8)))
	expect.False(t, k.Type != "image/png" || !strings.HasPrefix(k.Path, "media/") || !strings.HasSuffix(k.Path, ".png"), "kept %+v", k)
	info, err := os.Stat(filepath.Join(dir, k.Path))
	expect.False(t, err != nil || info.Mode().Perm() != 0o600 || info.Size() != k.Size, "%v, %v", info, err)
	expect.Equal(t, keep(t, s, encode(t, "png", noise(8, 8))), k, "the same content is kept as and")
	var large *TooLargeError
	if _, err := s.Save(strings.NewReader("12345"), 4); !errors.As(err, &large) {
		t.Errorf("five bytes of four at most: %v", err)
	}
	if _, err := s.Save(forged{strings.NewReader("x")}, 4); !errors.Is(err, errForged) {
		t.Errorf("a forged file: %v", err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, Folder))
	expect.False(t, err != nil || len(entries) != 1, "what was refused is left behind: %v %v", entries, err)
	for _, p := range []string{"bot.db", "media/../bot.db", "media/..", "/etc/passwd", "media"} {
		if f, err := s.Open(p); err == nil {
			f.Close()
			t.Errorf("%s was opened", p)
		}
	}
}

var errForged = errors.New("forged")

type forged struct{ io.Reader }

func (forged) Close() error { return errForged }

// Two WebP pictures of 30 by 20 pixels, the left half red and the right half blue, as Chromium
// writes a canvas with toDataURL("image/webp", 0.5) and, losslessly, toDataURL("image/webp", 1).
// Only the header and the picture's chunk are kept.
var webps = map[string]string{
	"lossy":    "52494646720000005745425056503820660000003004009d012a1e0014003ed15ea54ea8252322280aa9001a096800ac2e90324032400059b5977cf50f3000fecb37abdb989f41cf97899fe3dd2d7ffa127f0d9082ffc4d9d312105b869ff8535ff8535ff0a6bfe14bea20b5ac9c89899c6fc4dc7fac83300000",
	"lossless": "5249464628000000574542505650384c1b0000002f1dc004000f10f3bffff31f0e08b26d6a3ef40b1c20a2ffb1b80200",
}

func webp(t *testing.T, name string) []byte {
	t.Helper()
	data := expect.Must(hex.DecodeString(webps[name]))(t)
	return data
}

// Holds M40.
func TestPicture(t *testing.T) {
	clear := image.NewNRGBA(image.Rect(0, 0, 300, 100)) // transparent
	for _, tt := range []struct {
		name       string
		data       []byte
		w, h, W, H int
		kind       string
	}{
		{"large", encode(t, "jpeg", noise(3000, 1500)), 3000, 1500, 1024, 512, "image/jpeg"},
		{"small", encode(t, "png", noise(30, 20)), 30, 20, 30, 20, "image/jpeg"},
		{"gif", encode(t, "gif", noise(100, 2000)), 100, 2000, 51, 1024, "image/jpeg"},
		{"transparent", encode(t, "png", clear), 300, 100, 300, 100, "image/png"}, {"WebP", webp(t, "lossy"), 30, 20, 30, 20, "image/jpeg"},
		{"WebP without loss", webp(t, "lossless"), 30, 20, 30, 20, "image/jpeg"},
		{"on its side", rotated(encode(t, "jpeg", noise(200, 100)), 6), 100, 200, 100, 200, "image/jpeg"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Open(t.TempDir(), 0)
			k := keep(t, s, tt.data)
			expect.Equal(t, strings.HasPrefix(tt.name, "WebP"), strings.HasSuffix(k.Path, ".webp"), "kept as %+v", k)
			p, err := s.Picture(k.Path)
			expect.OK(t, err)
			expect.False(t, p.Width != tt.w || p.Height != tt.h || p.W != tt.W || p.H != tt.H, "%+v", p)
			data, err := os.ReadFile(s.File(p.Path))
			expect.OK(t, err)
			m, _, err := image.Decode(bytes.NewReader(data))
			if err != nil || m.Bounds().Dx() != tt.W || m.Bounds().Dy() != tt.H || Sniff(data) != tt.kind {
				t.Errorf("made %v %s, %v", m.Bounds(), Sniff(data), err)
			}
			if r, g, _, _ := m.At(tt.W/4, tt.H/4).RGBA(); tt.kind == "image/jpeg" && (r < 0xd000 || g > 0x3000) {
				t.Errorf("what was red is %x %x", r, g)
			}
			expect.Equal(t, expect.Must(s.Picture(k.Path))(t), p, "made again")
		})
	}
}

// rotated is a JPEG file with an EXIF orientation.
func rotated(jpg []byte, turn uint16) []byte {
	exif := []byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01")
	exif = append(binary.BigEndian.AppendUint16(exif, turn), 0, 0, 0, 0, 0, 0)
	head := append([]byte{0xff, 0xd8, 0xff, 0xe1}, binary.BigEndian.AppendUint16(nil, uint16(len(exif)+2))...)
	return append(append(head, exif...), jpg[2:]...)
}

// TestOrientation: the red left half of a picture is placed by the orientation.
func TestOrientation(t *testing.T) {
	for turn, red := range []image.Point{1: {25, 50}, {75, 50}, {75, 50}, {25, 50}, {50, 25}, {50, 25}, {50, 75}, {50, 75}} {
		if turn == 0 {
			continue
		}
		s := Open(t.TempDir(), 100)
		p := expect.Must(s.Picture(keep(t, s, rotated(encode(t, "jpeg", noise(300, 300)), uint16(turn))).Path))(t)
		m := expect.Must(jpeg.Decode(expect.Must(os.Open(s.File(p.Path)))(t)))(t)
		if r, g, _, _ := m.At(red.X, red.Y).RGBA(); r < 0xd000 || g > 0x3000 {
			t.Errorf("turned %d: what was red is %x %x", turn, r, g)
		}
	}
}

// TestHostilePictures: a picture that is too large is not decoded, and a broken one is an error.
// Holds F43, M40.
func TestHostilePictures(t *testing.T) {
	s := Open(t.TempDir(), 0)
	bomb := encode(t, "png", image.NewGray(image.Rect(0, 0, 10, 10)))
	binary.BigEndian.PutUint32(bomb[16:], 1_000_000) // its width, as a header claims it
	binary.BigEndian.PutUint32(bomb[20:], 1_000_000)
	half := encode(t, "jpeg", noise(400, 400))
	for name, data := range map[string][]byte{"bomb": withChecksum(bomb), "half": half[:len(half)/3],
		"half a WebP": webp(t, "lossy")[:60], "half a WebP without loss": webp(t, "lossless")[:20], "text": []byte("hello"), "empty": {}, "tiff": []byte("II*\x00\x08\x00\x00\x00")} {
		if p, err := s.Picture(keep(t, s, data).Path); err == nil {
			t.Errorf("%s: %+v", name, p)
		} else if name == "bomb" && !errors.Is(err, ErrPixels) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestText(t *testing.T) {
	for _, tt := range []struct{ data, want, why string }{
		{"hello\r\nworld", "hello\nworld", ""}, {"\xef\xbb\xbf{\"a\": 1}", `{"a": 1}`, ""}, {"a\u202eb\x1b[31m", "ab[31m", ""},
		{"caf\xe9 au lait, " + strings.Repeat("x", 600), "", "UTF-8"}, {"PK\x03\x04…", "", "cannot read text"},
		{"text and then \x00 nothing", "", "cannot read text"},
	} {
		s := Open(t.TempDir(), 0)
		k := keep(t, s, []byte(tt.data))
		got, err := s.Text(t.Context(), k.Path, k.Type)
		if got != tt.want || (err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%q (%s): %q, %v", tt.data, k.Type, got, err)
		}
	}
}

// Holds M42.
func TestCap(t *testing.T) {
	text := strings.Repeat("one line\n", 100)
	got := ClipMiddle(text, 200)
	if n := len([]rune(got)); n > 260 || !strings.HasPrefix(got, "one line\n") || !strings.HasSuffix(got, "one line\n") || !strings.Contains(got, "of 900 characters are left out here") {
		t.Errorf("%d: %s", n, got)
	}
	expect.Equal(t, ClipMiddle(text, 900), text, "what fits was cut")
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"cat.png": "cat.png", "../../etc/passwd": "passwd", `C:\x\y.doc`: "y.doc", "a\nb\u202ecod.exe": "abcod.exe", "": "file", "...": "file",
		"]<data id=x>": "__data id=x_", strings.Repeat("x", 200) + ".jpeg": strings.Repeat("x", 74) + "….jpeg",
	} {
		expect.Equal(t, Name(in), want, in)
	}
}

func TestSweep(t *testing.T) {
	s := Open(t.TempDir(), 0)
	used, old, young := keep(t, s, []byte("used")), keep(t, s, encode(t, "png", noise(9, 9))), keep(t, s, []byte("young"))
	expect.Must(s.Picture(old.Path))(t)
	past := time.Now().Add(-time.Hour)
	entries := expect.Must(os.ReadDir(s.File(Folder)))(t)
	for _, e := range entries {
		if Stem(e.Name()) != Stem(young.Path) {
			expect.OK(t, os.Chtimes(s.File(Folder+"/"+e.Name()), past, past))
		}
	}
	expect.Equal(t, expect.Must(s.sweep(map[string]bool{Stem(used.Path): true}, time.Now().Add(-time.Minute)))(t), 2, "files")
	for _, k := range []Stored{used, young} {
		expect.Must(os.Stat(s.File(k.Path)))(t)
	}
	expect.OK(t, s.Remove(used.Path, "bot.db", "media/../bot.db"))
	if _, err := os.Stat(s.File(used.Path)); err == nil {
		t.Error("it is still there")
	}
}

// withChecksum corrects the checksum of a PNG file's header.
func withChecksum(b []byte) []byte {
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

func packed(s string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write([]byte(s)) // into memory
	_ = z.Close()
	return b.String()
}

// pdfOf returns a PDF file of objects, numbered from 1.
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

// needReader skips a test if pdftotext is not installed.
func needReader(t testing.TB) {
	t.Helper()
	if !ReadsPDF() {
		t.Skip("pdftotext is not installed (package poppler-utils)")
	}
}

// TestPDF: the text is returned by pages, and stored beside the file.
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
			expect.False(t, strings.TrimSpace(got) != tt.want || err != nil, "%q, %v", got, err)
			expect.Equal(t, expect.Must(s.Text(t.Context(), TextPath(k.Path), "text/plain"))(t), got, "beside it stands")
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

// TestHostilePDF: no file hangs or kills the process, and each has a reason.
// Holds F43.
func TestHostilePDF(t *testing.T) {
	needReader(t)
	key := strings.Repeat("4f", 32)
	password := "/ID [<00> <00>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <" + key + "> /U <" + key + "> >>"
	bomb := streamOf("/Filter /FlateDecode", packed(strings.Repeat("( ) Tj ", 1<<22)))
	for name, data := range map[string][]byte{
		"nothing": []byte("%PDF-1.7\n"), "cut": pdfOf(catalog, tree, onePage)[:60],
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
		expect.False(t, err == nil && name != "bomb", "%s: read %.100q", name, text)
		if name == "locked" && err != errLocked { //nolint:errorlint // our own value
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %v, %d characters, %v", name, time.Since(began).Round(time.Millisecond), len(text), err)
	}
}

// pngOf returns a PNG picture of zeros: a small file of any size in pixels.
func pngOf(w, h int, depth, kind, interlaced byte) []byte {
	chunk := func(name string, data []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
		b = append(append(b, name...), data...)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
	}
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(w)), uint32(h))
	head = append(head, depth, kind, 0, 0, interlaced)
	samples := map[byte]int{0: 1, 2: 3, 4: 2, 6: 4}[kind]
	var z bytes.Buffer
	pack := zlib.NewWriter(&z)
	rows := h * (1 + (w*samples*int(depth)+7)/8)
	if interlaced == 1 { // each pass has rows of its own
		rows = 0
		for _, p := range [][4]int{{8, 8, 0, 0}, {8, 8, 4, 0}, {4, 8, 0, 4}, {4, 4, 2, 0}, {2, 4, 0, 2}, {2, 2, 1, 0}, {1, 2, 0, 1}} {
			pw, ph := (w-p[2]+p[0]-1)/p[0], (h-p[3]+p[1]-1)/p[1]
			rows += ph * (1 + (pw*samples*int(depth)+7)/8)
		}
	}
	_, _ = pack.Write(make([]byte, rows))
	_ = pack.Close()
	all := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", head)...)
	return append(append(all, chunk("IDAT", z.Bytes())...), chunk("IEND", nil)...)
}

// progressiveOf returns a progressive JPEG picture of one scan in which each block is a bit. Its
// brightness has luma samples in each direction for each chroma sample.
func progressiveOf(w, h int, luma byte) []byte {
	b := append([]byte{0xff, 0xd8, 0xff, 0xdb, 0, 67, 0}, bytes.Repeat([]byte{1}, 64)...)
	b = append(b, 0xff, 0xc2, 0, 17, 8, byte(h>>8), byte(h), byte(w>>8), byte(w), 3, 1, luma<<4|luma, 0, 2, 0x11, 0, 3, 0x11, 0)
	b = append(b, 0xff, 0xc4, 0, 21, 0x00, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	b = append(b, 0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 0, 0)
	b = append(b, make([]byte, ((w+7)/8)*((h+7)/8)*3/8+16)...)
	return append(b, 0xff, 0xd9)
}

// gifOf returns an interlaced GIF picture of one colour.
func gifOf(t *testing.T, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	expect.OK(t, gif.Encode(&b, image.NewPaletted(image.Rect(0, 0, w, h), palette.Plan9[:2]), nil))
	return b.Bytes()
}

// TestPictureMemory: decoding takes at most 16 bytes for each of 25 million pixels in every format;
// larger pictures are refused first. Scaling takes little more.
func TestPictureMemory(t *testing.T) {
	const beside = 24 << 20 // the file, the small picture and its JPEG
	for _, tt := range []struct {
		name    string
		data    []byte
		refused bool
	}{
		{"PNG, 16 bits", pngOf(7071, 7071, 16, 6, 0), true}, {"PNG, 16 bits, interlaced, within", pngOf(5000, 5000, 16, 6, 1), false},
		{"PNG, 8 bits", pngOf(7000, 5000, 8, 6, 0), true}, {"PNG, one line", pngOf(49_000_000, 1, 1, 0, 0), true},
		{"JPEG, progressive", progressiveOf(7071, 7071, 1), true}, {"JPEG, progressive, within", progressiveOf(5000, 5000, 1), false},
		{"JPEG, progressive, of a telephone", progressiveOf(5712, 4284, 2), false}, {"GIF", gifOf(t, 7000, 7000), true},
		{"GIF, within", gifOf(t, 5000, 5000), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Open(t.TempDir(), 0)
			k := keep(t, s, tt.data)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := s.Picture(k.Path)
			runtime.ReadMemStats(&after)
			took := after.TotalAlloc - before.TotalAlloc
			t.Logf("a file of %s took %s", FormatSize(int64(len(tt.data))), FormatSize(int64(took)))
			switch {
			case tt.refused && (!errors.Is(err, ErrPixels) || took > beside):
				t.Errorf("refused with %v after %s", err, FormatSize(int64(took)))
			case !tt.refused && err != nil:
				t.Error(err)
			case took > 16*maxPixels+beside:
				t.Errorf("it took %s", FormatSize(int64(took)))
			}
		})
	}
}

// TestLongPDF: a document of a thousand pages is read.
func TestLongPDF(t *testing.T) {
	needReader(t)
	s := Open(t.TempDir(), 0)
	book := []string{catalog, "", latin1}
	kids := ""
	for i := range 1000 {
		at := len(book) + 1
		kids += fmt.Sprintf("%d 0 R ", at)
		book = append(book, fmt.Sprintf("<< /Type /Page /Parent 2 0 R /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> >> >>", at+1),
			streamOf("", fmt.Sprintf("BT /F1 12 Tf 72 700 Td (page %d) Tj ET", i+1)))
		for range 60 { // notes, links, elements of its structure
			book = append(book, "<< /Type /Annot /Subtype /Link /Rect [0 0 1 1] >>")
		}
	}
	book[1] = "<< /Type /Pages /Count 1000 /Kids [" + kids + "] >>"
	k := keep(t, s, pdfOf(book...))
	if text, err := s.Text(t.Context(), k.Path, k.Type); err != nil || !strings.Contains(text, "page 1000") {
		t.Errorf("a thousand pages: %d characters, %v", len(text), err)
	}
}

// TestDecodeEnds: decoding stops after its time limit, and the person is told why.
func TestDecodeEnds(t *testing.T) {
	if _, err := decode(pngOf(10, 10, 8, 6, 0), time.Now().Add(-time.Second)); !errors.Is(err, errSlow) {
		t.Errorf("%v", err)
	}
}
