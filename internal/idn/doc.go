// Package idn converts the domain of a URL to ASCII, as the URL Standard does (section 3.3,
// "domain to ASCII"): by UTS #46 with nontransitional processing, without limits on length,
// hyphens and ASCII characters.
//
// It does not resolve names, and does not check which ASCII characters a host may have.
package idn
