package languageserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"runner.example/internal/diag"
)

// Options are what the server needs of its program. Check and Log must be set. Any goroutine may call them.
type Options struct {
	// Version is the version of the program.
	Version string
	// Check returns the diagnostics of the app in a directory, as `runner check` prints them, if its schema
	// files were sources. A name of a file is relative to the directory, or absolute.
	Check func(dir string, sources []diag.Source) diag.List
	// HasRows reports whether the app in a directory has a data directory. nil: none has.
	HasRows func(dir string) bool
	// Log takes a line about a failed request.
	Log func(line string)
	// Delay is the time from the last change to the check: 150 ms if it is 0.
	Delay time.Duration
}

// Server is one connection with an editor.
type Server struct {
	protocol.UnimplementedServer
	opt    Options
	client protocol.Client
	// wake tells the checker that something has changed; exit is closed by the message exit.
	wake, exit chan struct{}

	// mu guards what follows. A message holds it, except while it waits for the user.
	mu          sync.Mutex
	initialized bool
	shutdown    bool
	exited      bool
	// utf8 reports that positions count bytes.
	utf8 bool
	// creates reports that the client can create files.
	creates bool
	// documents are the texts of open documents by path, versions their versions.
	documents map[string]*text
	versions  map[string]int32
	apps      map[string]*app
	sources   sourceCache
}

// Serve talks with one editor until it ends the connection or sends exit, or ctx ends. It returns an error if
// the editor leaves without shutdown. It closes neither in nor out, and a read of in may go on
// after it returned.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opt Options) error {
	if opt.Delay == 0 {
		opt.Delay = 150 * time.Millisecond
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &Server{
		opt: opt, wake: make(chan struct{}, 1), exit: make(chan struct{}), documents: map[string]*text{}, versions: map[string]int32{},
		apps: map[string]*app{}, sources: sourceCache{},
	}
	stream := jsonrpc2.NewStream(&pipe{in: in, out: out})
	conn := jsonrpc2.NewConn(stream, jsonrpc2.WithCodec(codec{}))
	s.client = protocol.ClientDispatcher(conn)
	conn.Go(ctx, s.handler(protocol.ServerHandler(s, jsonrpc2.MethodNotFoundHandler)))

	var checker sync.WaitGroup
	checker.Go(func() { s.checkChanged(ctx) })
	select {
	case <-ctx.Done():
	case <-conn.Done():
	case <-s.exit: // the connection ends with the next read of in
	}
	stop()
	checker.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exited && !s.shutdown {
		return errors.New("the editor has sent exit without shutdown")
	}
	return nil
}

// pipe is the connection: two streams that are not closed.
type pipe struct {
	in  io.Reader
	out io.Writer
}

func (p *pipe) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p *pipe) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p *pipe) Close() error                { return nil }

// codec encodes the types of the protocol, whose unions have decoders of their own.
type codec struct{}

func (codec) Marshal(v any) ([]byte, error) {
	if raw, ok := v.(jsonrpc2.RawMessage); ok && raw != nil {
		return raw, nil
	}
	return protocol.Marshal(v)
}

func (codec) Unmarshal(data []byte, v any) error {
	if raw, ok := v.(*jsonrpc2.RawMessage); ok {
		*raw = append(jsonrpc2.RawMessage(nil), data...)
		return nil
	}
	return protocol.Unmarshal(data, v)
}

// handler handles one message after the other. An error of a notification, which has no answer, and a panic
// are logged.
func (s *Server) handler(next jsonrpc2.Handler) jsonrpc2.Handler {
	return func(ctx context.Context, req *jsonrpc2.Request) (result any, err error) {
		method, call := strings.Clone(req.Method()), req.IsCall()
		s.mu.Lock()
		defer s.mu.Unlock()
		defer func() {
			if cause := recover(); cause != nil {
				s.opt.Log(fmt.Sprintf("%s: %v\n%s", method, cause, debug.Stack()))
				result, err = nil, jsonrpc2.Errorf(jsonrpc2.InternalError, "%s failed, which is a defect of runner lsp: %v", method, cause)
			}
			if !call && err != nil { // a connection ends with an error of a notification
				if !errors.Is(err, jsonrpc2.ErrMethodNotFound) {
					s.opt.Log(method + ": " + err.Error())
				}
				err = nil
			}
		}()
		switch {
		case !s.initialized && method != protocol.MethodInitialize && method != protocol.MethodExit:
			return nil, jsonrpc2.NewError(jsonrpc2.ServerNotInitialized, "the first request must be initialize")
		case s.shutdown && method != protocol.MethodExit:
			return nil, jsonrpc2.NewError(jsonrpc2.InvalidRequest, "the server was shut down")
		}
		return next(ctx, req)
	}
}

// triggers are the characters after which editors ask for completions.
var triggers = []string{"@", ".", ":", "(", ",", " ", "\"", "[", ">"}

