package web

// hostile is a text that would run a script, break an attribute or end a tag.
const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`
