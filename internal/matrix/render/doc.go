// Package render renders the model's Markdown as Matrix messages. It has no state.
//
// goldmark parses the Markdown, nodes.go and maths.go replace nodes that clients would not show or
// that a message must not have, and bluemonday sanitises the HTML by the specification. A text too
// large for one event is sent as its beginning (Truncate) and a file; its size is measured by
// rendering it. `make look` shows the result in a browser.
package render
