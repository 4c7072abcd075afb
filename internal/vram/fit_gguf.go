package vram

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	gguf "github.com/gpustack/gguf-parser-go"
)

// What a header may be at most. Real ones are far below: their vocabularies fill
// some ten MiB, their tensors are some thousand.
const (
	mostHeader   = 256 << 20 // bytes
	mostValues   = 1 << 14
	mostTensors  = 1 << 16
	mostParts    = 512 // files of one model
	mostName     = 1 << 10
	mostKept     = 256     // bytes of a text that is kept
	mostElements = 1 << 16 // of all lists that are kept
	readDeadline = 10 * time.Second
)

// header is what a model file says before its weights. It is read here and not by
// the library, because the library trusts the lengths it finds: a list in a list
// or a length of terabytes ends the process, and nothing can recover from that.
type header struct {
	values   map[string]value
	tensors  []tensor
	files    int // that were read
	elements int // of lists kept so far
}

// tensor is one of the header, with its size worked out.
type tensor struct {
	info  gguf.GGUFTensorInfo
	bytes uint64
}

// value is one of the header's. Of long lists and long texts only the length is kept.
type value struct {
	kind gguf.GGUFMetadataValueType // of a list: what its elements are
	n    uint64                     // of a number: itself; of a list: its length
	list []uint64
	text string
	// whole is true for whole numbers that are not negative, and lists of such that were kept.
	whole, isList bool
}

// ReadShape reads the header of a model file, or of all files if it is in parts
// (NAME-00001-of-00003.gguf). It takes ten seconds at most, less if ctx ends
// sooner, and never more than some hundred MiB, whatever the file holds.
// Errors say what is wrong with which file.
func ReadShape(ctx context.Context, path string) (Shape, error) {
	return within(ctx, func(ctx context.Context) (Shape, error) {
		h := header{values: map[string]value{}}
		names, err := parts(path)
		if err != nil {
			return Shape{}, err
		}
		for _, name := range names {
			if err := h.readFile(ctx, name); err != nil {
				return Shape{}, fmt.Errorf("model file %s: %w", name, err)
			}
		}
		s, err := newShape(&h)
		if err != nil {
			return Shape{}, fmt.Errorf("model file %s: %w", path, err)
		}
		return s, nil
	})
}

// ReadShapeAt is ReadShape for a model of size bytes that is not a file. r is
// used until the reading ends, which may be after ReadShapeAt gave up.
func ReadShapeAt(ctx context.Context, r io.ReaderAt, size int64) (Shape, error) {
	return within(ctx, func(ctx context.Context) (Shape, error) {
		h := header{values: map[string]value{}}
		if err := h.read(ctx, r, size); err != nil {
			return Shape{}, fmt.Errorf("model: %w", err)
		}
		s, err := newShape(&h)
		if err != nil {
			return Shape{}, fmt.Errorf("model: %w", err)
		}
		return s, nil
	})
}

// within runs read with a deadline, and does not wait longer even where reading
// itself cannot be stopped.
func within(ctx context.Context, read func(context.Context) (Shape, error)) (Shape, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readDeadline, fmt.Errorf("the model file was not readable within %v", readDeadline))
	defer cancel()
	type answer struct {
		shape Shape
		err   error
	}
	answered := make(chan answer, 1)
	// go: the select below waits for it, until the deadline: a drive in a network
	// that hangs cannot be stopped and ends by itself.
	go func() {
		var a answer
		if err := guarded(func() error { a.shape, a.err = read(ctx); return nil }); err != nil {
			a = answer{err: err}
		}
		answered <- a
	}()
	select {
	case a := <-answered:
		return a.shape, a.err
	case <-ctx.Done():
		return Shape{}, context.Cause(ctx)
	}
}

// guarded makes an error of a panic: the library panics on numbers it did not expect.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its numbers cannot be worked with: %v", r)
		}
	}()
	return f()
}

var partName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// parts are the files that make up the model which path belongs to.
func parts(path string) ([]string, error) {
	found := partName.FindStringSubmatch(filepath.Base(path))
	if found == nil {
		return []string{path}, nil
	}
	n, _ := strconv.Atoi(found[3])
	if n < 1 || n > mostParts {
		return nil, fmt.Errorf("model file %s: a model in %d parts; 1 to %d are read", path, n, mostParts)
	}
	names := make([]string, n)
	for i := range names {
		names[i] = filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%05d-of-%05d.gguf", found[1], i+1, n))
	}
	return names, nil
}

// readFile adds one file to h. What is no plain file is not read: opening a pipe
// would wait for somebody to write.
func (h *header) readFile(ctx context.Context, name string) error {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return withoutPath(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a plain file")
	}
	return h.read(ctx, f, info.Size())
}

