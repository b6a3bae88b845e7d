package memory

// populate does nothing: macOS allocates a page when it is written.
const populate = 0
