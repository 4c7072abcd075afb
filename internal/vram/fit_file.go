package vram

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	gguf "github.com/gpustack/gguf-parser-go"
)

// Bounds of a model's headers, of all its files together. Real ones take some ten
// MiB, most of it vocabulary.
const (
	maxHeader    = 128 << 20 // bytes
	maxEntries   = 1 << 16   // values, and tensors, of one file
	maxElements  = 1 << 22   // of all lists
	maxName      = 1 << 10   // bytes
	readDeadline = 10 * time.Second
)

// ReadShape reads the header of a model file, or of all files if it is in parts
// (NAME-00001-of-00003.gguf). It takes ten seconds at most, and some hundred MiB
// of memory, whatever the file holds. Errors say what is wrong with which file.
func ReadShape(ctx context.Context, path string) (Shape, error) {
	return within(ctx, func(ctx context.Context) (s Shape, err error) {
		if path, err = filepath.Abs(path); err != nil {
			return Shape{}, err
		}
		names := gguf.CompleteShardGGUFFilename(path)
		if names == nil {
			names = []string{path}
		}
		c := headerCheck{ctx: ctx, bytes: maxHeader, elements: maxElements}
		for _, name := range names {
			if err := c.file(name); err != nil {
				return Shape{}, fmt.Errorf("model file %s: %w", name, err)
			}
		}
		var file *gguf.GGUFFile
		err = guarded(func() (err error) {
			file, err = gguf.ParseGGUFFile(path, gguf.SkipLargeMetadata(), gguf.UseMMap())
			return err
		})
		if err != nil {
			err = fmt.Errorf("it is damaged or was not downloaded to its end: %w", err)
		} else {
			err = guarded(func() (err error) { s, err = newShape(file); return err })
		}
		if err != nil {
			return Shape{}, fmt.Errorf("model file %s: %w", path, err)
		}
		return s, nil
	})
}

// within runs read with a deadline, and does not wait longer even where reading
// itself cannot be stopped.
func within(ctx context.Context, read func(context.Context) (Shape, error)) (s Shape, err error) {
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
		a.err = guarded(func() (err error) { a.shape, err = read(ctx); return err })
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

// headerCheck steps over headers and bounds every length in them. The library
// believes each: one that is too large, or lists in lists, would end the process.
type headerCheck struct {
	ctx             context.Context
	r               *bufio.Reader
	bytes, elements uint64 // that may still come
	err             error  // the first one
}

// file checks the header of one file. A pipe is not opened, that would wait.
func (c *headerCheck) file(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a plain file")
	}
	f, err := os.Open(name)
	if err != nil {
		return withoutPath(err)
	}
	defer f.Close()
	return c.header(f)
}

// withoutPath takes the name out of err, which is said already.
func withoutPath(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

func (c *headerCheck) header(r io.Reader) error {
	c.r = bufio.NewReaderSize(r, 64<<10)
	if magic := c.number(4); magic != 0x46554747 {
		c.fail("it is not a model in the format GGUF")
	}
	if version := c.number(4); version != 2 && version != 3 {
		c.fail("GGUF version %d is not read here, only 2 and 3", version)
	}
	tensors, values := c.number(8), c.number(8)
	if tensors > maxEntries || values > maxEntries {
		c.fail("%d tensors and %d values; %d are the most that is read", tensors, values, maxEntries)
	}
	for ; values > 0 && c.err == nil; values-- {
		c.value()
	}
	for ; tensors > 0 && c.err == nil; tensors-- {
		name, dimensions := c.name(), c.number(4)
		if dimensions < 1 || dimensions > 4 {
			c.fail("tensor %q has %d dimensions", name, dimensions)
		}
		c.skip(dimensions*8 + 12) // and type and offset
	}
	return c.err
}

// valueSizes are the bytes of a value by its type; 0 = text (8) or a list (9).
var valueSizes = []uint64{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

// value steps over a name and its value. The library makes room for as many tensors
// as split.tensors.count says.
func (c *headerCheck) value() {
	name, kind, n := c.name(), c.number(4), uint64(0)
	switch {
	case kind >= uint64(len(valueSizes)):
		c.fail("a value of type %d, which is not known", kind)
	case kind == 8:
		c.skip(c.length())
	case kind == 9:
		c.list(name)
	default:
		n = c.number(valueSizes[kind])
	}
	if strings.TrimSpace(name) == "split.tensors.count" && (kind == 8 || kind == 9 || n > maxEntries) {
		c.fail("its split.tensors.count cannot be right")
	}
}

func (c *headerCheck) list(name string) {
	kind, n := c.number(4), c.number(8)
	switch {
	case n > c.elements:
		c.fail("a list of %d elements; all lists together may have %d", n, maxElements)
	case kind >= uint64(len(valueSizes)) || kind == 9:
		c.fail("a list of values of type %d, which is not read here", kind)
	}
	if c.err != nil {
		return
	}
	c.elements -= n
	if kind != 8 {
		c.skip(n * valueSizes[kind])
		return
	}
	for ; n > 0 && c.err == nil; n-- {
		if name == "tokenizer.ggml.tokens" { // the library steps over them
			c.skip(c.number(8))
		} else {
			c.skip(c.length())
		}
	}
}

// length reads the length of a text. Behind an empty one the library loses its place.
func (c *headerCheck) length() uint64 {
	n := c.number(8)
	if n == 0 {
		c.fail("an empty text in its header, which is not read here")
	}
	return n
}

func (c *headerCheck) name() string {
	n := c.length()
	if n > maxName {
		c.fail("a name of %d bytes; %d are the most", n, maxName)
		return ""
	}
	name, _ := c.r.Peek(int(n)) // skip tells what is wrong
	text := string(name)
	c.skip(n)
	return text
}

// number reads a number of so many bytes; 0 after an error.
func (c *headerCheck) number(size uint64) (n uint64) {
	raw, _ := c.r.Peek(int(size)) // skip tells what is wrong
	for i, b := range raw {
		n |= uint64(b) << (8 * i)
	}
	if c.skip(size); c.err != nil {
		return 0
	}
	return n
}

func (c *headerCheck) skip(n uint64) {
	switch {
	case c.err != nil:
	case c.ctx.Err() != nil:
		c.err = context.Cause(c.ctx)
	case n > c.bytes:
		c.fail("its header is larger than the %s that are read", Size(maxHeader))
	default:
		c.bytes -= n
		if _, err := c.r.Discard(int(n)); errors.Is(err, io.EOF) {
			c.fail("its header does not end within the file: it is cut or damaged")
		} else if err != nil {
			c.err = fmt.Errorf("reading it: %w", withoutPath(err))
		}
	}
}

// fail keeps the first error.
func (c *headerCheck) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}
