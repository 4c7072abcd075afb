package matrix_test

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// TestMain lets more of the tests that may run beside each other do so: they wait
// far more than they work.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := f.Value.Set("6"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
