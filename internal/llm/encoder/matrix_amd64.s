#include "textflag.h"

// A YMM register holds 8 int32 or float32, or 16 int16. VPMADDWD multiplies the two
// int16 of each int32 by those of another register and adds the two products.

// LOAD_PAIR loads a pair of rows of a tile into Y8 and Y9.
#define LOAD_PAIR \
	VMOVDQU (BX), Y8   \
	VMOVDQU 32(BX), Y9

// WIDEN_PAIR makes Y8 and Y9 from two rows of int8 weights: the weights of columns 0 to
// 7 (L) and 8 to 15 (H), one of each row in turn, become int16. It stores them in the tile.
#define WIDEN_PAIR \
	VMOVDQU    (R11), X8          \
	VMOVDQU    (R11)(R12*1), X9   \
	LEAQ       (R11)(R12*2), R11  \
	VPUNPCKHBW X9, X8, X10        \
	VPUNPCKLBW X9, X8, X8         \
	VPMOVSXBW  X10, Y9            \
	VPMOVSXBW  X8, Y8             \
	VMOVDQU    Y8, (BX)           \
	VMOVDQU    Y9, 32(BX)

// ADD_PAIR adds the products of a row's pair, at an address, with those of 16
// columns in Y8 and Y9 to the sums lo and hi.
#define ADD_PAIR(address, lo, hi) \
	VPBROADCASTD address, Y10 \
	VPMADDWD     Y8, Y10, Y11 \
	VPMADDWD     Y9, Y10, Y12 \
	VPADDD       Y11, lo, lo  \
	VPADDD       Y12, hi, hi

#define ADD_TWO_ROWS \
	ADD_PAIR((SI)(AX*4), Y0, Y1)  \
	ADD_PAIR((R13)(AX*4), Y2, Y3)

#define ADD_FOUR_ROWS \
	ADD_TWO_ROWS                  \
	ADD_PAIR((R14)(AX*4), Y4, Y5) \
	ADD_PAIR((R15)(AX*4), Y6, Y7)

// NEXT_PAIR goes on to the next pair, if there is one.
#define NEXT_PAIR(loop) \
	ADDQ $64, BX \
	INCQ AX      \
	CMPQ AX, DX  \
	JLT  loop

// ADD_ROW adds float32(sum) × scale of the row × scale of the column + bias to out, and
// goes on to the next row of out and rowScale, if there is one.
#define ADD_ROW(lo, hi) \
	VBROADCASTSS (R10), Y10      \
	VCVTDQ2PS    lo, lo          \
	VCVTDQ2PS    hi, hi          \
	VMULPS       Y10, lo, lo     \
	VMULPS       Y10, hi, hi     \
	VMULPS       (R11), lo, lo   \
	VMULPS       32(R11), hi, hi \
	VADDPS       (R12), lo, lo   \
	VADDPS       32(R12), hi, hi \
	VADDPS       (DI), lo, lo    \
	VADDPS       32(DI), hi, hi  \
	VMOVUPS      lo, (DI)        \
	VMOVUPS      hi, 32(DI)      \
	ADDQ         R8, DI          \
	ADDQ         $4, R10         \
	DECQ         CX              \
	JZ           done

// func addTileAVX2(out *float32, columns int, x *int32, rowScale *float32, rows, pairs int, w *int32, weights *byte, scale, bias *float32)
//
// See addTileGo. Four rows of x at a time, at SI, R13, R14, R15, or the last two;
// their sums stay in Y0 to Y7. For a row that is missing, the one before it is
// computed twice. The first rows widen the weights on the way.
TEXT ·addTileAVX2(SB), NOSPLIT, $0-80
	MOVQ out+0(FP), DI
	MOVQ columns+8(FP), R8
	MOVQ x+16(FP), SI
	MOVQ rowScale+24(FP), R10
	MOVQ rows+32(FP), CX
	MOVQ pairs+40(FP), DX
	MOVQ weights+56(FP), R11
	MOVQ R8, R12          // bytes of a row of weights
	SHLQ $2, R8           // of a row of out
	LEAQ (DX*4), R9       // of a row of x

rows:
	LEAQ    (SI)(R9*1), R13
	CMPQ    CX, $2
	CMOVQLT SI, R13
	LEAQ    (R13)(R9*1), R14
	LEAQ    (R14)(R9*1), R15
	CMPQ    CX, $4
	CMOVQLT R14, R15
	MOVQ    w+48(FP), BX
	XORQ    AX, AX
	VPXOR   Y0, Y0, Y0
	VPXOR   Y1, Y1, Y1
	VPXOR   Y2, Y2, Y2
	VPXOR   Y3, Y3, Y3
	VPXOR   Y4, Y4, Y4
	VPXOR   Y5, Y5, Y5
	VPXOR   Y6, Y6, Y6
	VPXOR   Y7, Y7, Y7
	TESTQ   R11, R11
	JZ      wide
	CMPQ    CX, $2
	JLE     widenTwo

