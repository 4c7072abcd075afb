package media

import (
	"bytes"
	"encoding/hex"
	"image"
	"os"
	"strings"
	"testing"
)

// Two WebP pictures of 30 by 20 pixels, the left half red and the right half blue, as
// Chromium writes a canvas with toDataURL("image/webp", 0.5) and, without loss,
// toDataURL("image/webp", 1); of the file only the header and the picture's own chunk is kept.
var webps = map[string]string{
	"lossy":    "52494646720000005745425056503820660000003004009d012a1e0014003ed15ea54ea8252322280aa9001a096800ac2e90324032400059b5977cf50f3000fecb37abdb989f41cf97899fe3dd2d7ffa127f0d9082ffc4d9d312105b869ff8535ff8535ff0a6bfe14bea20b5ac9c89899c6fc4dc7fac83300000",
	"lossless": "5249464628000000574542505650384c1b0000002f1dc004000f10f3bffff31f0e08b26d6a3ef40b1c20a2ffb1b80200",
}

// TestWebP: a picture as most messengers keep it is known as one, and drawn.
func TestWebP(t *testing.T) {
	for name, packed := range webps {
		data, err := hex.DecodeString(packed)
		if err != nil {
			t.Fatal(err)
		}
		for _, side := range []int{0, 12} {
			dir := t.TempDir()
			s := Open(dir, side)
			k := keep(t, s, data)
			if k.Type != "image/webp" || !strings.HasSuffix(k.Path, ".webp") {
				t.Errorf("%s is kept as %+v", name, k)
			}
			p, err := s.Picture(k.Path)
			want := image.Pt(30, 20)
			if side > 0 {
				want = image.Pt(12, 8)
			}
			if err != nil || p.Width != 30 || p.Height != 20 || p.W != want.X || p.H != want.Y {
				t.Fatalf("%s, at most %d: %+v, %v", name, side, p, err)
			}
			drawn, err := os.ReadFile(s.File(p.Path))
			if err != nil {
				t.Fatal(err)
			}
			m, _, err := image.Decode(bytes.NewReader(drawn))
			if err != nil || m.Bounds().Size() != want {
				t.Fatalf("%s, at most %d: drawn as %v, %v", name, side, m.Bounds(), err)
			}
			if r, _, b, _ := m.At(1, 1).RGBA(); r < 0xc000 || b > 0x4000 {
				t.Errorf("%s, at most %d: the left is no red: %x %x", name, side, r, b)
			}
			if r, _, b, _ := m.At(want.X-2, 1).RGBA(); b < 0xc000 || r > 0x4000 {
				t.Errorf("%s, at most %d: the right is no blue: %x %x", name, side, r, b)
			}
		}
		s := Open(t.TempDir(), 0)
		if _, err := s.Picture(keep(t, s, data[:len(data)/2]).Path); err == nil {
			t.Errorf("%s: half of it is a picture", name)
		}
	}
}
