// Package patches says whether this program was built with the changes to dependencies that
// third_party has. tools/go.sh and make build so. Files that need a change have the build tag
// "patched".
package patches