widenFour:
	WIDEN_PAIR
	ADD_FOUR_ROWS
	NEXT_PAIR(widenFour)
	JMP store

widenTwo:
	WIDEN_PAIR
	ADD_TWO_ROWS
	NEXT_PAIR(widenTwo)
	JMP store

wide:
	CMPQ CX, $2
	JLE  two

four:
	LOAD_PAIR
	ADD_FOUR_ROWS
	NEXT_PAIR(four)
	JMP store

two:
	LOAD_PAIR
	ADD_TWO_ROWS
	NEXT_PAIR(two)

store:
	MOVQ scale+64(FP), R11
	MOVQ bias+72(FP), R12
	ADD_ROW(Y0, Y1)
	ADD_ROW(Y2, Y3)
	ADD_ROW(Y4, Y5)
	ADD_ROW(Y6, Y7)
	LEAQ (R15)(R9*1), SI
	XORQ R11, R11         // the weights are wide now
	JMP  rows

done:
	VZEROUPPER
	RET

DATA magnitude<>+0(SB)/4, $0x7fffffff
GLOBL magnitude<>(SB), RODATA|NOPTR, $4
DATA least<>+0(SB)/4, $1e-30
GLOBL least<>(SB), RODATA|NOPTR, $4
DATA maxInput<>+0(SB)/4, $4095.0
GLOBL maxInput<>(SB), RODATA|NOPTR, $4
DATA one<>+0(SB)/4, $1.0
GLOBL one<>(SB), RODATA|NOPTR, $4

// func quantizeAVX2(pairs *int32, row *float32, n int) (scale float32)
//
// See quantizeGo. Each round handles 16 numbers.
TEXT ·quantizeAVX2(SB), NOSPLIT, $0-28
	MOVQ         pairs+0(FP), DI
	MOVQ         row+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS magnitude<>(SB), Y2
	VBROADCASTSS least<>(SB), Y0
	VMOVAPS      Y0, Y1
	MOVQ         SI, BX
	MOVQ         CX, DX

largest:
	VANDPS       (BX), Y2, Y3
	VANDPS       32(BX), Y2, Y4
	VMAXPS       Y3, Y0, Y0
	VMAXPS       Y4, Y1, Y1
	ADDQ         $64, BX
	SUBQ         $16, DX
	JNZ          largest
	VMAXPS       Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS       X1, X0, X0
	VPSRLDQ      $8, X0, X1
	VMAXPS       X1, X0, X0
	VPSRLDQ      $4, X0, X1
	VMAXPS       X1, X0, X0
	VDIVSS       maxInput<>(SB), X0, X0
	VMOVSS       X0, scale+24(FP)
	VMOVSS       one<>(SB), X1
	VDIVSS       X0, X1, X0
	VBROADCASTSS X0, Y0           // 1 / scale

round:
	VMULPS    (SI), Y0, Y1
	VMULPS    32(SI), Y0, Y2
	VCVTPS2DQ Y1, Y1          // to the nearest, of two the even one
	VCVTPS2DQ Y2, Y2
	VPACKSSDW Y2, Y1, Y1      // to int16, within each half of the registers
	VPERMQ    $0xd8, Y1, Y1   // and back in order
	VMOVDQU   Y1, (DI)
	ADDQ      $64, SI
	ADDQ      $32, DI
	SUBQ      $16, CX
	JNZ       round
	VZEROUPPER
	RET

// func dotAVX2(v *byte, q *int16, n int) (sum int64)
//
// Eight sums of int32, each of an eighth of the products.
TEXT ·dotAVX2(SB), NOSPLIT, $0-32
	MOVQ  v+0(FP), SI
	MOVQ  q+8(FP), DI
	MOVQ  n+16(FP), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1

more:
	VPMOVSXBW (SI), Y2
	VPMOVSXBW 16(SI), Y3
	VPMADDWD  (DI), Y2, Y2
	VPMADDWD  32(DI), Y3, Y3
	VPADDD    Y2, Y0, Y0
	VPADDD    Y3, Y1, Y1
	ADDQ      $32, SI
	ADDQ      $64, DI
	SUBQ      $32, CX
	JNZ       more
	VPADDD       Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPMOVSXDQ    X0, Y0
	VPMOVSXDQ    X1, Y1
	VPADDQ       Y1, Y0, Y0       // four sums of int64
	VEXTRACTI128 $1, Y0, X1
	VPADDQ       X1, X0, X0
	VPSRLDQ      $8, X0, X1
	VPADDQ       X1, X0, X0
	VMOVQ        X0, AX
	MOVQ         AX, sum+24(FP)
	VZEROUPPER
	RET
