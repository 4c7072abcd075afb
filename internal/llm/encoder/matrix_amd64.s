#include "textflag.h"

// The constants of matrix.go: tile = 128 columns, depth = 8 rows. A row of a tile
// has 128 float32, 512 bytes; a YMM register holds 8 of them, 32 bytes.

// func widenAVX2(into *[tile]float32, weights *[tile]byte)
//
// into[i] = float32(int8(weights[i])), i = 0…127. Exact: float32 holds every int8.
TEXT ·widenAVX2(SB), NOSPLIT, $0-16
	MOVQ into+0(FP), DI
	MOVQ weights+8(FP), SI
	MOVQ $16, CX          // 16 × 8 numbers

widen:
	VPMOVSXBD (SI), Y0    // 8 int8 to int32
	VCVTDQ2PS Y0, Y0      // int32 to float32
	VMOVUPS   Y0, (DI)
	ADDQ      $8, SI
	ADDQ      $32, DI
	DECQ      CX
	JNZ       widen
	VZEROUPPER
	RET

// func addRowsAVX2(sum *[tile]float32, in *[depth]float32, w *[depth][tile]float32)
//
// sum[i] += ((in0·w0 + in1·w1) + in2·w2) + in3·w3, of columns i = 0…127,
//         + (((in4·w4 + in5·w5) + in6·w6) + in7·w7)
// where the two lines are added first. Products and sums are rounded one by one, as
// addRowsGo rounds them: no fused multiply-add, which would give other last bits.
TEXT ·addRowsAVX2(SB), NOSPLIT, $0-24
	MOVQ sum+0(FP), DI
	MOVQ in+8(FP), SI
	MOVQ w+16(FP), DX
	MOVQ $16, CX          // 16 × 8 columns

	VBROADCASTSS 0(SI), Y0
	VBROADCASTSS 4(SI), Y1
	VBROADCASTSS 8(SI), Y2
	VBROADCASTSS 12(SI), Y3
	VBROADCASTSS 16(SI), Y4
	VBROADCASTSS 20(SI), Y5
	VBROADCASTSS 24(SI), Y6
	VBROADCASTSS 28(SI), Y7

columns:
	VMULPS 0(DX), Y0, Y8      // rows 0 to 3 into Y8
	VMULPS 512(DX), Y1, Y9
	VMULPS 1024(DX), Y2, Y10
	VMULPS 1536(DX), Y3, Y11
	VADDPS Y9, Y8, Y8
	VADDPS Y10, Y8, Y8
	VADDPS Y11, Y8, Y8
	VMULPS 2048(DX), Y4, Y12  // rows 4 to 7 into Y12
	VMULPS 2560(DX), Y5, Y13
	VMULPS 3072(DX), Y6, Y14
	VMULPS 3584(DX), Y7, Y15
	VADDPS Y13, Y12, Y12
	VADDPS Y14, Y12, Y12
	VADDPS Y15, Y12, Y12
	VADDPS Y12, Y8, Y8
	VADDPS (DI), Y8, Y8
	VMOVUPS Y8, (DI)
	ADDQ $32, DX
	ADDQ $32, DI
	DECQ CX
	JNZ  columns
	VZEROUPPER
	RET
