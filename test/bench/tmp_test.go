package main

import (
	"fmt"
	"testing"
	"context"
	"time"
)

func TestTmp(t *testing.T) {
	for _, layout := range []string{"stable"} {
		for _, size := range sizes {
			b := time.Now()
			f, err := assembly(context.Background(), "stable", size)
			if err != nil { t.Fatal(err) }
			fmt.Println(layout, time.Since(b))
			for _, x := range f { fmt.Println(x) }
		}
	}
}