// Initialize implements protocol.Server.
func (s *Server) Initialize(_ context.Context, params *protocol.InitializeParams) (*protocol.InitializeResult, error) {
	s.initialized = true
	encoding := protocol.PositionEncodingKindUTF16
	if g := params.Capabilities.General; g != nil {
		for _, e := range g.PositionEncodings {
			if e == protocol.PositionEncodingKindUTF8 {
				encoding, s.utf8 = e, true
			}
		}
	}
	if w := params.Capabilities.Workspace; w != nil && w.WorkspaceEdit != nil {
		for _, op := range w.WorkspaceEdit.ResourceOperations {
			s.creates = s.creates || op == protocol.ResourceOperationKindCreate
		}
	}
	yes, incremental := true, protocol.TextDocumentSyncKindIncremental
	return &protocol.InitializeResult{
		ServerInfo: protocol.ServerInfo{Name: "runner", Version: protocol.NewOptional(s.opt.Version)},
		Capabilities: protocol.ServerCapabilities{
			PositionEncoding: encoding,
			TextDocumentSync: &protocol.TextDocumentSyncOptions{
				OpenClose: &yes, Change: &incremental, Save: &protocol.SaveOptions{},
			},
			CompletionProvider:         &protocol.CompletionOptions{TriggerCharacters: triggers},
			HoverProvider:              protocol.Boolean(true),
			DefinitionProvider:         protocol.Boolean(true),
			ReferencesProvider:         protocol.Boolean(true),
			DocumentHighlightProvider:  protocol.Boolean(true),
			DocumentSymbolProvider:     protocol.Boolean(true),
			WorkspaceSymbolProvider:    protocol.Boolean(true),
			FoldingRangeProvider:       protocol.Boolean(true),
			DocumentFormattingProvider: protocol.Boolean(true),
			RenameProvider:             &protocol.RenameOptions{PrepareProvider: &yes},
			CodeActionProvider: &protocol.CodeActionOptions{
				CodeActionKinds: []protocol.CodeActionKind{protocol.CodeActionKindQuickFix},
			},
			SemanticTokensProvider: &protocol.SemanticTokensOptions{Legend: legend(), Full: protocol.Boolean(true)},
			InlayHintProvider:      protocol.Boolean(true),
		},
	}, nil
}

// Shutdown implements protocol.Server.
func (s *Server) Shutdown(context.Context) error {
	s.shutdown = true
	return nil
}

// Exit implements protocol.Server.
func (s *Server) Exit(context.Context) error {
	if !s.exited {
		s.exited = true
		close(s.exit)
	}
	return nil
}

// SetTrace implements protocol.Server: nothing is traced.
func (s *Server) SetTrace(context.Context, *protocol.SetTraceParams) error { return nil }

// pathOf returns the path of a document; "" if it is not a file.
func pathOf(u uri.URI) string {
	if u.Scheme() != "file" {
		return ""
	}
	return filepath.Clean(u.FsPath())
}

// DidOpen implements protocol.Server.
func (s *Server) DidOpen(_ context.Context, params *protocol.DidOpenTextDocumentParams) error {
	path := pathOf(params.TextDocument.URI)
	if path == "" {
		return nil
	}
	s.documents[path] = newText(path, []byte(params.TextDocument.Text), s.utf8)
	s.versions[path] = params.TextDocument.Version
	s.changed(path)
	return nil
}

// DidChange implements protocol.Server.
func (s *Server) DidChange(_ context.Context, params *protocol.DidChangeTextDocumentParams) error {
	path := pathOf(params.TextDocument.URI)
	t := s.documents[path]
	if t == nil {
		return fmt.Errorf("%s is not open", params.TextDocument.URI)
	}
	for _, e := range params.ContentChanges {
		t = t.change(e)
	}
	s.documents[path], s.versions[path] = t, params.TextDocument.Version
	s.changed(path)
	return nil
}

// DidSave implements protocol.Server.
func (s *Server) DidSave(_ context.Context, params *protocol.DidSaveTextDocumentParams) error {
	s.changed(pathOf(params.TextDocument.URI))
	return nil
}

// DidClose implements protocol.Server.
func (s *Server) DidClose(_ context.Context, params *protocol.DidCloseTextDocumentParams) error {
	path := pathOf(params.TextDocument.URI)
	delete(s.documents, path)
	delete(s.versions, path)
	s.changed(path)
	return nil
}

// DidChangeWatchedFiles implements protocol.Server.
func (s *Server) DidChangeWatchedFiles(_ context.Context, params *protocol.DidChangeWatchedFilesParams) error {
	for _, change := range params.Changes {
		s.changed(pathOf(change.URI))
	}
	return nil
}

// changed notes that a file has changed: its app is read and checked again.
func (s *Server) changed(path string) {
	if !isSchema(path) && filepath.Base(path) != configFile {
		return // sources of handlers are read when they are asked for
	}
	if a := s.appOf(path); a != nil {
		a.snapshot = nil
		a.noteChange(s.opt.Delay)
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// configFile is the configuration of an app, which has an effect on its diagnostics.
const configFile = "runner.toml"

// located returns the app of a document, and its file if it is a schema file. It is nil for other documents.
func (s *Server) located(doc protocol.TextDocumentIdentifier) (*snapshot, *file) {
	path := pathOf(doc.URI)
	if path == "" {
		return nil, nil
	}
	a := s.appOf(path)
	if a == nil {
		return nil, nil
	}
	snap := s.snapshotOf(a)
	return snap, snap.file(path)
}
