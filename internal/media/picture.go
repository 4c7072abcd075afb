package media

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // the first frame
	"image/jpeg"
	"image/png"
	"os"
	"path"
	"strings"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/store"

	"golang.org/x/image/draw"
	"golang.org/x/image/math/f64"
	_ "golang.org/x/image/webp" // how most messengers keep pictures
)

// Picture is what a model is shown of an image.
type Picture struct {
	Path          string // a kept file, JPEG or PNG
	Width, Height int    // of the image as it came
	W, H          int    // of the picture
}

const (
	maxPacked  = 64 << 20 // bytes of an image that is read
	maxPNG     = 400_000  // bytes of a picture that keeps its transparency
	jpgQuality = 85
)

// errImage is for people: what a decoder says of a broken image helps nobody.
var errImage = i18n.New("why.no_image")

// Picture makes a picture of the kept image name, for a model: not larger than it
// need be, and without what cameras write beside the pixels. It is made once.
func (s *Store) Picture(name string) (Picture, error) {
	s.drawing.Lock()
	defer s.drawing.Unlock()
	data, err := s.read(name, maxPacked)
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
	p.W, p.H = within(p.Width, p.Height, s.side)
	for _, ext := range []string{".jpg", ".png"} {
		made := s.made(name, ext)
		if _, err := os.Lstat(s.File(made)); err == nil {
			p.Path = made
			return p, nil
		}
	}
	return s.draw(name, data, p, turn)
}

// made is the path of what is made of an image.
func (s *Store) made(name, ext string) string {
	return fmt.Sprintf("%s/%s.%d%s", path.Dir(name), Stem(name), s.side, ext)
}

func (s *Store) draw(name string, data []byte, p Picture, turn int) (_ Picture, err error) {
	defer func() {
		if r := recover(); r != nil { // decoders are given what anybody may send
			err = errImage
		}
	}()
	from, err := decode(data, time.Now().Add(pictureTime))
	if err != nil {
		return Picture{}, err
	}
	to := shrunk(from, p, turn)
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
	p.Path = s.made(name, ext)
	if err := s.put(p.Path, b.Bytes()); err != nil {
		return Picture{}, err
	}
	return p, nil
}

// put writes a file that was made of another.
func (s *Store) put(name string, data []byte) error {
	if err := store.WriteFile(s.File(name), data); err != nil {
		return fmt.Errorf("keep a file: %w", err)
	}
	return nil
}

// within scales a size down so that no side is longer than most.
func within(w, h, most int) (int, int) {
	if long := max(w, h); long > most {
		return max(1, (w*most+long/2)/long), max(1, (h*most+long/2)/long)
	}
	return w, h
}

// orientation is how a camera was held, by the EXIF tag of that name: 1 to 8, and 1
// if there is none.
func orientation(jpg []byte) int {
	for at := 2; at+4 <= len(jpg) && jpg[at] == 0xff && jpg[at+1] != 0xda; {
		n := int(jpg[at+2])<<8 | int(jpg[at+3])
		if n < 2 || at+2+n > len(jpg) {
			break
		}
		if body := jpg[at+4 : at+2+n]; jpg[at+1] == 0xe1 && strings.HasPrefix(string(body), "Exif\x00\x00") {
			return tagged(body[6:])
		}
		at += 2 + n
	}
	return 1
}

// tagged finds the orientation in the first directory of a TIFF header.
func tagged(tiff []byte) int {
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

// mean makes each pixel the mean of those that it stands for.
var mean = &draw.Kernel{Support: 0.5, At: func(float64) float64 { return 1 }}

// shrunk is the image in the size of p, as the camera's owner saw it.
func shrunk(from image.Image, p Picture, turn int) *image.RGBA {
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
	mean.Transform(to, matrix, from, b, draw.Src, nil)
	return to
}
