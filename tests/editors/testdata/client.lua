-- Uses each feature of the language server with Neovim's own client, and writes what it shows as JSON.
-- The environment has RUNNER, the program, and RESULTS, the file to write. It runs in Neovim from 0.7 on.
local results = {}

local function finish()
  local file = assert(io.open(vim.env.RESULTS, "w"))
  file:write(vim.fn.json_encode(results))
  file:close()
  vim.cmd("qall!")
end

local function run()
  vim.cmd("edit shop.schema")
  local buffer = vim.api.nvim_get_current_buf()
  local id = vim.lsp.start_client({
    cmd = { vim.env.RUNNER, "lsp" },
    root_dir = vim.fn.getcwd(),
    handlers = {
      ["window/showMessageRequest"] = function(_, result)
        results.asked = result.message
        return result.actions[1]
      end,
    },
  })
  vim.lsp.buf_attach_client(buffer, id)
  local client = vim.lsp.get_client_by_id(id)
  assert(vim.wait(20000, function() return client.initialized end), "the client is not initialized")

  local function text(b) return table.concat(vim.api.nvim_buf_get_lines(b or buffer, 0, -1, false), "\n") .. "\n" end

  -- The cursor goes to the first letter of `what` after `before`.
  local function go(before, what)
    vim.fn.cursor(1, 1)
    assert(vim.fn.search("\\V" .. before, "c") > 0, "not in the text: " .. before)
    assert(vim.fn.search("\\V" .. what, "c") > 0, "not in the text: " .. what)
  end

  local function request(method, more)
    local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
    for key, value in pairs(more or {}) do params[key] = value end
    local answer, err = vim.lsp.buf_request_sync(buffer, method, params, 20000)
    assert(answer, method .. ": " .. tostring(err))
    local mine = answer[id]
    assert(mine and not mine.error, method .. ": " .. vim.inspect(mine))
    return mine.result
  end

  -- Diagnostics of what is typed, before it is saved.
  assert(vim.wait(20000, function() return #vim.diagnostic.get(buffer) > 0 end), "no diagnostics")
  results.diagnostics = {}
  for _, d in ipairs(vim.diagnostic.get(buffer)) do
    table.insert(results.diagnostics, { line = d.lnum + 1, col = d.col + 1, message = d.message, code = d.user_data and d.user_data.lsp.code or d.code })
  end

  -- Completion, through omnifunc as a user calls it, and by itself.
  vim.api.nvim_buf_set_option(buffer, "omnifunc", "v:lua.vim.lsp.omnifunc")
  go("GET /orders", "listOrders")
  results.completion = {}
  for _, item in ipairs(request("textDocument/completion").items) do table.insert(results.completion, item.label) end

  go("-> listOrders", "listOrders")
  results.hover = request("textDocument/hover").contents.value
  vim.lsp.buf.definition()
  assert(vim.wait(20000, function() return vim.fn.expand("%:t") == "orders.ts" end), "definition does not open orders.ts")
  results.definition = vim.fn.expand("%:t") .. ":" .. vim.fn.line(".")
  local handlers = vim.api.nvim_get_current_buf()
  vim.lsp.buf_attach_client(handlers, id)
  local back = vim.lsp.buf_request_sync(handlers, "textDocument/definition", vim.lsp.util.make_position_params(0, client.offset_encoding), 20000)[id].result
  results.back = back[1].uri:match("[^/]*$") .. ":" .. (back[1].range.start.line + 1)
  vim.cmd("buffer " .. buffer)

  go("entity Order", "Order")
  results.references = #request("textDocument/references", { context = { includeDeclaration = true } })
  results.highlight = #request("textDocument/documentHighlight")
  results.symbols = {}
  for _, s in ipairs(request("textDocument/documentSymbol")) do table.insert(results.symbols, s.name) end
  results.workspace = #vim.lsp.buf_request_sync(buffer, "workspace/symbol", { query = "Order" }, 20000)[id].result
  results.folds = #request("textDocument/foldingRange")
  results.tokens = #request("textDocument/semanticTokens/full").data
  results.hints = {}
  local whole = { start = { line = 0, character = 0 }, ["end"] = { line = 1000, character = 0 } }
  for _, h in ipairs(request("textDocument/inlayHint", { range = whole })) do table.insert(results.hints, h.label) end

  -- The fix of the diagnostic, applied as the editor applies it.
  local first = vim.diagnostic.get(buffer)[1].user_data.lsp
  local range = vim.lsp.util.make_given_range_params({ first and results.diagnostics[1].line, 0 }, { results.diagnostics[1].line, 0 }, buffer, client.offset_encoding).range
  local fix
  for _, d in ipairs(vim.diagnostic.get(buffer)) do
    local lsp = {
      range = { start = { line = d.lnum, character = d.col }, ["end"] = { line = d.end_lnum, character = d.end_col } },
      message = d.message, severity = d.severity, source = d.source, code = d.user_data and d.user_data.lsp.code or d.code,
    }
    for _, action in ipairs(request("textDocument/codeAction", { range = range, context = { diagnostics = { lsp } } })) do
      if action.title == "Change to orders_read" then fix = action end
    end
  end
  assert(fix, "no fix")
  vim.lsp.util.apply_workspace_edit(fix.edit, client.offset_encoding)
  assert(vim.wait(20000, function() return #vim.diagnostic.get(buffer) == 0 end), "the diagnostics stay")
  results.fixed = text()

  -- A rename with rows, which the user is asked about.
  go("note: text?", "note")
  vim.lsp.buf.rename("remark")
  assert(vim.wait(20000, function() return text():find("remark", 1, true) end), "nothing is renamed")
  go("entity Order", "Order")
  vim.lsp.buf.rename("Purchase")
  assert(vim.wait(20000, function() return text():find("entity Purchase", 1, true) end), "the entity is not renamed")
  results.renamed = text()
  results.script = text(handlers)

  local format = vim.lsp.buf.formatting_sync or vim.lsp.buf.format
  vim.api.nvim_buf_set_lines(buffer, -1, -1, false, { "enum   Last{a,b}" })
  format(nil, 20000)
  results.formatted = text()

  -- A file with the handler is created.
  go("POST /orders", "createOrder")
  local stub = request("textDocument/codeAction", { range = vim.lsp.util.make_range_params(0, client.offset_encoding).range, context = { diagnostics = {} } })[1]
  results.stub = stub.title
  vim.lsp.util.apply_workspace_edit(stub.edit, client.offset_encoding)
  results.created = text(vim.fn.bufnr("handlers/orders.ts"))

  vim.lsp.stop_client(id)
  results.stopped = vim.wait(20000, function() return client.is_stopped() end)
end

local ok, err = xpcall(run, debug.traceback)
if not ok then results.error = err end
finish()
