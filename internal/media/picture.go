package media

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // the first frame
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/image/draw"
	"golang.org/x/image/math/f64"
	_ "golang.org/x/image/webp" // the format of most messengers

	"reverie/internal/i18n"
	"reverie/internal/store"
)

// Picture is a scaled image for a model.
type Picture struct {
	Path          string // a stored file, JPEG or PNG
	Width, Height int    // of the original image
	W, H          int    // of the scaled picture
}

const (
	maxImageBytes = 64 << 20 // largest image that is read, in bytes
	maxPNG        = 400_000  // largest picture that stays a PNG, for its transparency
	jpgQuality    = 85
)

// errImage is for people, who cannot use a decoder's error.
var errImage = i18n.New("why.no_image")

// Picture scales the stored image name for a model and removes its metadata. The result is stored
// and reused.
func (s *Store) Picture(name string) (Picture, error) {
	s.pictureLock.Lock()
	defer s.pictureLock.Unlock()
	data, err := s.read(name, maxImageBytes)
	if err != nil {
		return Picture{}, err
	}
	cfg, kind, err := image.DecodeConfig(bytes.NewReader(data))
	switch {
	case err != nil || cfg.Width <= 0 || cfg.Height <= 0:
		return Picture{}, errImage
	case cfg.Width > maxPixels/cfg.Height:
		return Picture{}, ErrPixels
	}
	turn := 1
	if kind == "jpeg" {
		turn = orientation(data)
	}
	p := Picture{Width: cfg.Width, Height: cfg.Height}
	if turn >= 5 {
		p.Width, p.Height = p.Height, p.Width
	}
	p.W, p.H = fitWithin(p.Width, p.Height, s.maxSide)
	for _, ext := range []string{".jpg", ".png"} {
		made := s.derivedPath(name, ext)
		if _, err := os.Lstat(s.File(made)); err == nil {
			p.Path = made
			return p, nil
		}
	}
	return s.draw(name, data, p, turn)
}

// derivedPath returns the path of a file derived from an image.
func (s *Store) derivedPath(name, ext string) string {
	return fmt.Sprintf("%s/%s.%d%s", path.Dir(name), Stem(name), s.maxSide, ext)
}

func (s *Store) draw(name string, data []byte, p Picture, turn int) (_ Picture, err error) {
	defer func() {
		if r := recover(); r != nil { // decoders get untrusted input
			err = errImage
		}
	}()
	from, err := decode(data, time.Now().Add(pictureTime))
	if err != nil {
		return Picture{}, err
	}
	to := scaleUpright(from, p, turn)
	var b bytes.Buffer
	ext := ".png"
	if !to.Opaque() {
		err = png.Encode(&b, to)
	}
	if to.Opaque() || b.Len() > maxPNG {
		b.Reset()
		ext = ".jpg"
		flat := image.NewRGBA(to.Bounds())
		draw.Draw(flat, flat.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
		draw.Draw(flat, flat.Bounds(), to, image.Point{}, draw.Over)
		err = jpeg.Encode(&b, flat, &jpeg.Options{Quality: jpgQuality})
	}
	if err != nil {
		return Picture{}, fmt.Errorf("make a picture: %w", err)
	}
	p.Path = s.derivedPath(name, ext)
	if err := s.writeDerived(p.Path, b.Bytes()); err != nil {
		return Picture{}, err
	}
	return p, nil
}

// writeDerived writes a derived file.
func (s *Store) writeDerived(name string, data []byte) error {
	return store.Wrap(store.WriteFile(s.File(name), data), "store a file")
}

// fitWithin scales a size down so that no side exceeds most.
func fitWithin(w, h, most int) (int, int) {
	if long := max(w, h); long > most {
		return max(1, (w*most+long/2)/long), max(1, (h*most+long/2)/long)
	}
	return w, h
}

// orientation returns the EXIF orientation of a JPEG: 1 to 8; 1 = none.
func orientation(jpg []byte) int {
	for at := 2; at+4 <= len(jpg) && jpg[at] == 0xff && jpg[at+1] != 0xda; {
		n := int(jpg[at+2])<<8 | int(jpg[at+3])
		if n < 2 || at+2+n > len(jpg) {
			break
		}
		if body := jpg[at+4 : at+2+n]; jpg[at+1] == 0xe1 && strings.HasPrefix(string(body), "Exif\x00\x00") {
			return tiffOrientation(body[6:])
		}
		at += 2 + n
	}
	return 1
}

// tiffOrientation returns the orientation in the first directory of a TIFF header.
func tiffOrientation(tiff []byte) int {
	if len(tiff) < 8 {
		return 1
	}
	little := tiff[0] == 'I'
	num := func(at, n int) int {
		v := 0
		for i := range n {
			j := i
			if little {
				j = n - 1 - i
			}
			v = v<<8 | int(tiff[at+j])
		}
		return v
	}
	dir := num(4, 4)
	if dir < 8 || dir+2 > len(tiff) {
		return 1
	}
	for i := range num(dir, 2) {
		at := dir + 2 + 12*i
		if at+12 > len(tiff) {
			break
		}
		if num(at, 2) == 0x0112 {
			if v := num(at+8, 2); v >= 1 && v <= 8 {
				return v
			}
			break
		}
	}
	return 1
}

// averageKernel averages the pixels that one output pixel covers.
var averageKernel = &draw.Kernel{Support: 0.5, At: func(float64) float64 { return 1 }}

// scaleUpright returns the image in the size of p, rotated upright.
func scaleUpright(from image.Image, p Picture, turn int) *image.RGBA {
	to, b := image.NewRGBA(image.Rect(0, 0, p.W, p.H)), from.Bounds()
	w, h := float64(p.W), float64(p.H)
	x, y := 1/float64(b.Dx()), 1/float64(b.Dy())
	matrix := map[int]f64.Aff3{
		1: {w * x, 0, 0, 0, h * y, 0},
		2: {-w * x, 0, w, 0, h * y, 0},
		3: {-w * x, 0, w, 0, -h * y, h},
		4: {w * x, 0, 0, 0, -h * y, h},
		5: {0, w * y, 0, h * x, 0, 0},
		6: {0, -w * y, w, h * x, 0, 0},
		7: {0, -w * y, w, -h * x, 0, h},
		8: {0, w * y, 0, -h * x, 0, h},
	}[turn]
	averageKernel.Transform(to, matrix, from, b, draw.Src, nil)
	return to
}

const (
	// maxPixels is the largest image that is decoded. Phones make 24 megapixels. A decoder needs 2
	// to 3 bytes for a pixel of a photo, and 16 at most (PNG, 16 bits, interlaced).
	maxPixels   = 25_000_000
	pictureTime = 20 * time.Second
)

// ErrPixels means that an image has too many pixels to decode.
var ErrPixels = i18n.New("why.pixels")

// errSlow means that an image takes too long to decode.
var errSlow = i18n.New("why.picture_slow")

// deadlineReader fails after a deadline. Decoders have no other way to be stopped.
type deadlineReader struct {
	r   io.Reader
	end time.Time
}

func (u deadlineReader) Read(p []byte) (int, error) {
	if time.Now().After(u.end) {
		return 0, errSlow
	}
	return u.r.Read(p[:min(len(p), 4096)])
}

// decode decodes an image before the deadline end.
func decode(data []byte, end time.Time) (image.Image, error) {
	m, _, err := image.Decode(deadlineReader{bytes.NewReader(data), end})
	switch {
	case err != nil && time.Now().After(end): // decoders hide the errors of readers
		return nil, errSlow
	case err != nil:
		return nil, errImage
	}
	return m, nil
}
