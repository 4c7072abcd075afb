package encoder

import "golang.org/x/sys/cpu"

// vectorized reports whether the processor has AVX2 for widen and addRows. A test clears it to run
// the Go versions.
var vectorized = cpu.X86.HasAVX2

// widenAVX2 is widenGo for one row, eight numbers at a time.
//
//go:noescape
func widenAVX2(into *[tile]float32, weights *[tile]byte)

// addRowsAVX2 is addRowsGo, eight columns at a time, with identical rounding.
func addRowsAVX2(sum *[tile]float32, in *[depth]float32, w *[depth][tile]float32)
