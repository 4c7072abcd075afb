//go:build amd64 || arm64

// Package script runs JavaScript in a confined process. It has no files, programs or network, only the
// language. It is apart from package sandbox, so that commands need not wait until it is initialized.
package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/dop251/goja"

	"reverie/internal/sandbox"
)

// A child that is to run a script does so here and never comes back.
var _ = sandbox.TakeOver(run)

// Run runs code for at most limit, with the time zone zone. The output is what it logs, then the value
// of its last expression; an exception is shown with its line and column, and the exit status is not 0.
func Run(ctx context.Context, code string, limit time.Duration, zone string) (sandbox.Result, error) {
	return sandbox.Run(ctx, sandbox.Spec{Code: code, Time: limit, Zone: zone})
}

// maxCalls is the depth of calls of a script.
const maxCalls = 2000

// run runs JavaScript in this process and returns an exit status.
func run(code string, limit time.Duration) int {
	var out sandbox.Output
	vm := goja.New()
	vm.SetMaxCallStackSize(maxCalls)
	show := func(v goja.Value) string { return showValue(vm, v) }
	log := func(call goja.FunctionCall) goja.Value {
		var words []string
		for _, v := range call.Arguments {
			words = append(words, show(v))
		}
		fmt.Fprintln(&out, strings.Join(words, " "))
		return goja.Undefined()
	}
	console := vm.NewObject()
	for _, name := range []string{"log", "info", "warn", "error", "debug"} {
		if err := console.Set(name, log); err != nil {
			return 1
		}
	}
	if err := vm.Set("console", console); err != nil {
		return 1
	}
	stop := time.AfterFunc(limit, func() { vm.Interrupt("it took longer than " + limit.String()) })
	defer stop.Stop()
	v, err := vm.RunScript("code.js", code)
	if err == nil && v != nil {
		if p, ok := v.Export().(*goja.Promise); ok {
			v = p.Result()
			if p.State() == goja.PromiseStateRejected {
				err = fmt.Errorf("uncaught: %s", show(v))
			}
		}
	}
	status := 0
	var deep *goja.StackOverflowError
	switch {
	case errors.As(err, &deep):
		err = fmt.Errorf("RangeError: functions call each other too deeply%v", err)
	case err != nil:
		err = errors.New(strings.Replace(err.Error(), "SyntaxError: SyntaxError: ", "SyntaxError: ", 1))
	}
	switch {
	case err != nil:
		fmt.Fprintln(&out, regexp.MustCompile(`(:\d+:\d+)\(\d+\)`).ReplaceAllString(err.Error(), "$1")) // without instruction numbers
		status = 1
	case v != nil && !goja.IsUndefined(v):
		fmt.Fprintln(&out, show(v))
	}
	fmt.Fprint(os.Stdout, out.String())
	return status
}

// showValue returns v as a person would write it: text as it is, objects as JSON.
func showValue(vm *goja.Runtime, v goja.Value) string {
	object, ok := v.(*goja.Object)
	if !ok {
		return v.String()
	}
	if _, failed := object.Export().(error); !failed && object.ClassName() != "Error" {
		list := `(v => JSON.stringify(v instanceof Map || v instanceof Set ? [...v] : v))`
		if text, err := vm.RunString(list); err == nil {
			if stringify, ok := goja.AssertFunction(text); ok {
				if text, err := stringify(goja.Undefined(), v); err == nil && !goja.IsUndefined(text) {
					return text.String()
				}
			}
		}
	}
	return v.String()
}
