//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/dop251/goja"
)

// maxCalls is the depth of calls of a script.
const maxCalls = 2000

// runScript runs JavaScript and prints what it logs, then the value of its last expression. An
// exception is printed with its line and column. It returns an exit status.
func runScript(code string, limit time.Duration) int {
	var out output
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
	if p, ok := exported(v).(*goja.Promise); ok && err == nil {
		v = p.Result()
		if p.State() == goja.PromiseStateRejected {
			err = fmt.Errorf("uncaught: %s", show(v))
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

func exported(v goja.Value) any {
	if v == nil {
		return nil
	}
	return v.Export()
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
