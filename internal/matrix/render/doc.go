// Package render makes Matrix messages of the model's Markdown. It has no state.
//
// goldmark reads the Markdown, nodes.go and maths.go rewrite what would not be shown or must not
// be, bluemonday lets through what the specification allows. A text too large for one event
// is sent as its Beginning and a file; what fits is measured by rendering it. `make look` shows
// it in a browser.
package render
