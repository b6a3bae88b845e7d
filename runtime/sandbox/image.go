package sandbox

import "runner.example/runtime/pages"

// image is the memory that every request of a module finds: what the module's
// initialization left. All sandboxes of the module have private copies of it.
type image struct {
	*pages.Image
	budget  *budget
	charged int64 // bytes taken from the budget
}

// newImage copies memory, and takes what that needs from the budget. Pages of zeros need
// nothing.
func newImage(in pages.System, memory []byte, b *budget) (*image, error) {
	filled := pages.Filled(memory)
	if !b.take(filled, b.limit) {
		return nil, errNoMemory
	}
	of, err := in.NewImage(memory)
	if err != nil {
		b.give(filled)
		return nil, err
	}
	return &image{of, b, filled}, nil
}

// close releases the image, after all sandboxes.
func (im *image) close() {
	im.Close()
	im.budget.give(im.charged)
}