// withoutPath takes the name out of err, which is said already.
func withoutPath(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// read adds the header of one file to h.
func (h *header) read(ctx context.Context, r io.ReaderAt, size int64) error {
	h.files++
	limit := min(size, mostHeader)
	d := decoder{ctx: ctx, r: bufio.NewReaderSize(io.NewSectionReader(r, 0, limit), 64<<10), left: limit, cut: size > limit}
	if magic := d.u32(); d.err != nil || magic != 0x46554747 {
		return errors.New("it is not a model in the format GGUF")
	}
	switch version := d.u32(); {
	case d.err != nil:
	case version >= 1<<16:
		return errors.New("it is made for machines with another byte order")
	case version != 2 && version != 3:
		return fmt.Errorf("GGUF version %d is not read here, only 2 and 3", version)
	}
	tensors, values := d.u64(), d.u64()
	if d.err == nil && (tensors > mostTensors-uint64(len(h.tensors)) || values > mostValues) {
		return fmt.Errorf("%d tensors and %d values; %d and %d are the most that is read", tensors, values, mostTensors, mostValues)
	}
	for range values {
		key := d.text(mostName)
		v := d.value(&h.elements)
		if d.err != nil {
			break
		}
		if _, known := h.values[key]; !known { // the first of several parts speaks for all
			h.values[key] = v
		}
	}
	start := len(h.tensors)
	for range tensors {
		t := d.tensor()
		if d.err != nil {
			break
		}
		h.tensors = append(h.tensors, t)
	}
	if d.err != nil {
		return d.err
	}
	return h.complete(h.tensors[start:], limit-d.left, size)
}

// complete checks that the weights of tensors are all in the file.
func (h *header) complete(tensors []tensor, header, size int64) error {
	align := int64(32)
	if v, ok := h.values["general.alignment"]; ok {
		if !v.whole || v.isList || v.n == 0 || v.n > 1<<20 {
			return errors.New("general.alignment cannot be right")
		}
		align = int64(v.n)
	}
	have := max(0, size-(header+align-1)/align*align)
	var need uint64
	for _, t := range tensors {
		need += t.bytes
	}
	if need > uint64(have) {
		return fmt.Errorf("its weights are %d bytes, but only %d are there: it was not downloaded to its end, or is damaged", need, have)
	}
	return nil
}

// decoder reads the parts of a header. After the first error it reads nothing more.
type decoder struct {
	ctx  context.Context
	r    *bufio.Reader
	left int64 // bytes that may still be read
	cut  bool  // the file goes on behind them
	n    int
	err  error
}

// take tells whether n more bytes may be read.
func (d *decoder) take(n uint64) bool {
	if d.n++; d.err == nil && d.n&0xfff == 0 && d.ctx.Err() != nil {
		d.err = context.Cause(d.ctx)
	}
	if d.err != nil {
		return false
	}
	if n > uint64(d.left) {
		d.err = errors.New("its header does not end within the file: it is cut or damaged")
		if d.cut {
			d.err = fmt.Errorf("its header is larger than the %s that are read", Size(mostHeader))
		}
		return false
	}
	d.left -= int64(n)
	return true
}

func (d *decoder) bytes(n uint64) []byte {
	if !d.take(n) {
		return make([]byte, min(n, 8))
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(d.r, b); err != nil {
		d.err = fmt.Errorf("reading it: %w", withoutPath(err))
	}
	return b
}

func (d *decoder) skip(n uint64) {
	if !d.take(n) {
		return
	}
	if _, err := d.r.Discard(int(n)); err != nil {
		d.err = fmt.Errorf("reading it: %w", withoutPath(err))
	}
}

func (d *decoder) u32() uint32 { return binary.LittleEndian.Uint32(d.bytes(4)) }
func (d *decoder) u64() uint64 { return binary.LittleEndian.Uint64(d.bytes(8)) }

// text reads a name; one that is longer than limit is an error.
func (d *decoder) text(limit uint64) string {
	n := d.u64()
	if d.err == nil && n > limit {
		d.err = fmt.Errorf("a name of %d bytes; %d are the most", n, limit)
	}
	if d.err != nil {
		return ""
	}
	return string(d.bytes(n))
}

// sizes of the values that are no text and no list, by their type.
var valueSizes = map[gguf.GGUFMetadataValueType]uint64{
	gguf.GGUFMetadataValueTypeUint8: 1, gguf.GGUFMetadataValueTypeInt8: 1, gguf.GGUFMetadataValueTypeBool: 1,
	gguf.GGUFMetadataValueTypeUint16: 2, gguf.GGUFMetadataValueTypeInt16: 2,
	gguf.GGUFMetadataValueTypeUint32: 4, gguf.GGUFMetadataValueTypeInt32: 4, gguf.GGUFMetadataValueTypeFloat32: 4,
	gguf.GGUFMetadataValueTypeUint64: 8, gguf.GGUFMetadataValueTypeInt64: 8, gguf.GGUFMetadataValueTypeFloat64: 8,
}

// value reads one value. elements counts what lists have cost so far.
func (d *decoder) value(elements *int) value {
	v := value{kind: gguf.GGUFMetadataValueType(d.u32())}
	switch v.kind {
	case gguf.GGUFMetadataValueTypeString:
		if n := d.u64(); n <= mostKept {
			v.text = string(d.bytes(n))
		} else {
			d.skip(n)
		}
	case gguf.GGUFMetadataValueTypeArray:
		v.kind, v.isList = gguf.GGUFMetadataValueType(d.u32()), true
		v.n = d.u64()
		d.list(&v, elements)
	default:
		v.n, v.whole = d.number(v.kind)
	}
	return v
}

// list reads the elements of v: whole numbers are kept if they are few.
func (d *decoder) list(v *value, elements *int) {
	if v.kind == gguf.GGUFMetadataValueTypeString {
		for i := uint64(0); i < v.n && d.err == nil; i++ {
			d.skip(d.u64())
		}
		return
	}
	size, known := valueSizes[v.kind]
	switch {
	case d.err != nil:
		return
	case !known:
		d.err = fmt.Errorf("a list of values of type %d, which is not read here", v.kind)
		return
	case v.n > mostHeader:
		d.err = fmt.Errorf("a list of %d elements", v.n)
		return
	case v.n > mostBlocks || *elements+int(v.n) > mostElements:
		d.skip(v.n * size)
		return
	}
	*elements += int(v.n)
	v.whole = true
	for i := uint64(0); i < v.n && d.err == nil; i++ {
		n, whole := d.number(v.kind)
		v.list, v.whole = append(v.list, n), v.whole && whole
	}
}

// number reads a number or a truth value; whole tells that it is a whole one and
// not negative.
func (d *decoder) number(kind gguf.GGUFMetadataValueType) (n uint64, whole bool) {
	size, known := valueSizes[kind]
	if !known {
		if d.err == nil {
			d.err = fmt.Errorf("a value of type %d, which is not known", kind)
		}
		return 0, false
	}
	var raw [8]byte
	copy(raw[:], d.bytes(size))
	n = binary.LittleEndian.Uint64(raw[:])
	switch kind {
	case gguf.GGUFMetadataValueTypeFloat32, gguf.GGUFMetadataValueTypeFloat64:
		return 0, false
	case gguf.GGUFMetadataValueTypeInt8, gguf.GGUFMetadataValueTypeInt16, gguf.GGUFMetadataValueTypeInt32, gguf.GGUFMetadataValueTypeInt64:
		if n>>(8*size-1) != 0 {
			return 0, false
		}
	}
	return n, true
}

// tensor reads one tensor's name, dimensions and type.
func (d *decoder) tensor() tensor {
	t := tensor{info: gguf.GGUFTensorInfo{Name: d.text(mostKept), NDimensions: d.u32()}}
	if d.err == nil && (t.info.NDimensions < 1 || t.info.NDimensions > 4) {
		d.err = fmt.Errorf("tensor %q has %d dimensions", t.info.Name, t.info.NDimensions)
	}
	if d.err != nil {
		return t
	}
	for range t.info.NDimensions {
		t.info.Dimensions = append(t.info.Dimensions, d.u64())
	}
	t.info.Type = gguf.GGMLType(d.u32())
	t.info.Offset = d.u64()
	if d.err == nil {
		t.bytes, d.err = tensorBytes(t.info)
	}
	return t
}

// tensorBytes is the size of a tensor.
func tensorBytes(t gguf.GGUFTensorInfo) (uint64, error) {
	trait, known := t.Type.Trait()
	if !known || trait.BlockSize == 0 || trait.TypeSize == 0 {
		return 0, fmt.Errorf("tensor %q has weights of type %d, which is not known here", t.Name, t.Type)
	}
	const limit = uint64(most) // of elements: no product or sum of sizes can pass 64 bits
	elements := uint64(1)
	for _, n := range t.Dimensions {
		if n > limit || n > 0 && elements > limit/n {
			return 0, fmt.Errorf("tensor %q is too large to be real", t.Name)
		}
		elements *= n
	}
	return elements / trait.BlockSize * trait.TypeSize, nil
}

// block tells which layer a tensor belongs to: blk.7.attn_q.weight to 7.
func block(name string) (n int, ok bool) {
	rest, found := strings.CutPrefix(name, "blk.")
	digits, _, dotted := strings.Cut(rest, ".")
	n, err := strconv.Atoi(digits)
	return n, found && dotted && err == nil && n >= 0
}
