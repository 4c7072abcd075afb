// Package web is the inspector: pages for an owner about what the assistant does, and why. It shows and never
// decides: what a person may read follows the labels of package trust, and each change goes through the code that
// the chat commands use.
//
// catalog in pages.go lists the pages; each is a function that returns a view, which one template renders. A page needs
// no JavaScript. Text of people, models, files and memories reaches the template as strings only.
//
// # Who gets in
//
// An owner gets a link by !web, or at the terminal by `bot web`. Its code is valid once, for five minutes, and stands
// behind the #, so that no server, proxy or log sees it. The login page posts it and gets a cookie for twelve hours.
// The server stores hashes of both, in memory: a restart ends all logins. A request must name a host of the list,
// else a page of another site could reach this server under a name of its own (DNS rebinding).
package web
