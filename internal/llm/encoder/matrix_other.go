//go:build !amd64

package encoder

// vectorized is false: there is assembly for amd64 only.
var vectorized = false

func addTileAVX2(_ *float32, _ int, _ *int32, _ *float32, _, _ int, _ *int32, _ *byte, _, _ *float32) {
}

func quantizeAVX2(_ *int32, _ *float32, _ int) (scale float32) { return 0 }

func dotAVX2(_ *byte, _ *int16, _ int) (sum int64) { return 0 }
