// With this file the compiler accepts a function without a body: kindName.
