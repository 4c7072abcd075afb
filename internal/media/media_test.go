package media

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func keep(t *testing.T, s *Store, data []byte) Kept {
	t.Helper()
	k, err := s.Keep(bytes.NewReader(data), 64<<20)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestKeep(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, 0)
	k := keep(t, s, encode(t, "png", noise(8, 8)))
	if k.Type != "image/png" || !strings.HasPrefix(k.Path, "media/") || !strings.HasSuffix(k.Path, ".png") {
		t.Errorf("kept %+v", k)
	}
	info, err := os.Stat(filepath.Join(dir, k.Path))
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != k.Size {
		t.Errorf("%v, %v", info, err)
	}
	if again := keep(t, s, encode(t, "png", noise(8, 8))); again != k {
		t.Errorf("the same content is kept as %+v and %+v", k, again)
	}
	var large *TooLargeError
	if _, err := s.Keep(strings.NewReader("12345"), 4); !errors.As(err, &large) {
		t.Errorf("five bytes of four at most: %v", err)
	}
	if _, err := s.Keep(forged{strings.NewReader("x")}, 4); !errors.Is(err, errForged) {
		t.Errorf("a forged file: %v", err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, Folder))
	if err != nil || len(entries) != 1 {
		t.Errorf("what was refused is left behind: %v %v", entries, err)
	}
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

// Two WebP pictures of 30 by 20 pixels, the left half red and the right half blue, as
// Chromium writes a canvas with toDataURL("image/webp", 0.5) and, without loss,
// toDataURL("image/webp", 1); of the file only the header and the picture's own chunk is kept.
var webps = map[string]string{
	"lossy":    "52494646720000005745425056503820660000003004009d012a1e0014003ed15ea54ea8252322280aa9001a096800ac2e90324032400059b5977cf50f3000fecb37abdb989f41cf97899fe3dd2d7ffa127f0d9082ffc4d9d312105b869ff8535ff8535ff0a6bfe14bea20b5ac9c89899c6fc4dc7fac83300000",
	"lossless": "5249464628000000574542505650384c1b0000002f1dc004000f10f3bffff31f0e08b26d6a3ef40b1c20a2ffb1b80200",
}

func webp(t *testing.T, name string) []byte {
	t.Helper()
	data, err := hex.DecodeString(webps[name])
	if err != nil {
		t.Fatal(err)
	}
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
		{"transparent", encode(t, "png", clear), 300, 100, 300, 100, "image/png"},
		{"WebP", webp(t, "lossy"), 30, 20, 30, 20, "image/jpeg"},
		{"WebP without loss", webp(t, "lossless"), 30, 20, 30, 20, "image/jpeg"},
		{"on its side", rotated(encode(t, "jpeg", noise(200, 100)), 6), 100, 200, 100, 200, "image/jpeg"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Open(t.TempDir(), 0)
			k := keep(t, s, tt.data)
			if isWebP := strings.HasPrefix(tt.name, "WebP"); isWebP != strings.HasSuffix(k.Path, ".webp") {
				t.Errorf("kept as %+v", k)
			}
			p, err := s.Picture(k.Path)
			if err != nil {
				t.Fatal(err)
			}
			if p.Width != tt.w || p.Height != tt.h || p.W != tt.W || p.H != tt.H {
				t.Errorf("%+v", p)
			}
			data, err := os.ReadFile(s.File(p.Path))
			if err != nil {
				t.Fatal(err)
			}
			m, _, err := image.Decode(bytes.NewReader(data))
			if err != nil || m.Bounds().Dx() != tt.W || m.Bounds().Dy() != tt.H || Sniff(data) != tt.kind {
				t.Errorf("made %v %s, %v", m.Bounds(), Sniff(data), err)
			}
			if r, g, _, _ := m.At(tt.W/4, tt.H/4).RGBA(); tt.kind == "image/jpeg" && (r < 0xd000 || g > 0x3000) {
				t.Errorf("what was red is %x %x", r, g)
			}
			if again, err := s.Picture(k.Path); again != p || err != nil {
				t.Errorf("made again: %+v, %v", again, err)
			}
		})
	}
}

// rotated is a JPEG file whose camera says how it was held.
func rotated(jpg []byte, turn uint16) []byte {
	exif := []byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01")
	exif = append(binary.BigEndian.AppendUint16(exif, turn), 0, 0, 0, 0, 0, 0)
	head := append([]byte{0xff, 0xd8, 0xff, 0xe1}, binary.BigEndian.AppendUint16(nil, uint16(len(exif)+2))...)
	return append(append(head, exif...), jpg[2:]...)
}

// TestHostilePictures: what is too large to unpack is not unpacked, and what is broken
// is an error.
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
		{"hello\r\nworld", "hello\nworld", ""},
		{"\xef\xbb\xbf{\"a\": 1}", `{"a": 1}`, ""},
		{"a\u202eb\x1b[31m", "ab[31m", ""},
		{"caf\xe9 au lait, " + strings.Repeat("x", 600), "", "UTF-8"},
		{"PK\x03\x04…", "", "no text"},
		{"text and then \x00 nothing", "", "no text"},
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
	got := Cap(text, 200)
	if n := len([]rune(got)); n > 260 || !strings.HasPrefix(got, "one line\n") || !strings.HasSuffix(got, "one line\n") || !strings.Contains(got, "of 900 characters are left out here") {
		t.Errorf("%d: %s", n, got)
	}
	if Cap(text, 900) != text {
		t.Error("what fits was cut")
	}
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"cat.png": "cat.png", "../../etc/passwd": "passwd", `C:\x\y.doc`: "y.doc", "a\nb\u202ecod.exe": "abcod.exe", "": "file", "...": "file",
		"]<data id=x>": "__data id=x_", strings.Repeat("x", 200) + ".jpeg": strings.Repeat("x", 74) + "….jpeg",
	} {
		if got := Name(in); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
}

func TestSweep(t *testing.T) {
	s := Open(t.TempDir(), 0)
	used, old, young := keep(t, s, []byte("used")), keep(t, s, encode(t, "png", noise(9, 9))), keep(t, s, []byte("young"))
	if _, err := s.Picture(old.Path); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	entries, err := os.ReadDir(s.File(Folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if Stem(e.Name()) != Stem(young.Path) {
			if err := os.Chtimes(s.File(Folder+"/"+e.Name()), past, past); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, err := s.Sweep(map[string]bool{Stem(used.Path): true}, time.Now().Add(-time.Minute)); n != 2 || err != nil {
		t.Errorf("%d files, %v", n, err)
	}
	for _, k := range []Kept{used, young} {
		if _, err := os.Stat(s.File(k.Path)); err != nil {
			t.Error(err)
		}
	}
	if err := s.Remove(used.Path, "bot.db", "media/../bot.db"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.File(used.Path)); err == nil {
		t.Error("it is still there")
	}
}

// withChecksum mends the checksum of a PNG file's header.
func withChecksum(b []byte) []byte {
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}
