// Package answer parses the JSON lists that models answer with.
package answer

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"reverie/internal/lazyregexp"
)

// Errors of answers that cannot be used.
var (
	ErrNoList  = errors.New("the answer has no list in it")
	ErrPartial = errors.New("the answer ends in the middle of its list")
)

// LastObjects returns the objects of the last array of objects in text. The array may be fenced or
// in prose. Earlier arrays may be thinking. Of a truncated array it returns the complete objects
// and ErrPartial. Other values are skipped.
func LastObjects(text string) ([]map[string]any, error) {
	objects, err := lastObjects(text)
	if errors.Is(err, ErrPartial) {
		if again, err := lastObjects(trailingComma().ReplaceAllString(text, "$1")); err == nil {
			return again, nil
		}
	}
	return objects, err
}

func lastObjects(text string) (objects []map[string]any, err error) {
	err = ErrNoList
	for at := arrayStart().FindStringIndex(text); at != nil; at = arrayStart().FindStringIndex(text) {
		text = text[at[0]:]
		list, length, failed := readObjects(text)
		if len(list) > 0 || errors.Is(err, ErrNoList) { // an empty array may be part of another
			objects, err = list, failed
		}
		text = text[length:]
	}
	return objects, err
}

// readObjects parses the array at the start of text and returns its length.
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

// arrayStart matches the start of an array of objects, or an empty array. It matches no bracket in
// prose.
var arrayStart = lazyregexp.New(`\[\s*[{\]]`)

// trailingComma matches a comma before the end of a list or object. It also changes quotes; such a
// quote is then not found, and its fact is refused.
var trailingComma = lazyregexp.New(`,\s*([\]}])`)

// Text returns a field as text if it is a string or number, else "".
func Text(o map[string]any, name string) string {
	switch v := o[name].(type) {
	case string:
		return strings.TrimSpace(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// Int returns a field as an integer, also from "[3]" or "#3"; 0 = no integer.
func Int(o map[string]any, name string) int {
	n, _ := strconv.Atoi(strings.Trim(Text(o, name), "[]# "))
	return n
}
