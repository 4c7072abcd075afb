package media

import (
	"bytes"
	"image"
	"io"
	"time"

	"reverie/internal/i18n"
)

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
