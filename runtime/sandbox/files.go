package sandbox

import (
	"errors"
	"slices"

	"runner.example/hostabi"
	"runner.example/hostabi/files"
)

// ForHost returns the arguments, the environment and the files of the program in a file. with may be nil.
func (with *Program) ForHost(file string) (*hostabi.Program, error) {
	p := &hostabi.Program{Args: []string{commandName(file)}, Root: hostabi.NewRoot()}
	if with == nil {
		return p, nil
	}
	p.Args, p.Env = append(p.Args, with.Args...), with.Env
	for _, f := range with.Files {
		f.Path = "app/" + f.Path
		if err := p.Root.Add(f); err != nil {
			return nil, refuse("cannot have its files: %v", err)
		}
	}
	return p, nil
}

// counted returns the program with files that count as memory of guests once they are read. with may be nil.
func (with *Program) counted(m *Module) *Program {
	if with == nil {
		return nil
	}
	counted := *with
	counted.Files = slices.Clone(with.Files)
	for i, f := range counted.Files {
		counted.Files[i].Read = m.readCounted(f)
	}
	return &counted
}

var errNoFileMemory = errors.New("no memory is left for the content: raise [sandbox] total_memory in runner.toml")

// readCounted returns the function that reads a file. A content that was read is kept until the module is freed, and
// counts as memory of guests.
func (m *Module) readCounted(f files.File) func() ([]byte, error) {
	return func() ([]byte, error) {
		budget := &m.engine.memory
		if !budget.take(f.Size, budget.limit) { // it leaves the reserve to small guests
			return nil, errNoFileMemory
		}
		content, err := f.Read()
		if err != nil || int64(len(content)) != f.Size { // it is not kept
			budget.give(f.Size)
		} else {
			m.fileBytes.Add(f.Size)
		}
		return content, err
	}
}
