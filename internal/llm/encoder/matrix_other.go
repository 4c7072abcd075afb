//go:build !amd64

package encoder

// vectorized is false: there is assembly for amd64 only.
var vectorized = false

func widenAVX2(into *[tile]float32, weights *[tile]byte) { widenGo(into, weights) }

func addRowsAVX2(sum *[tile]float32, in *[depth]float32, w *[depth][tile]float32) {
	addRowsGo(sum, in, w)
}
