package encoder

import "golang.org/x/sys/cpu"

// vectorized reports whether the processor has AVX2. A test clears it to run the Go versions.
var vectorized = cpu.X86.HasAVX2

// addTileAVX2 is addTileGo with the same result.
//
//go:noescape
func addTileAVX2(out *float32, columns int, x *int32, rowScale *float32, rows, pairs int, w *int32, weights *byte, scale, bias *float32)

// quantizeAVX2 is quantizeGo with the same result.
//
//go:noescape
func quantizeAVX2(pairs *int32, row *float32, n int) (scale float32)

// dotAVX2 is Dot of n numbers, a multiple of 32.
//
//go:noescape
func dotAVX2(v *byte, q *int16, n int) (sum int64)
