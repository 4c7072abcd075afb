package media

import (
	"bytes"
	"image"
	"io"
	"time"

	"reverie/internal/i18n"
)

const (
	// maxPixels is how many pixels an image may have: a telephone's 24 megapixels are within it. A
	// decoder takes 2 to 3 bytes for a pixel of a photo, and 16 at worst (PNG, 16 bits, interlaced).
	maxPixels   = 25_000_000
	pictureTime = 20 * time.Second
)

// ErrPixels means that an image has too many pixels to be decoded.
var ErrPixels = i18n.New("why.pixels")

// errSlow means that an image takes too long to be decoded.
var errSlow = i18n.New("why.picture_slow")

// untilReader reads until a time has come, and then fails.
// Decoders cannot be stopped otherwise.
type untilReader struct {
	r   io.Reader
	end time.Time
}

func (u untilReader) Read(p []byte) (int, error) {
	if time.Now().After(u.end) {
		return 0, errSlow
	}
	return u.r.Read(p[:min(len(p), 4096)])
}

// decode decodes an image until the time end.
func decode(data []byte, end time.Time) (image.Image, error) {
	m, _, err := image.Decode(untilReader{bytes.NewReader(data), end})
	switch {
	case err != nil && time.Now().After(end): // decoders hide the errors of readers
		return nil, errSlow
	case err != nil:
		return nil, errImage
	}
	return m, nil
}
