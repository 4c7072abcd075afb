// Package lazyregexp makes regular expressions that are compiled when they are used for the first time. The program
// has more than 150, and most commands need few of them.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns expr, compiled. It panics on its first call if expr is wrong.
func New(expr string) func() *regexp.Regexp { return (&pattern{expr: expr}).compiled }

type pattern struct {
	expr string
	once sync.Once
	re   *regexp.Regexp
}

// compiled is a method, as closures are copied to each place that calls New: 170 KB.
func (p *pattern) compiled() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.expr) })
	return p.re
}
