// Package changes checks what a schema says about its earlier versions: @was and @removed. It reads
// syntax trees alone; whether rows have the earlier names is checked by state/entity/catalog.
package changes
