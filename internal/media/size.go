package media

import (
	"bytes"
	"image"
	"image/color"
	"io"
	"time"

	"reverie/internal/i18n"
)

const (
	maxPixels   = 50_000_000  // of an image that is decoded; more is a bomb, or a map
	maxDecoded  = 128_000_000 // bytes that decoding an image may take
	pictureTime = 20 * time.Second
)

// ErrPixels means that an image has too many pixels to be decoded.
var ErrPixels = i18n.New("why.pixels")

// errSlow means that an image takes too long to be decoded.
var errSlow = i18n.New("why.picture_slow")

// decodedSize returns how many bytes decoding an image takes at most.
// The colour model alone does not tell: progressive and interlaced images are held twice.
func decodedSize(data []byte, kind string, cfg image.Config) int {
	pixels := cfg.Width * cfg.Height
	line := 4 * cfg.Width // scaled reads one line at a time
	switch kind {
	case "jpeg":
		return jpegSize(data, cfg) + line
	case "webp":
		return webpDepth(data)*pixels + line
	case "png":
		return pngDepth(data, cfg)*pixels + line
	}
	return 2*pixels + line // GIF: a byte, and again if it is interlaced
}

// pngDepth returns the bytes that the PNG decoder takes for a pixel.
func pngDepth(data []byte, cfg image.Config) int {
	depth, grey := 4, false
	switch cfg.ColorModel {
	case color.GrayModel:
		depth, grey = 1, true
	case color.Gray16Model:
		depth, grey = 2, true
	case color.RGBA64Model, color.NRGBA64Model:
		depth = 8
	default:
		if _, ok := cfg.ColorModel.(color.Palette); ok {
			depth = 1
		}
	}
	if grey && bytes.Contains(data, []byte("tRNS")) { // with transparency it becomes colour
		depth *= 4
	}
	const interlacedAt = 28 // in the header chunk, which is always the first
	if len(data) > interlacedAt && data[interlacedAt] != 0 {
		depth *= 2
	}
	return depth
}

// webpDepth returns the bytes that the WebP decoder takes for a pixel.
// A lossless image is unpacked twice, and so is the transparency of one that is not.
func webpDepth(data []byte) int {
	switch {
	case bytes.Contains(data, []byte("ALPH")):
		return 11
	case bytes.Contains(data, []byte("VP8L")):
		return 8
	}
	return 2
}

// jpegSize returns the bytes that the JPEG decoder takes for an image.
// A progressive one holds a coefficient of four bytes for each sample.
func jpegSize(data []byte, cfg image.Config) int {
	frame, progressive := jpegFrame(data)
	samples, each := 4*cfg.Width*cfg.Height, 5 // at worst
	if frame != nil {
		samples = jpegSamples(frame, cfg)
	}
	if frame != nil && !progressive {
		each = 1
	}
	size := samples * each
	if cfg.ColorModel != color.YCbCrModel && cfg.ColorModel != color.GrayModel {
		size += 4 * cfg.Width * cfg.Height // converted after it was decoded
	}
	return size
}

// jpegSamples returns how many samples all components of a frame have.
func jpegSamples(frame []byte, cfg image.Config) int {
	const header = 6                // depth, height, width, number of components
	across, down, blocks := 1, 1, 0 // of the first component in a unit; of all
	for i := header; i+3 <= len(frame); i += 3 {
		h, v := max(1, int(frame[i+1]>>4)), max(1, int(frame[i+1]&15))
		if i == header {
			across, down = h, v
		}
		blocks += h * v
	}
	units := ((cfg.Width + 8*across - 1) / (8 * across)) * ((cfg.Height + 8*down - 1) / (8 * down))
	return units * blocks * 64
}

// jpegFrame returns the header of an image's frame and whether it is progressive.
// It is nil if it is not found where every well-formed file has it.
func jpegFrame(data []byte) (frame []byte, progressive bool) {
	for at := 2; at+4 <= len(data) && data[at] == 0xff; {
		marker, n := data[at+1], int(data[at+2])<<8|int(data[at+3])
		if marker < 0xc0 || marker == 0xff || marker >= 0xd0 && marker <= 0xda || n < 2 || at+2+n > len(data) {
			return nil, false
		}
		body := data[at+4 : at+2+n]
		if marker <= 0xc2 {
			if len(body) < 9 || len(body) != 6+3*int(body[5]) {
				return nil, false
			}
			return body, marker == 0xc2
		}
		at += 2 + n
	}
	return nil, false
}

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
