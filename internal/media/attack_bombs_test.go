package media

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color/palette"
	"image/gif"
	"runtime"
	"strings"
	"testing"
	"time"
)

// pngOf is a PNG picture of zeros: small as a file, whatever its size.
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

// progressiveOf is a progressive JPEG picture of one scan in which each block is a bit.
// Its brightness has luma samples in each direction for each of a colour.
func progressiveOf(w, h int, luma byte) []byte {
	b := append([]byte{0xff, 0xd8, 0xff, 0xdb, 0, 67, 0}, bytes.Repeat([]byte{1}, 64)...)
	b = append(b, 0xff, 0xc2, 0, 17, 8, byte(h>>8), byte(h), byte(w>>8), byte(w), 3, 1, luma<<4|luma, 0, 2, 0x11, 0, 3, 0x11, 0)
	b = append(b, 0xff, 0xc4, 0, 21, 0x00, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	b = append(b, 0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 0, 0)
	b = append(b, make([]byte, ((w+7)/8)*((h+7)/8)*3/8+16)...)
	return append(b, 0xff, 0xd9)
}

// gifOf is an interlaced GIF picture of one colour.
func gifOf(t *testing.T, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gif.Encode(&b, image.NewPaletted(image.Rect(0, 0, w, h), palette.Plan9[:2]), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPictureMemory: a picture is decoded in at most 16 bytes for each of 25 million pixels, whatever
// its format, and refused before that if it has more. A picture for the model takes little beside it.
func TestPictureMemory(t *testing.T) {
	const beside = 24 << 20 // the file, the small picture and its JPEG
	for _, tt := range []struct {
		name    string
		data    []byte
		refused bool
	}{
		{"PNG, 16 bits", pngOf(7071, 7071, 16, 6, 0), true},
		{"PNG, 16 bits, interlaced, within", pngOf(5000, 5000, 16, 6, 1), false},
		{"PNG, 8 bits", pngOf(7000, 5000, 8, 6, 0), true},
		{"PNG, one line", pngOf(49_000_000, 1, 1, 0, 0), true},
		{"JPEG, progressive", progressiveOf(7071, 7071, 1), true},
		{"JPEG, progressive, within", progressiveOf(5000, 5000, 1), false},
		{"JPEG, progressive, of a telephone", progressiveOf(5712, 4284, 2), false},
		{"GIF", gifOf(t, 7000, 7000), true},
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
			t.Logf("a file of %s took %s", Size(int64(len(tt.data))), Size(int64(took)))
			switch {
			case tt.refused && (!errors.Is(err, ErrPixels) || took > beside):
				t.Errorf("refused with %v after %s", err, Size(int64(took)))
			case !tt.refused && err != nil:
				t.Error(err)
			case took > 16*maxPixels+beside:
				t.Errorf("it took %s", Size(int64(took)))
			}
		})
	}
}

// TestPDFObjects: a file of more objects than are read is refused with the reason, and a
// document of a thousand pages has fewer.
func TestPDFObjects(t *testing.T) {
	needReader(t)
	s := Open(t.TempDir(), 0)
	var many strings.Builder
	many.WriteString("%PDF-1.4\n")
	for i := range 300_000 {
		fmt.Fprintf(&many, "%d 0 obj<</Type/Page/Contents %d 0 R>>endobj\n", i+1, i+1)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	k := keep(t, s, []byte(many.String()))
	_, err := s.Text(t.Context(), k.Path, k.Type)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, errObjects) {
		t.Errorf("many objects: %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 128_000_000 {
		t.Errorf("it took %s to refuse them", Size(int64(took)))
	}

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
	k = keep(t, s, pdfOf(book...))
	if text, err := s.Text(t.Context(), k.Path, k.Type); err != nil || !strings.Contains(text, "page 1000") {
		t.Errorf("a thousand pages: %d characters, %v", len(text), err)
	}
}

// TestDecodeEnds: decoding that takes too long ends, and the person is told why.
func TestDecodeEnds(t *testing.T) {
	if _, err := decode(pngOf(10, 10, 8, 6, 0), time.Now().Add(-time.Second)); !errors.Is(err, errSlow) {
		t.Errorf("%v", err)
	}
}
