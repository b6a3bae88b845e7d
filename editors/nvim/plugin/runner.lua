-- Neovim 0.7 or later: schemas of the runner, and its language server for them and for handlers.

local group = vim.api.nvim_create_augroup("runner", {})

vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
  group = group,
  pattern = "*.schema",
  callback = function()
    vim.bo.filetype = "runner-schema"
    vim.bo.commentstring = "// %s"
    vim.bo.expandtab, vim.bo.shiftwidth, vim.bo.softtabstop = true, 2, 2
    vim.bo.smartindent = true
  end,
})

-- app returns the directory of the app that a file belongs to, the nearest one above that has a schema, or nil.
local function app(file)
  local dir = vim.fn.fnamemodify(file, ":p:h")
  while vim.fn.glob(vim.fn.escape(dir, "*?[{`$\\") .. "/*.schema") == "" do
    local above = vim.fn.fnamemodify(dir, ":h")
    if above == dir then
      return nil
    end
    dir = above
  end
  return dir
end

local clients = {} -- of Neovim 0.7, by the directory of the app

-- attach connects the current buffer to the server of its app, which it starts if necessary.
local function attach(root)
  local config = { name = "runner", cmd = { "runner", "lsp" }, root_dir = root }
  if vim.lsp.start then -- since Neovim 0.8
    vim.lsp.start(config)
    return
  end
  config.on_exit = function()
    clients[root] = nil
  end
  clients[root] = clients[root] or vim.lsp.start_client(config)
  vim.lsp.buf_attach_client(0, clients[root])
end

vim.api.nvim_create_autocmd("FileType", {
  group = group,
  pattern = { "runner-schema", "typescript", "javascript", "python", "go", "rust" },
  callback = function(event)
    local root = app(event.file)
    if root == nil then
      return
    elseif vim.fn.executable("runner") == 1 then
      attach(root)
    elseif event.match == "runner-schema" then
      vim.notify_once("the program runner is not on the PATH: schemas are not checked", vim.log.levels.WARN)
    end
  end,
})
