// Package answer reads the lists that models answer with.
package answer

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// Errors of answers that cannot be used.
var (
	ErrProse   = errors.New("the answer has no list in it")
	ErrPartial = errors.New("the answer ends in the middle of its list")
)

// Objects are the objects of the last array of objects in text, in a fence or prose or not: what
// stands before may be thinking aloud. Of an array that is cut off they are those before the cut, with
// ErrPartial. What is no object is left out.
func Objects(text string) ([]map[string]any, error) {
	objects, err := lastObjects(text)
	if errors.Is(err, ErrPartial) {
		if again, err := lastObjects(trailingComma.ReplaceAllString(text, "$1")); err == nil {
			return again, nil
		}
	}
	return objects, err
}

func lastObjects(text string) (objects []map[string]any, err error) {
	err = ErrProse
	for at := arrayStart.FindStringIndex(text); at != nil; at = arrayStart.FindStringIndex(text) {
		text = text[at[0]:]
		list, length, failed := readObjects(text)
		if len(list) > 0 || errors.Is(err, ErrProse) { // an empty one may be a part of another
			objects, err = list, failed
		}
		text = text[length:]
	}
	return objects, err
}

// readObjects reads the array that text begins with, and says how long it is.
func readObjects(text string) (list []map[string]any, length int64, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	_, err = dec.Token()
	for err == nil && dec.More() {
		var o any
		err = dec.Decode(&o)
		if object, ok := o.(map[string]any); ok && err == nil {
			list = append(list, object)
		}
	}
	if err == nil {
		_, err = dec.Token()
	}
	if err != nil {
		return list, 1, ErrPartial
	}
	return list, dec.InputOffset(), nil
}

// arrayStart begins an array of objects, or an empty one, but no bracket in prose.
var arrayStart = regexp.MustCompile(`\[\s*[{\]]`)

// trailingComma is a comma that some models put before the end of a list or object. In a quote it would
// be changed too, and then the quote is not found and its fact refused: nothing wrong is stored.
var trailingComma = regexp.MustCompile(`,\s*([\]}])`)

// Text is a field of an object as text, if it is a text or number.
func Text(o map[string]any, name string) string {
	switch v := o[name].(type) {
	case string:
		return strings.TrimSpace(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// Whole is a field of an object as a whole number, also one in brackets; 0 = it is none.
func Whole(o map[string]any, name string) int {
	n, _ := strconv.Atoi(strings.Trim(Text(o, name), "[]# "))
	return n
}
